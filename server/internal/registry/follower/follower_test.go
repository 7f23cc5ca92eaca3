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

// TestChangesThatKeepComing: a decision applies what there was when it was made, also if another change has
// come whenever it has applied one, and Run goes on with that.
func TestChangesThatKeepComing(t *testing.T) {
	store, err := memory.Open(memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	res := builtin.Table().Lookup("", "v1", "configmaps")
	cache := watchcache.New(res, watchcache.Options{})
	if _, err := cache.Fill(nil, 1); err != nil {
		t.Fatal(err)
	}
	set, err := registry.NewSet(registry.Config{Store: store, Resources: builtin.Table(), Cache: func(*resource.Resource) *watchcache.Cache { return cache }})
	if err != nil {
		t.Fatal(err)
	}
	revision := storage.Revision(1)
	change := func() {
		revision++
		key := fmt.Sprint("default/c", revision)
		stored, err := res.Encode(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: key[len("default/"):]}})
		if err != nil {
			t.Fatal(err)
		}
		o, err := cache.Decode(key, stored, revision)
		if err != nil {
			t.Fatal(err)
		}
		cache.Apply([]watchcache.Change{{Key: key, Object: o, Revision: revision}})
	}
	const many = 100
	var applied []storage.Revision
	f := New(slog.New(slog.DiscardHandler), Kind{
		Registry: set.For(res),
		Replace:  func(context.Context, watchcache.Snapshot) {},
		Apply: func(_ context.Context, events []watchcache.Event) {
			for i := range events {
				applied = append(applied, events[i].Revision)
			}
			if revision < many {
				change()
			}
		},
	})
	if err := f.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	change()
	for len(f.wake) > 0 {
		<-f.wake
	}
	for decided := 1; revision < many; decided++ {
		asked := revision
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

	// A decision that read a change before the cache's state showed it has left both at one revision.
	change()
	f.sources[0].applied.Store(int64(cache.StateRevision()))
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
	if change(); len(f.wake) == 0 {
		t.Error("Run is not woken for what comes when all was read")
	}
}
