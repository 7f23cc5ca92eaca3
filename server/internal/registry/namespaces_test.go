package registry_test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/storage"
)

// heldBack is a store to which the creates of ConfigMaps come late.
type heldBack struct {
	storage.Store
	meanwhile func()
}

func (s *heldBack) Create(ctx context.Context, key string, value []byte, ttl time.Duration) (storage.Revision, error) {
	if s.meanwhile != nil && strings.HasPrefix(key, "/registry/configmaps/") {
		s.meanwhile()
	}
	return s.Store.Create(ctx, key, value, ttl)
}

// endNamespace deletes a namespace and, if wholly, finds it empty.
func endNamespace(t *testing.T, f *fixture, name string, wholly bool) {
	t.Helper()
	r := f.of(t, "namespaces")
	if _, err := r.Delete(t.Context(), "", name, nil); err != nil {
		t.Fatal(err)
	}
	if !wholly {
		return
	}
	if _, err := r.UpdateSubresource(t.Context(), "", name, "finalize", changing(func(ns *corev1.Namespace) { ns.Spec.Finalizers = nil }), registry.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestNothingIsLeftOfANamespace writes an object after its namespace, in which
// nothing was found, has begun or even ended to be deleted.
func TestNothingIsLeftOfANamespace(t *testing.T) {
	for what, wholly := range map[string]bool{"is ending": false, "has ended": true} {
		t.Run(what, func(t *testing.T) {
			store := &heldBack{Store: openMemory(t)}
			f := newFixtureOver(t, store)
			f.create(t, "namespaces", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
			store.meanwhile = func() { endNamespace(t, f, "n", wholly) }
			if _, err := f.of(t, "configmaps").Create(t.Context(), "n", configMap("late", "x"), registry.WriteOptions{}); err != nil {
				t.Errorf("a create that was admitted before: %v", err)
			}
			page, err := store.List(t.Context(), "/registry/configmaps/n/", storage.ListOptions{})
			if err != nil || len(page.Items) != 0 {
				t.Errorf("%d objects are left, %v", len(page.Items), err)
			}
		})
	}
}

// TestNamespaceIsClosedAtOnce: once a client has the answer that a namespace is
// being deleted, it creates nothing in it, though the cache still shows the
// namespace as it was.
func TestNamespaceIsClosedAtOnce(t *testing.T) {
	for what, test := range map[string]struct {
		wholly bool
		code   int32
		reason metav1.StatusReason
	}{"is ending": {false, 403, metav1.StatusReasonForbidden}, "has ended": {true, 404, metav1.StatusReasonNotFound}} {
		t.Run(what, func(t *testing.T) {
			all, configure, _ := withCaches(t)
			f := newFixture(t, configure)
			f.create(t, "namespaces", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
			fillOnce(t, f.store, all["namespaces"])
			endNamespace(t, f, "n", test.wholly)
			_, err := f.of(t, "configmaps").Create(t.Context(), "n", configMap("late", "x"), registry.WriteOptions{})
			wantStatus(t, what, err, test.code, test.reason, "")
		})
	}
}

// TestNamespaceMadeAnewIsOpen: the cache still shows the namespace of that name
// that is gone.
func TestNamespaceMadeAnewIsOpen(t *testing.T) {
	all, configure, _ := withCaches(t)
	f := newFixture(t, configure)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	f.create(t, "namespaces", namespace.DeepCopy())
	endNamespace(t, f, "n", false)
	fillOnce(t, f.store, all["namespaces"])
	_, err := f.of(t, "configmaps").Create(t.Context(), "n", configMap("a", "x"), registry.WriteOptions{})
	wantStatus(t, "a namespace that is ending", err, 403, metav1.StatusReasonForbidden, "because it is being terminated")

	if _, err := f.of(t, "namespaces").UpdateSubresource(t.Context(), "", "n", "finalize", changing(func(ns *corev1.Namespace) { ns.Spec.Finalizers = nil }), registry.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.create(t, "namespaces", namespace)
	if _, err := f.of(t, "configmaps").Create(t.Context(), "n", configMap("a", "x"), registry.WriteOptions{}); err != nil {
		t.Errorf("a namespace that was made anew: %v", err)
	}
}

// fillOnce makes a cache show what the store holds now, for ever.
func fillOnce(t *testing.T, store storage.Store, cache *watchcache.Cache) {
	t.Helper()
	res := cache.Resource()
	page, err := store.List(t.Context(), res.StorePrefix, storage.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var objects []*watchcache.Object
	for _, kv := range page.Items {
		o, err := cache.Decode(kv.Key[len(res.StorePrefix):], kv.Value, kv.Modified)
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, o)
	}
	if _, err := cache.Fill(objects, page.Revision); err != nil {
		t.Fatal(err)
	}
}
