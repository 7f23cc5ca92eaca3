package informer_test

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/discovery"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/scheme"
	"github.com/levelwire/levelwire/levelwiretest"
)

// A factory of one namespace has informers of cluster-scoped resources, too.
func TestNamespaceOfTheFactoryDoesNotLimitClusterScopedResources(t *testing.T) {
	c := levelwiretest.Start(t).Client(client.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	factory := informer.NewFactory(c, informer.Options{Namespace: metav1.NamespaceDefault})
	defer factory.Shutdown()
	namespaces := informer.For[*corev1.Namespace](factory, informer.ListOptions{})
	factory.Start(ctx)
	if err := factory.WaitForSync(ctx); err != nil {
		t.Fatal(err)
	}
	if _, ok := namespaces.Lister().Get("", metav1.NamespaceSystem); !ok {
		t.Error("the informer has no namespaces")
	}
	if err := informer.For[*corev1.Node](factory, informer.ListOptions{Namespace: "a"}).Err(); err == nil {
		t.Error("nodes of a namespace: no error")
	}
}

// Lamp is a type that nothing registers.
type Lamp struct{ Gadget }

func TestInformerOfATypeThatIsNotRegistered(t *testing.T) {
	c := levelwiretest.Start(t).Client(client.Options{})
	factory := informer.NewFactory(c, informer.Options{})
	defer factory.Shutdown()
	lamps := informer.For[*Lamp](factory, informer.ListOptions{})
	_, added := lamps.AddHandler(informer.HandlerFuncs[*Lamp]{}, informer.HandlerOptions{})
	factory.Start(t.Context())
	for what, err := range map[string]error{"Err": lamps.Err(), "AddHandler": added, "WaitForSync": factory.WaitForSync(t.Context())} {
		if !errors.Is(err, scheme.ErrNotRegistered) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// Every resource that the server has is in the scheme, with the same scope.
func TestServedResourcesAreInTheScheme(t *testing.T) {
	c := levelwiretest.Start(t).Client(client.Options{})
	served, err := discovery.Fetch(t.Context(), c)
	if err != nil || len(served) < 50 {
		t.Fatalf("%d resources, %v", len(served), err)
	}
	for _, r := range served {
		m, ok := scheme.Default.ByResource(r.GroupVersionResource())
		if !ok {
			if r.Mapping.Kind.Kind != "Binding" { // only created, with another client
				t.Errorf("%v is not in the scheme", r.GroupVersionResource())
			}
			continue
		}
		if m.Kind != r.Mapping.Kind || m.Scope != r.Mapping.Scope {
			t.Errorf("served %+v; in the scheme %+v", r.Mapping, m)
		}
	}
}
