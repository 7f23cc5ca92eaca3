package write_test

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/objectmeta"
	"github.com/levelwire/levelwire/client/patch"
	"github.com/levelwire/levelwire/tests/client/exampleserver"
)

var check = exampleserver.Check

// settings is what a program wants of a ConfigMap: only the fields it manages.
func settings(color string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings", Namespace: "default"}, Data: map[string]string{"color": color}}
}

// Apply says which fields the program wants. Two programs that want different
// values of one field get a conflict, which names the field and the other.
func Example_apply() {
	c, stop := exampleserver.Start()
	defer stop()
	ctx := context.Background()
	maps := client.For[*corev1.ConfigMap](c)

	applied, err := maps.Apply(ctx, settings("red"), metav1.ApplyOptions{FieldManager: "painter"})
	check(err)
	fmt.Println(applied.Data)

	_, err = maps.Apply(ctx, settings("blue"), metav1.ApplyOptions{FieldManager: "decorator"})
	var conflict *client.ApplyConflictError
	if errors.As(err, &conflict) {
		fmt.Println(conflict.Conflicts[0].Field, "is owned by", conflict.Conflicts[0].Manager)
	}
	applied, err = maps.Apply(ctx, settings("blue"), metav1.ApplyOptions{FieldManager: "decorator", Force: true})
	check(err)
	fmt.Println(applied.Data)
	// Output:
	// map[color:red]
	// .data.color is owned by painter
	// map[color:blue]
}

// MergePatch sends what a program has changed in an object, and nothing else.
func Example_mergePatch() {
	c, stop := exampleserver.Start()
	defer stop()
	ctx := context.Background()
	maps := client.For[*corev1.ConfigMap](c)
	old, err := maps.Create(ctx, settings("red"), metav1.CreateOptions{})
	check(err)

	changed := old.DeepCopy()
	changed.Data["size"] = "large"
	patched, err := maps.MergePatch(ctx, old, changed, client.MergePatchOptions{OptimisticLock: true})
	check(err)
	fmt.Println(patched.Data)
	// Output: map[color:red size:large]
}

// A JSON patch changes values only if others are as expected.
func Example_jsonPatch() {
	c, stop := exampleserver.Start()
	defer stop()
	ctx := context.Background()
	maps := client.For[*corev1.ConfigMap](c).Namespace("default")
	_, err := maps.Create(ctx, settings("red"), metav1.CreateOptions{})
	check(err)

	p, err := patch.JSON(patch.Test("/data/color", "red"), patch.Replace("/data/color", "green"))
	check(err)
	patched, err := maps.Patch(ctx, "settings", p.Type, p.Data, metav1.PatchOptions{})
	check(err)
	fmt.Println(patched.Data)
	// Output: map[color:green]
}

// UpdateWithRetry decides again on the new state when another write comes between.
func Example_updateWithRetry() {
	c, stop := exampleserver.Start()
	defer stop()
	ctx := context.Background()
	maps := client.For[*corev1.ConfigMap](c).Namespace("default")
	_, err := maps.Create(ctx, settings("red"), metav1.CreateOptions{})
	check(err)

	updated, err := maps.UpdateWithRetry(ctx, "settings", func(cm *corev1.ConfigMap) error {
		objectmeta.AddFinalizer(cm, "example.com/paint")
		return nil
	})
	check(err)
	fmt.Println(updated.Finalizers)
	// Output: [example.com/paint]
}

// CreateOrUpdate sees to it that an object exists and is as wanted.
func Example_createOrUpdate() {
	c, stop := exampleserver.Start()
	defer stop()
	ctx := context.Background()
	maps := client.For[*corev1.ConfigMap](c)
	for _, color := range []string{"red", "red", "blue"} {
		_, result, err := maps.CreateOrUpdate(ctx, settings(""), func(cm *corev1.ConfigMap) error {
			cm.Data = map[string]string{"color": color}
			return nil
		})
		check(err)
		fmt.Println(color, result)
	}
	// Output:
	// red created
	// red unchanged
	// blue updated
}

// A page at a time, or all objects in one loop.
func Example_pages() {
	c, stop := exampleserver.Start()
	defer stop()
	ctx := context.Background()
	for page, err := range client.For[*corev1.Namespace](c).Pages(ctx, metav1.ListOptions{Limit: 3}) {
		check(err)
		fmt.Println(len(page.Items), "namespaces")
	}
	for namespace, err := range client.For[*corev1.Namespace](c).All(ctx, metav1.ListOptions{}) {
		check(err)
		fmt.Println(namespace.Name)
		break
	}
	// Output:
	// 3 namespaces
	// 1 namespaces
	// default
}
