package watchcache

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/memory"
)

// saved are the batches that a store has.
func saved(t *testing.T, store storage.Reader) *batches {
	t.Helper()
	b, err := NewFeed(nil, nil, FeedOptions{}).loadTombstones(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// come creates pods and returns the revision of the last.
func come(t *testing.T, store *memory.Store, count int) storage.Revision {
	t.Helper()
	for i := range count {
		write(t, store, pod{namespace: "many", name: fmt.Sprint(i)})
	}
	return now(t, store)
}

// goAway deletes them again, and returns the revision of each deletion.
func goAway(t *testing.T, store *memory.Store, count int) (at []storage.Revision) {
	t.Helper()
	for i := range count {
		at = append(at, erase(t, store, fmt.Sprint("/registry/pods/many/", i)))
	}
	synctest.Wait()
	return at
}

// TestManyDeletionsBetweenTwoCompactions must not become one value that the store
// refuses, nor one that nobody can read.
func TestManyDeletionsBetweenTwoCompactions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := openStore(t)
		_, feeds := startCaches(t, store, Options{})
		const count = 2*tombstoneBatch + 500
		old := come(t, store, count)
		goAway(t, store, count)
		compactAfter(t, store, feeds[0], now(t, store))
		goAway(t, store, 0)
		list := saved(t, store).list
		if len(list) != 3 {
			t.Errorf("%d batches, want 3", len(list))
		}
		for _, batch := range list {
			if len(batch.list) > tombstoneBatch {
				t.Errorf("a batch has %d deletions", len(batch.list))
			}
		}
		later, _ := startCaches(t, store, Options{})
		if got := len(drain(t, watching(t, later[0], WatchOptions{After: old}))); got != count {
			t.Errorf("%d deletions are told, want %d", got, count)
		}
	})
}

// TestTheNewestDeletionsAreWrittenDown if there are more than are kept, those of
// earlier compactions included.
func TestTheNewestDeletionsAreWrittenDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := openStore(t)
		c := New(podResource(), Options{})
		feed := NewFeed(store, []*Cache{c}, FeedOptions{Tombstones: 10})
		follow(t, feed)
		come(t, store, 3)
		goAway(t, store, 3)
		compactAfter(t, store, feed, now(t, store))
		old := come(t, store, 25)
		gone := goAway(t, store, 25)
		compactAfter(t, store, feed, now(t, store))
		b := saved(t, store)
		if len(b.list) != 1 || len(b.list[0].list) != 10 || len(b.stale) > 0 {
			t.Errorf("%d batches and %d stale ones: %+v", len(b.list), len(b.stale), b.list)
		}
		later, _ := startCaches(t, store, Options{})
		if _, err := later[0].Watch(WatchOptions{After: old}); !errors.Is(err, ErrExpired) {
			t.Errorf("a watch from before what is kept: %v", err)
		}
		if got := len(drain(t, watching(t, later[0], WatchOptions{After: gone[14]}))); got != 10 {
			t.Errorf("%d deletions are told, want 10", got)
		}
	})
}

// TestStaleBatchesAreReplaced: what says nothing must not keep the store from being
// compacted, wherever it lies.
func TestStaleBatchesAreReplaced(t *testing.T) {
	foreign := tombstones{from: 1, through: 1 << 40, saved: time.Unix(0, 0)}
	value, err := foreign.encode()
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string][]byte{"of another store": value, "not a batch": []byte("{}")} {
		for _, at := range []storage.Revision{1, 2, 1 << 30} {
			t.Run(fmt.Sprint(name, " at ", at), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					store := openStore(t)
					if _, err := store.Create(t.Context(), fmt.Sprintf("%s%020d", TombstonePrefix, at), value, 0); err != nil {
						t.Fatal(err)
					}
					_, feeds := startCaches(t, store, Options{})
					old := come(t, store, 3)
					goAway(t, store, 3)
					compactAfter(t, store, feeds[0], now(t, store))
					if oldest, err := store.Oldest(t.Context()); err != nil || oldest < old {
						t.Errorf("the store is not compacted: %d, %v", oldest, err)
					}
					if b := saved(t, store); len(b.list) != 1 || len(b.stale) > 0 {
						t.Errorf("%d batches, %d stale ones", len(b.list), len(b.stale))
					}
					later, _ := startCaches(t, store, Options{})
					if got := len(drain(t, watching(t, later[0], WatchOptions{After: old}))); got != 3 {
						t.Errorf("%d deletions are told, want 3", got)
					}
				})
			})
		}
	}
}

// TestAGapMakesEarlierBatchesStale and the next ones take their place.
func TestAGapMakesEarlierBatchesStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := openStore(t)
		_, feeds := startCaches(t, store, Options{})
		for range 2 {
			come(t, store, 2)
			goAway(t, store, 2)
			compactAfter(t, store, feeds[0], now(t, store))
			come(t, store, 2)
			goAway(t, store, 2)
			if err := store.Compact(t.Context(), now(t, store)); err != nil { // somebody else
				t.Fatal(err)
			}
		}
		come(t, store, 2)
		goAway(t, store, 2)
		compactAfter(t, store, feeds[0], now(t, store))
		if b := saved(t, store); len(b.list) != 1 || len(b.list[0].list) != 2 || len(b.stale) > 0 {
			t.Errorf("%+v, and %d stale ones", b.list, len(b.stale))
		}
	})
}

// narrow is a store that takes no long values.
type narrowStore struct {
	*memory.Store
	most int
}

func (n narrowStore) Create(ctx context.Context, key string, value []byte, ttl time.Duration) (storage.Revision, error) {
	if len(value) > n.most {
		return 0, storage.ErrTooLarge
	}
	return n.Store.Create(ctx, key, value, ttl)
}

func (n narrowStore) Update(ctx context.Context, key string, value []byte, expect storage.Revision, ttl time.Duration) (storage.Revision, error) {
	if len(value) > n.most {
		return 0, storage.ErrTooLarge
	}
	return n.Store.Update(ctx, key, value, expect, ttl)
}

// TestWhatCannotBeWrittenDownIsForgotten: a store that refuses it is compacted all
// the same.
func TestWhatCannotBeWrittenDownIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := openStore(t)
		_, feeds := startCaches(t, store, Options{})
		old := come(t, store, 1)
		goAway(t, store, 1)
		compactAfter(t, store, feeds[0], now(t, store))
		large := pod{namespace: "many", name: "0", labels: map[string]string{}}
		for i := range 100 {
			large.labels[fmt.Sprint("label-", i*i*i)] = strings.Repeat(fmt.Sprint(i*i), 3)
		}
		write(t, store, large)
		goAway(t, store, 1)
		at := now(t, store)
		if worth, err := feeds[0].BeforeCompaction(t.Context(), narrowStore{store, 500}, at); !worth || err != nil {
			t.Fatalf("%v, %v", worth, err)
		}
		if err := store.Compact(t.Context(), at); err != nil {
			t.Fatal(err)
		}
		come(t, store, 1)
		gone := goAway(t, store, 1)
		compactAfter(t, store, feeds[0], now(t, store))
		if b := saved(t, store); len(b.list) != 1 || b.list[0].from != at || len(b.stale) > 0 {
			t.Errorf("%+v, and %d stale ones; want one that begins at %d", b.list, len(b.stale), at)
		}
		later, _ := startCaches(t, store, Options{})
		if _, err := later[0].Watch(WatchOptions{After: old}); !errors.Is(err, ErrExpired) {
			t.Errorf("a watch from before a deletion that is forgotten: %v", err)
		}
		expect(t, drain(t, watching(t, later[0], WatchOptions{After: gone[0] - 1})), fmt.Sprintf("DELETED many/0@%d", gone[0]))
	})
}
