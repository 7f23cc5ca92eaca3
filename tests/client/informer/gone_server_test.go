package informer_test

import (
	"context"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/reflector"
	"github.com/levelwire/levelwire/levelwiretest"
)

var widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

func definitions(c *client.Client) client.Resource[*apiextensionsv1.CustomResourceDefinition] {
	return client.For[*apiextensionsv1.CustomResourceDefinition](c)
}

// define defines widgets and makes one.
func define(ctx context.Context, t *testing.T, c *client.Client, name string) {
	t.Helper()
	anything := true
	_, err := definitions(c).Create(ctx, &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: widgets.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Singular: "widget", Kind: "Widget", ListKind: "WidgetList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &anything}}}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	widget := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Widget"}}
	widget.SetName(name)
	for {
		_, err := client.Dynamic(c, widgets).Namespace("default").Create(ctx, widget, metav1.CreateOptions{})
		if err == nil {
			return
		}
		if !apierrors.IsNotFound(err) { // it is not served at once
			t.Fatal(err)
		}
	}
}

// An informer of a resource that is defined, given up and defined again is
// never made anew.
func TestCustomResourcesComeAndGo(t *testing.T) {
	ctx, c := bounded(t), levelwiretest.Start(t).Client(client.Options{})
	failed := make(chan struct{}, 1) // a token when an attempt has failed
	f := informer.NewFactory(c, informer.Options{Reflector: reflector.Options{
		GoneAfter: 200 * time.Millisecond, Backoff: reflector.Backoff{Base: 5 * time.Millisecond, Max: 20 * time.Millisecond},
		OnError: func(string, error) {
			select {
			case failed <- struct{}{}:
			default:
			}
		},
	}})
	defer f.Shutdown()
	i := informer.Dynamic(f, widgets, informer.ListOptions{})
	calls := make(chan string, 100)
	registration, err := i.AddHandler(informer.HandlerFuncs[*unstructured.Unstructured]{
		Add:    func(w *unstructured.Unstructured, _ bool) { calls <- "+" + w.GetName() },
		Delete: func(w *unstructured.Unstructured, _ bool) { calls <- "-" + w.GetName() },
	}, informer.HandlerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	f.Start(ctx) // there are no widgets yet
	awaitCall := func(want string) {
		t.Helper()
		select {
		case got := <-calls:
			if got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		case <-ctx.Done():
			t.Fatalf("never got %s: %v", want, i.Freshness())
		}
	}
	gone := func() {
		t.Helper()
		for i.Freshness().GoneSince.IsZero() {
			select {
			case <-failed:
			case <-ctx.Done():
				t.Fatalf("never gone: %+v", i.ReflectorStats())
			}
		}
	}
	gone()
	for _, name := range []string{"first", "second"} {
		define(ctx, t, c, name)
		awaitCall("+" + name)
		if err := definitions(c).Delete(ctx, "widgets.example.com", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		awaitCall("-" + name)
		gone()
		if n := i.Lister().Len(); n != 0 {
			t.Errorf("%d widgets are left", n)
		}
	}
	if !registration.HasSynced() {
		t.Error("the handler never was synced")
	}
	if lists := i.ReflectorStats().Lists; lists[reflector.ListReturned] != 2 {
		t.Errorf("lists: %v", lists)
	}
}
