package read

import (
	"context"
	"fmt"
	"testing"

	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/storage"
)

// fixedVisibility is a set that does not change.
type fixedVisibility struct {
	cache *watchcache.Cache
	set   *watchcache.Namespaces
}

func (v fixedVisibility) Wait(context.Context, storage.Revision) error { return nil }
func (v fixedVisibility) Reached() storage.Revision                    { return v.cache.Reached() }
func (v fixedVisibility) Now() *watchcache.Namespaces                  { return v.set }
func (v fixedVisibility) Subscribe(watchcache.Waker)                   {}
func (v fixedVisibility) Unsubscribe(watchcache.Waker)                 {}
func (v fixedVisibility) Await(storage.Revision, watchcache.Waker)     {}

func (v fixedVisibility) At(storage.Revision) (*watchcache.Namespaces, error) { return v.set, nil }

func (v fixedVisibility) Next(storage.Revision) (storage.Revision, *watchcache.Namespaces, error) {
	return 0, nil, nil
}

// TestVisibleWatcherParts opens watches of few and of many namespaces: the number
// of watchers of the cache is bounded.
func TestVisibleWatcherParts(t *testing.T) {
	f := newFixture(t)
	must(t, f.cache.WaitReady(t.Context()))
	for namespaces, want := range map[int]int{1: 1, 64: 64, 65: 1, 5000: 1} {
		names := make([]string, namespaces)
		for i := range names {
			names[i] = fmt.Sprintf("n%d", i)
		}
		visible := fixedVisibility{f.cache, watchcache.NewNamespaces(names)}
		w, err := newVisibleWatcher(t.Context(), f.cache, visible, &watchcache.Selection{}, f.cache.Reached(), nil, nil)
		must(t, err)
		if len(w.parts) != want {
			t.Errorf("a watch of %d namespaces has %d watchers of the cache; want %d", namespaces, len(w.parts), want)
		}
		w.Close()
	}
}
