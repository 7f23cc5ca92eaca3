package tombstone_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/server/internal/watchcache/feed"
	"github.com/levelwire/levelwire/server/internal/watchcache/tombstone"
	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/memory"
)

// saved returns the batches that a store has, and how many stale ones.
func saved(t *testing.T, store storage.Reader) ([]tombstone.SavedBatch, int) {
	t.Helper()
	list, stale, err := tombstone.SavedBatches(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	return list, stale
}

// createPods creates pods and returns the revision of the last.
func createPods(t *testing.T, store *memory.Store, count int) storage.Revision {
	t.Helper()
	for i := range count {
		write(t, store, pod{Namespace: "many", Name: fmt.Sprint(i)})
	}
	return now(t, store)
}

// deletePods deletes them again, and returns the revision of each deletion.
func deletePods(t *testing.T, store *memory.Store, count int) (at []storage.Revision) {
	t.Helper()
	for i := range count {
		at = append(at, erase(t, store, fmt.Sprint("/registry/pods/many/", i)))
	}
	synctest.Wait()
	return at
}

// TestManyDeletionsBetweenTwoCompactions must not become one value that the store
// refuses, or that cannot be decoded.
func TestManyDeletionsBetweenTwoCompactions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := openStore(t)
		_, feeds := startCaches(t, store, watchcache.Options{})
		const count = 2*tombstone.BatchRecords + 500
		old := createPods(t, store, count)
		deletePods(t, store, count)
		compactAfter(t, store, feeds[0], now(t, store))
		deletePods(t, store, 0)
		list, _ := saved(t, store)
		if len(list) != 3 {
			t.Errorf("%d batches, want 3", len(list))
		}
		for _, batch := range list {
			if len(batch.Records) > tombstone.BatchRecords {
				t.Errorf("a batch has %d deletions", len(batch.Records))
			}
		}
		later, _ := startCaches(t, store, watchcache.Options{})
		if got := len(drain(t, watching(t, later[0], watchcache.WatchOptions{After: old}))); got != count {
			t.Errorf("%d deletions are delivered, want %d", got, count)
		}
	})
}

// TestTheNewestDeletionsAreSaved if there are more than are kept, those of
// earlier compactions included.
func TestTheNewestDeletionsAreSaved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := openStore(t)
		c := watchcache.New(podResource(), watchcache.Options{})
		feed := feed.New(store, []*watchcache.Cache{c}, feed.Options{Tombstones: 10})
		run(t, feed)
		createPods(t, store, 3)
		deletePods(t, store, 3)
		compactAfter(t, store, feed, now(t, store))
		old := createPods(t, store, 25)
		gone := deletePods(t, store, 25)
		compactAfter(t, store, feed, now(t, store))
		list, stale := saved(t, store)
		if len(list) != 1 || len(list[0].Records) != 10 || stale > 0 {
			t.Errorf("%d batches and %d stale ones: %+v", len(list), stale, list)
		}
		later, _ := startCaches(t, store, watchcache.Options{})
		if _, err := later[0].Watch(watchcache.WatchOptions{After: old}); !errors.Is(err, watchcache.ErrExpired) {
			t.Errorf("a watch from before what is kept: %v", err)
		}
		if got := len(drain(t, watching(t, later[0], watchcache.WatchOptions{After: gone[14]}))); got != 10 {
			t.Errorf("%d deletions are delivered, want 10", got)
		}
	})
}

// TestStaleBatchesAreReplaced: a stale batch must not prevent compactions, whatever
// revision it begins at.
func TestStaleBatchesAreReplaced(t *testing.T) {
	value, err := tombstone.EncodeEmpty(1, 1<<40, time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string][]byte{"of another store": value, "not a batch": []byte("{}")} {
		for _, at := range []storage.Revision{1, 2, 1 << 30} {
			t.Run(fmt.Sprint(name, " at ", at), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					store := openStore(t)
					if _, err := store.Create(t.Context(), fmt.Sprintf("%s%020d", tombstone.Prefix, at), value, 0); err != nil {
						t.Fatal(err)
					}
					_, feeds := startCaches(t, store, watchcache.Options{})
					old := createPods(t, store, 3)
					deletePods(t, store, 3)
					compactAfter(t, store, feeds[0], now(t, store))
					if oldest, err := store.Oldest(t.Context()); err != nil || oldest < old {
						t.Errorf("the store is not compacted: %d, %v", oldest, err)
					}
					if list, stale := saved(t, store); len(list) != 1 || stale > 0 {
						t.Errorf("%d batches, %d stale ones", len(list), stale)
					}
					later, _ := startCaches(t, store, watchcache.Options{})
					if got := len(drain(t, watching(t, later[0], watchcache.WatchOptions{After: old}))); got != 3 {
						t.Errorf("%d deletions are delivered, want 3", got)
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
		_, feeds := startCaches(t, store, watchcache.Options{})
		for range 2 {
			createPods(t, store, 2)
			deletePods(t, store, 2)
			compactAfter(t, store, feeds[0], now(t, store))
			createPods(t, store, 2)
			deletePods(t, store, 2)
			if err := store.Compact(t.Context(), now(t, store)); err != nil { // another program
				t.Fatal(err)
			}
		}
		createPods(t, store, 2)
		deletePods(t, store, 2)
		compactAfter(t, store, feeds[0], now(t, store))
		if list, stale := saved(t, store); len(list) != 1 || len(list[0].Records) != 2 || stale > 0 {
			t.Errorf("%+v, and %d stale ones", list, stale)
		}
	})
}

// narrowStore is a store that refuses long values.
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

// TestStoreThatRefusesBatchesIsCompacted: the deletions are lost, and the store is
// compacted all the same.
func TestStoreThatRefusesBatchesIsCompacted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := openStore(t)
		_, feeds := startCaches(t, store, watchcache.Options{})
		old := createPods(t, store, 1)
		deletePods(t, store, 1)
		compactAfter(t, store, feeds[0], now(t, store))
		large := pod{Namespace: "many", Name: "0", Labels: map[string]string{}}
		for i := range 100 {
			large.Labels[fmt.Sprint("label-", i*i*i)] = strings.Repeat(fmt.Sprint(i*i), 3)
		}
		write(t, store, large)
		deletePods(t, store, 1)
		at := now(t, store)
		if worth, err := feeds[0].BeforeCompaction(t.Context(), narrowStore{store, 500}, at); !worth || err != nil {
			t.Fatalf("%v, %v", worth, err)
		}
		if err := store.Compact(t.Context(), at); err != nil {
			t.Fatal(err)
		}
		createPods(t, store, 1)
		gone := deletePods(t, store, 1)
		compactAfter(t, store, feeds[0], now(t, store))
		if list, stale := saved(t, store); len(list) != 1 || list[0].From != at || stale > 0 {
			t.Errorf("%+v, and %d stale ones; want one that begins at %d", list, stale, at)
		}
		later, _ := startCaches(t, store, watchcache.Options{})
		if _, err := later[0].Watch(watchcache.WatchOptions{After: old}); !errors.Is(err, watchcache.ErrExpired) {
			t.Errorf("a watch from before a deletion that was lost: %v", err)
		}
		expect(t, drain(t, watching(t, later[0], watchcache.WatchOptions{After: gone[0] - 1})), fmt.Sprintf("DELETED many/0@%d", gone[0]))
	})
}
