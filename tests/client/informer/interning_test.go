package informer_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/levelwiretest"
)

// TestTransformsChangeNobodyElse: objects have memory in common, but not when a
// transform might change one of them in place.
func TestTransformsChangeNobodyElse(t *testing.T) {
	for _, contentType := range []client.ContentType{client.JSON, client.Protobuf} {
		c := levelwiretest.Start(t).Client(client.Options{ContentType: contentType})
		const many = 20
		for n := range many {
			obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
				Namespace: "default", Name: fmt.Sprint("equal-", n), Labels: map[string]string{"equal": "yes", "app": "web"},
			}}
			if _, err := client.For[*corev1.ConfigMap](c).Namespace("default").Create(t.Context(), obj, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		factory := informer.NewFactory(c, informer.Options{})
		defer factory.Shutdown()
		i := informer.For[*corev1.ConfigMap](factory, informer.ListOptions{LabelSelector: "equal=yes"})
		if err := i.SetTransform(func(obj *corev1.ConfigMap) (*corev1.ConfigMap, error) {
			obj.Labels["mine"] = obj.Name
			return obj, nil
		}); err != nil {
			t.Fatal(err)
		}
		factory.Start(t.Context())
		if err := factory.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := i.Lister().Len(); n != many {
			t.Errorf("%s: %d objects", contentType, n)
		}
		for _, obj := range i.Lister().List("", nil) {
			if obj.Labels["mine"] != obj.Name {
				t.Errorf("%s: the label that %s was given is now %q", contentType, obj.Name, obj.Labels["mine"])
			}
		}
	}
}

// With NoInterning a write to a cached object stays in that object, and its next
// event mends it.
func TestNoInterningKeepsAWriteInItsObject(t *testing.T) {
	for _, contentType := range []client.ContentType{client.JSON, client.Protobuf} {
		t.Run(string(contentType), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
			defer cancel()
			c := levelwiretest.Start(t).Client(client.Options{ContentType: contentType})
			configMaps := client.For[*corev1.ConfigMap](c).Namespace("default")
			createEqual(ctx, t, c, "listed")
			createEqual(ctx, t, c, "listed-too")
			factory := informer.NewFactory(c, informer.Options{NoInterning: true})
			defer factory.Shutdown()
			i := startEqual(ctx, t, factory)
			if err := i.WaitForResourceVersion(ctx, createEqual(ctx, t, c, "watched")); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"listed-too", "watched"} {
				changed, _ := i.Lister().Get("default", name)
				changed.Labels["mine"] = name
				later, err := i.ListerAfter(ctx, createEqual(ctx, t, c, "later-than-"+name))
				if err != nil {
					t.Fatal(err)
				}
				mustStay(t, later.List("", nil), name)
				updated, err := configMaps.UpdateWithRetry(ctx, name, func(obj *corev1.ConfigMap) error {
					obj.Data = map[string]string{"updated": "yes"}
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				mended, err := i.ListerAfter(ctx, updated.ResourceVersion)
				if err != nil {
					t.Fatal(err)
				}
				if obj, _ := mended.Get("default", name); obj.Labels["mine"] != "" {
					t.Errorf("an event has not mended %s", name)
				}
			}
		})
	}
}

// With NoInterning objects that are restored from disk share nothing, either. The
// objects are written to when the informer, which saves them, has ended.
func TestNoInterningOfRestoredObjects(t *testing.T) {
	for _, contentType := range []client.ContentType{client.JSON, client.Protobuf} {
		t.Run(string(contentType), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
			defer cancel()
			c := levelwiretest.Start(t).Client(client.Options{ContentType: contentType})
			createEqual(ctx, t, c, "a")
			createEqual(ctx, t, c, "b")
			opts := informer.Options{NoInterning: true, Disk: informer.DiskOptions{Directory: t.TempDir()}}
			for _, restored := range []bool{false, true} {
				factory := informer.NewFactory(c, opts)
				i := startEqual(ctx, t, factory)
				factory.Shutdown()
				if got := i.Stats().Disk.Restored > 0; got != restored {
					t.Errorf("restored from disk: %v, want %v", got, restored)
				}
				changed, _ := i.Lister().Get("default", "a")
				changed.Labels["mine"] = "a"
				mustStay(t, i.Lister().List("", nil), "a")
			}
		})
	}
}

// createEqual creates a ConfigMap whose labels equal those of the others, and returns
// its version.
func createEqual(ctx context.Context, t *testing.T, c *client.Client, name string) string {
	t.Helper()
	created, err := client.For[*corev1.ConfigMap](c).Namespace("default").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{"equal": "yes", "app": "web"}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return created.ResourceVersion
}

// startEqual starts the factory's informer of what createEqual creates, and waits for
// its first list.
func startEqual(ctx context.Context, t *testing.T, factory *informer.Factory) *informer.SharedInformer[*corev1.ConfigMap] {
	t.Helper()
	i := informer.For[*corev1.ConfigMap](factory, informer.ListOptions{LabelSelector: "equal=yes"})
	factory.Start(ctx)
	if err := factory.WaitForSync(ctx); err != nil {
		t.Fatal(err)
	}
	return i
}

// mustStay fails the test if a write to the object called name shows in another one.
func mustStay(t *testing.T, objects []*corev1.ConfigMap, name string) {
	t.Helper()
	for _, obj := range objects {
		if obj.Name != name && obj.Labels["mine"] != "" {
			t.Errorf("a write to %s has changed %s", name, obj.Name)
		}
	}
}
