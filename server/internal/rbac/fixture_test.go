package rbac

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"go.uber.org/goleak"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/internal/testwait"
	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin"
	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/server/internal/watchcache/feed"
	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is the write path and the caches of the built-in kinds over a store in
// memory.
type fixture struct {
	testing.TB
	set    *registry.Set
	store  storage.Store
	caches map[*resource.Resource]*watchcache.Cache
	feed   *feed.Feed
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	return newFixtureWith(t, func(s storage.Store) storage.Store { return s })
}

// newFixtureWith is newFixture with another store for the writes.
func newFixtureWith(t testing.TB, writes func(storage.Store) storage.Store) *fixture {
	t.Helper()
	store, err := memory.Open(memory.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, store.Close()) })
	f := &fixture{TB: t, store: store, caches: map[*resource.Resource]*watchcache.Cache{}}
	table := builtin.Table()
	var list []*watchcache.Cache
	for _, res := range table.All() {
		if res.Storage == nil && (res.Group == rbacv1.GroupName || res.Plural == "namespaces") {
			f.caches[res] = watchcache.New(res, watchcache.Options{FreshnessWait: testwait.Limit})
			list = append(list, f.caches[res])
		}
	}
	f.set, err = registry.NewSet(registry.Config{
		Store: writes(store), Resources: table,
		Cache: func(stored *resource.Resource) *watchcache.Cache { return f.caches[stored] },
	})
	must(t, err)
	f.feed = feed.New(store, list, feed.Options{})
	return f
}

// start feeds the caches until the test ends.
func (f *fixture) start() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = f.feed.Run(ctx)
	}()
	f.Cleanup(func() { cancel(); <-done })
}

func (f *fixture) index() *Index {
	f.Helper()
	x, err := NewIndex(f.set, slog.New(slog.DiscardHandler))
	must(f, err)
	return x
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (f *fixture) of(plural string) registry.Registry {
	f.Helper()
	r, ok := f.set.Lookup(rbacv1.GroupName, "v1", plural)
	if !ok {
		f.Fatalf("%s are not served", plural)
	}
	return r
}

func (f *fixture) create(plural string, obj resource.Object) {
	f.Helper()
	_, err := f.of(plural).Create(context.Background(), obj.GetNamespace(), obj, registry.WriteOptions{})
	must(f, err)
}

func (f *fixture) delete(plural, namespace, name string) {
	f.Helper()
	_, err := f.of(plural).Delete(context.Background(), namespace, name, nil)
	must(f, err)
}

func named(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func rule(verbs, group, resources string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: []string{verbs}, APIGroups: []string{group}, Resources: []string{resources}}
}

func clusterRole(name string, rules ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: named("", name), Rules: rules}
}

func user(name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: "User", APIGroup: rbacv1.GroupName, Name: name}
}

func roleRef(kind, name string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
}

// expect asks for a decision and its reason.
func (f *fixture) expect(x *Index, a auth.Attributes, want auth.Decision, reason string) {
	f.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	got, because, err := x.Authorize(ctx, a)
	if got != want || because != reason || err != nil {
		f.Errorf("%s %s: decision %d, %q, %v; want %d, %q", a.Verb, a.Resource, got, because, err, want, reason)
	}
}
