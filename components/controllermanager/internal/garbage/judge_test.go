package garbage

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/client/discovery"
	"github.com/levelwire/levelwire/client/scheme"
)

// invented returns an object of the graph whose owners do not exist.
func invented(c *Controller, name string, owners int) controller.Key {
	o := object{resource: configMaps, namespace: "default", name: name, uid: types.UID(name), version: "1"}
	for i := range owners {
		owner := fmt.Sprint(name, "-owner-", i)
		o.owners = append(o.owners, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: owner, UID: types.UID(owner)})
	}
	c.graph.put(o)
	return controller.Key{Name: name}
}

// TestManyInventedOwners: owners that do not exist are asked for in parts. What was found is cut from the object, so that
// it is not asked for again.
func TestManyInventedOwners(t *testing.T) {
	c, requests := asked(t, map[string]string{"large": "1"})
	if _, err := c.reconcile(t.Context(), invented(c, "large", 15_000)); err != nil {
		t.Fatal(err)
	}
	got := requests()
	if len(got) > maxAsked+2 {
		t.Fatalf("%d requests in one go", len(got))
	}
	// The object has another owner than the invented ones on the server, so that there is nothing to cut.
	if want := []string{fmt.Sprint("GET large-owner-", maxAsked-1), "GET large"}; !slices.Equal(got[len(got)-2:], want) {
		t.Errorf("the last requests are %v", got[len(got)-2:])
	}
}

// TestManyInventedOwnersHoldNothingUp: a few workers ask for many owners of an object, and the others collect.
func TestManyInventedOwnersHoldNothingUp(t *testing.T) {
	c, requests := asked(t, map[string]string{"small": "1"})
	for range manyOwners {
		c.asking <- struct{}{}
	}
	result, err := c.reconcile(t.Context(), invented(c, "large", 15_000))
	if got := requests(); err != nil || result != controller.After(askRetry) || len(got) > 0 {
		t.Errorf("%v, %v after %d requests", result, err, len(got))
	}
	if _, err := c.reconcile(t.Context(), invented(c, "small", fewOwners)); err != nil {
		t.Error(err)
	}
	if got := requests(); len(got) != fewOwners+1 || got[fewOwners] != "DELETE small" {
		t.Errorf("%v", got)
	}
}

// TestOwnersNamedTwice are asked for once, also those that are there.
func TestOwnersNamedTwice(t *testing.T) {
	c, requests := asked(t, map[string]string{"there": "1"})
	o := object{resource: configMaps, namespace: "default", name: "o", uid: "o"}
	for range 10 {
		o.owners = append(o.owners, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "there", UID: "there"})
	}
	c.graph.put(o)
	if _, err := c.reconcile(t.Context(), controller.Key{Name: "o"}); err != nil {
		t.Error(err)
	}
	if got := requests(); !slices.Equal(got, []string{"GET there"}) {
		t.Errorf("%v", got)
	}
}

// TestAbsentOwnersOfAnySize: what is remembered of an absent owner does not depend on the size of its name, and many
// that are added do not displace one that was added before them.
func TestAbsentOwnersOfAnySize(t *testing.T) {
	var a absent
	first := owner{name: strings.Repeat("x", 1<<20)}
	a.add(first)
	for n := range maxAbsent {
		a.add(owner{name: fmt.Sprint(n)})
	}
	if !a.has(first) {
		t.Error("it is displaced")
	}
}

// TestAnswersThatAreNotTheOwner: an answer that has no uid, or another name than was asked for, does not say that the owner
// is gone. Nothing is deleted because of it.
func TestAnswersThatAreNotTheOwner(t *testing.T) {
	for name, test := range map[string]struct {
		metadata string
		deleted  bool
	}{
		"no uid":       {`"name":"owner"`, false},
		"another name": {`"name":"other","uid":"other"`, false},
		"another uid":  {`"name":"owner","uid":"other"`, true},
	} {
		deleted := false
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			deleted = deleted || r.Method == http.MethodDelete
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"namespace":"default",%s}}`, test.metadata)
		}))
		cl, err := client.New(&rest.Config{Host: s.URL}, client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		c, err := New(cl, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		c.kinds[schema.GroupKind{Kind: "ConfigMap"}] = kind{configMaps, true}
		o := object{resource: configMaps, namespace: "default", name: "o", uid: "o", version: "1",
			owners: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: "owner"}}}
		c.graph.put(o)
		if _, err := c.reconcile(t.Context(), controller.Key{Name: "o"}); (err == nil) != test.deleted || deleted != test.deleted {
			t.Errorf("%s: deleted %v, %v", name, deleted, err)
		}
		cl.CloseIdleConnections()
		s.Close()
	}
}

// TestKindOfTwoResources: an owner is looked for in the resource that is followed, and not in another view of its kind,
// which may lack it.
func TestKindOfTwoResources(t *testing.T) {
	templates, views := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "templates"}, schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "views"}
	resource := func(gvr schema.GroupVersionResource, verbs ...string) discovery.Resource {
		return discovery.Resource{Verbs: verbs, Mapping: scheme.Mapping{Kind: gvr.GroupVersion().WithKind("Template"), Resource: gvr.Resource, Scope: scheme.Namespaced}}
	}
	followed, view := resource(templates, "get", "list", "watch", "delete"), resource(views, "get")
	for name, resources := range map[string][]discovery.Resource{"first": {followed, view}, "last": {view, followed}} {
		c, _ := asked(t, nil)
		c.note(resources)
		if k, ok := c.kindOf(metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "Template"}); !ok || k.resource != templates {
			t.Errorf("%s: %+v", name, k)
		}
	}
}
