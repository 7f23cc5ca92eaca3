package follower

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin"
	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/memory"
)

// fixture is a cache of ConfigMaps.
type fixture struct {
	*testing.T
	cache    *watchcache.Cache
	registry registry.Registry
	revision storage.Revision // of the latest change
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	store, err := memory.Open(memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	res := builtin.Table().Lookup("", "v1", "configmaps")
	cache := watchcache.New(res, watchcache.Options{})
	if _, err := cache.Fill(nil, 1); err != nil {
		t.Fatal(err)
	}
	set, err := registry.NewSet(registry.Config{Store: store, Resources: builtin.Table(), Cache: func(*resource.Resource) *watchcache.Cache { return cache }})
	if err != nil {
		t.Fatal(err)
	}
	return &fixture{T: t, cache: cache, registry: set.For(res), revision: 1}
}

// created is the change by which a ConfigMap is created at the fixture's revision.
func (f *fixture) created(name string) watchcache.Change {
	f.Helper()
	stored, err := f.cache.Resource().Encode(f.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}})
	if err != nil {
		f.Fatal(err)
	}
	key := "default/" + name
	o, err := f.cache.Decode(key, stored, f.revision)
	if err != nil {
		f.Fatal(err)
	}
	return watchcache.Change{Key: key, Object: o, Revision: f.revision}
}

// change creates another ConfigMap at the next revision.
func (f *fixture) change() {
	f.Helper()
	f.revision++
	f.cache.Apply([]watchcache.Change{f.created(fmt.Sprint("c", f.revision))})
}

// TestChangesThatKeepComing: a decision applies what there was when it was made, also if another change has
// come whenever it has applied one, and Run goes on with that.
func TestChangesThatKeepComing(t *testing.T) {
	fixture := newFixture(t)
	const many = 100
	var applied []storage.Revision
	f := New(slog.New(slog.DiscardHandler), Kind{
		Registry: fixture.registry,
		Replace:  func(context.Context, watchcache.Snapshot) {},
		Apply: func(_ context.Context, events []watchcache.Event) {
			for i := range events {
				applied = append(applied, events[i].Revision)
			}
			if fixture.revision < many {
				fixture.change()
			}
		},
	})
	if err := f.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	fixture.change()
	for len(f.wake) > 0 {
		<-f.wake
	}
	for decided := 1; fixture.revision < many; decided++ {
		asked := fixture.revision
		if err := f.CatchUp(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := len(applied); n > 2*decided || applied[n-1] < asked {
			t.Fatalf("%d changes are applied by %d decisions, up to %d; the last decision needs %d", n, decided, applied[n-1], asked)
		}
		if len(f.wake) == 0 {
			t.Fatal("Run is not woken for the changes that were left")
		}
	}
	if err := f.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, r := range applied {
		if r != storage.Revision(i+2) {
			t.Fatalf("changes are applied at %v", applied)
		}
	}
	if len(applied) != many-1 {
		t.Errorf("%d changes were applied, want %d", len(applied), many-1)
	}

	// A decision that read a change before the cache's state showed it counts as one that has applied that state.
	fixture.change()
	f.sources[0].applied.Store(f.states()[0].number)
	for len(applied) < many {
		if err := f.readOn(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.readOn(t.Context()); err != nil {
		t.Fatal(err)
	}
	for len(f.wake) > 0 {
		<-f.wake
	}
	if fixture.change(); len(f.wake) == 0 {
		t.Error("Run is not woken for what comes when all was read")
	}
}

// TestDecisionsThatWait for one that applies a change do not apply one more each, although changes keep coming.
func TestDecisionsThatWait(t *testing.T) {
	fixture, applied := newFixture(t), 0
	f := New(slog.New(slog.DiscardHandler), Kind{
		Registry: fixture.registry,
		Replace:  func(context.Context, watchcache.Snapshot) {},
		Apply: func(_ context.Context, events []watchcache.Event) {
			applied += len(events)
			fixture.change()
		},
	})
	if err := f.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	fixture.change()
	var needed [50][]state // by decisions that wait for the lock
	for i := range needed {
		needed[i] = f.states()
	}
	for i := range needed {
		if err := f.update(t.Context(), needed[i], false); err != nil {
			t.Fatal(err)
		}
	}
	if applied == 0 || applied > 2 {
		t.Errorf("%d changes were applied by decisions that need one", applied)
	}
}

// TestAnotherChangeOfARevision: a relay brings the changes of one revision one by one, and a decision needs those that there are.
func TestAnotherChangeOfARevision(t *testing.T) {
	fixture, applied := newFixture(t), 0
	f := New(slog.New(slog.DiscardHandler), Kind{
		Registry: fixture.registry,
		Replace:  func(context.Context, watchcache.Snapshot) {},
		Apply:    func(_ context.Context, events []watchcache.Event) { applied += len(events) },
	})
	fixture.revision++
	for i := range 4 {
		if err := f.CatchUp(t.Context()); err != nil {
			t.Fatal(err)
		}
		if applied != i {
			t.Errorf("%d changes of one revision were applied, and %d are there", applied, i)
		}
		fixture.cache.ApplyNext(fixture.created(fmt.Sprint("c", i)))
	}
}

// TestStoreThatHasGoneBack: a decision needs the objects that there are then.
func TestStoreThatHasGoneBack(t *testing.T) {
	fixture, held := newFixture(t), 0
	f := New(slog.New(slog.DiscardHandler), Kind{
		Registry: fixture.registry,
		Replace:  func(_ context.Context, objects watchcache.Snapshot) { held = objects.Len() },
		Apply:    func(_ context.Context, events []watchcache.Event) { held += len(events) },
	})
	for range 3 {
		fixture.change()
	}
	if err := f.CatchUp(t.Context()); err != nil || held != 3 {
		t.Fatalf("%d objects are held, want 3 (%v)", held, err)
	}
	fixture.change()
	needed := f.states() // by a decision that waits while the store goes back
	fixture.revision = 2
	if _, err := fixture.cache.Fill([]*watchcache.Object{fixture.created("c2").Object}, 2); err != nil {
		t.Fatal(err)
	}
	if err := f.update(t.Context(), needed, false); err != nil {
		t.Fatal(err)
	}
	for want := 1; want < 4; want++ {
		if err := f.CatchUp(t.Context()); err != nil || held != want {
			t.Errorf("%d objects are held, want %d (%v)", held, want, err)
		}
		fixture.change()
	}
}
