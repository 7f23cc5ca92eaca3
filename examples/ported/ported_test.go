package ported_test

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/conditions"
	"github.com/levelwire/levelwire/client/objectmeta"
	"github.com/levelwire/levelwire/client/scheme"
	"github.com/levelwire/levelwire/examples/ported/confighash"
	"github.com/levelwire/levelwire/examples/ported/ovens"
	"github.com/levelwire/levelwire/examples/ported/podcount"
	"github.com/levelwire/levelwire/levelwiretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// connect starts a server.
func connect(t *testing.T, opts client.Options) (context.Context, *client.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	return ctx, levelwiretest.Start(t).Client(opts)
}

// run runs a controller until the test ends.
func run(ctx context.Context, t *testing.T, cl *client.Client, controller func(context.Context, *client.Client) error) {
	t.Helper()
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- controller(ctx, cl) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the controller ended: %v", err)
		}
	})
}

// await watches a kind until an object is as wanted.
func await[T client.Object](ctx context.Context, t *testing.T, r client.Resource[T], what string, wanted func(event client.WatchEvent[T]) bool) {
	t.Helper()
	awaitAfter(ctx, t, r, "", what, wanted)
}

// awaitAfter is await for what happens after a resourceVersion.
func awaitAfter[T client.Object](ctx context.Context, t *testing.T, r client.Resource[T], version, what string, wanted func(event client.WatchEvent[T]) bool) {
	t.Helper()
	w, err := r.Watch(ctx, metav1.ListOptions{ResourceVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	for event, err := range w.Events() {
		if err != nil {
			t.Fatalf("waiting until %s: %v", what, err)
		}
		if event.Type != watch.Bookmark && wanted(event) {
			return
		}
	}
	t.Fatalf("the watch ended before %s", what)
}

func create[T client.Object](ctx context.Context, t *testing.T, r client.Resource[T], obj T) T {
	t.Helper()
	made, err := r.Create(ctx, obj, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// web returns the template of pods.
func web() (metav1.ObjectMeta, *metav1.LabelSelector, corev1.PodTemplateSpec) {
	labels := map[string]string{"app": "web"}
	return metav1.ObjectMeta{Name: "web", Namespace: "default"}, &metav1.LabelSelector{MatchLabels: labels}, corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "one"}}},
	}
}

func TestPodCount(t *testing.T) {
	ctx, cl := connect(t, client.Options{})
	run(ctx, t, cl, podcount.Run)
	sets, pods := client.For[*appsv1.ReplicaSet](cl), client.For[*corev1.Pod](cl)
	meta, selector, template := web()
	set := create(ctx, t, sets, &appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Selector: selector, Template: template}})
	counted := func(want string) {
		t.Helper()
		await(ctx, t, sets, "the count is "+want, func(event client.WatchEvent[*appsv1.ReplicaSet]) bool {
			return event.Object.Labels["pod-count"] == want
		})
	}
	counted("0")
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-0", Namespace: "default", Labels: template.Labels}, Spec: template.Spec}
	if err := objectmeta.SetControllerReference(set, pod, nil); err != nil {
		t.Fatal(err)
	}
	create(ctx, t, pods, pod)
	counted("1")
}

func TestConfigHash(t *testing.T) {
	ctx, cl := connect(t, client.Options{})
	run(ctx, t, cl, confighash.Run)
	deployments, maps := client.For[*appsv1.Deployment](cl), client.For[*corev1.ConfigMap](cl).Namespace("default")
	create(ctx, t, maps, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}})
	meta, selector, template := web()
	meta.Annotations = map[string]string{"config": "settings"}
	create(ctx, t, deployments, &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Selector: selector, Template: template}})
	last := ""
	rolledOut := func() {
		t.Helper()
		await(ctx, t, deployments, "there is another hash", func(event client.WatchEvent[*appsv1.Deployment]) bool {
			hash := event.Object.Spec.Template.Annotations["config-hash"]
			defer func() { last = hash }()
			return hash != "" && hash != last
		})
	}
	rolledOut()
	if _, err := maps.UpdateWithRetry(ctx, "settings", func(cm *corev1.ConfigMap) error {
		cm.Data = map[string]string{"color": "red"}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	rolledOut()
}

func TestOvens(t *testing.T) {
	own := scheme.New()
	if err := ovens.Register(own); err != nil {
		t.Fatal(err)
	}
	ctx, cl := connect(t, client.Options{Scheme: own})
	define(ctx, t, cl)
	run(ctx, t, cl, ovens.Run)
	all, menus := client.For[*ovens.Oven](cl), client.For[*corev1.ConfigMap](cl)
	oven := &ovens.Oven{ObjectMeta: metav1.ObjectMeta{Name: "big", Namespace: "default"}, Spec: ovens.OvenSpec{Trays: 4}}
	made := create(ctx, t, all, oven)
	await(ctx, t, all, "the oven is ready", func(event client.WatchEvent[*ovens.Oven]) bool {
		return conditions.IsTrue(event.Object, event.Object.Status.Conditions, "Ready")
	})
	menu, err := menus.Namespace("default").Get(ctx, "big", metav1.GetOptions{})
	if err != nil || menu.Data["trays"] != "4" || menu.OwnerReferences[0].Kind != "Oven" {
		t.Fatalf("got %v, %v", menu, err)
	}
	// What another client changes is restored.
	if err := menus.Namespace("default").Delete(ctx, "big", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	await(ctx, t, menus, "the menu is back", func(event client.WatchEvent[*corev1.ConfigMap]) bool {
		return event.Type != watch.Deleted && event.Object.Name == "big" && event.Object.UID != menu.UID
	})
	if err := all.Namespace("default").Delete(ctx, "big", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitAfter(ctx, t, all, made.ResourceVersion, "the oven is gone", func(event client.WatchEvent[*ovens.Oven]) bool { return event.Type == watch.Deleted })
	if _, err := menus.Namespace("default").Get(ctx, "big", metav1.GetOptions{}); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the menu: %v", err)
	}
}

// define creates the CustomResourceDefinition and waits until it is served.
func define(ctx context.Context, t *testing.T, cl *client.Client) {
	t.Helper()
	definitions := client.Dynamic(cl, schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	open := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	create(ctx, t, definitions, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "ovens.bakery.example.com"},
		"spec": map[string]any{
			"group": "bakery.example.com", "scope": "Namespaced",
			"names": map[string]any{"plural": "ovens", "singular": "oven", "kind": "Oven", "listKind": "OvenList"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"schema":       map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": map[string]any{"spec": open, "status": open}}},
				"subresources": map[string]any{"status": map[string]any{}},
			}},
		},
	}})
	await(ctx, t, definitions, "the kind is served", func(event client.WatchEvent[*unstructured.Unstructured]) bool {
		list, _, _ := unstructured.NestedSlice(event.Object.Object, "status", "conditions")
		for _, c := range list {
			if m, ok := c.(map[string]any); ok && m["type"] == "Established" && m["status"] == "True" {
				return true
			}
		}
		return false
	})
}
