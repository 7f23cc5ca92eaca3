package tombstone_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/server/internal/watchcache/tombstone"
	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/memory"
)

// TestTombstonesSurvive compacts, starts new caches, and resumes from before all
// compactions.
func TestTombstonesSurvive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := openStore(t)
		_, feeds := startCaches(t, store, watchcache.Options{})
		write(t, store, podA)
		old := write(t, store, podB)
		var gone []storage.Revision
		for range 3 {
			gone = append(gone, erase(t, store, "/registry/pods/"+podA.Key()))
			write(t, store, podA)
			compactAfter(t, store, feeds[0], now(t, store))
		}
		unchanged := now(t, store)
		for range 5 {
			compactAfter(t, store, feeds[0], now(t, store))
		}
		if now(t, store) != unchanged {
			t.Error("compacting an idle store makes it write")
		}
		later, _ := startCaches(t, store, watchcache.Options{})
		w := watching(t, later[0], watchcache.WatchOptions{After: old})
		expect(t, drain(t, w), fmt.Sprintf("DELETED one/a@%d", gone[0]), fmt.Sprintf("ADDED one/a@%d", gone[2]+1))
		if got := later[0].Stats().Tombstones; got != 3 {
			t.Errorf("%d tombstones, want 3", got)
		}

		// Another program compacts without writing the deletions.
		erase(t, store, "/registry/pods/"+podA.Key())
		write(t, store, podB)
		if err := store.Compact(t.Context(), now(t, store)); err != nil {
			t.Fatal(err)
		}
		last, _ := startCaches(t, store, watchcache.Options{})
		if _, err := last[0].Watch(watchcache.WatchOptions{After: old}); !errors.Is(err, watchcache.ErrExpired) {
			t.Errorf("a watch from before an unknown deletion: %v", err)
		}
		if got := last[0].Stats().ExpiredBy.Old; got != 1 {
			t.Errorf("%d watches counted as too old", got)
		}
	})
}

// fullStore takes no new keys.
type fullStore struct{ *memory.Store }

func (fullStore) Create(context.Context, string, []byte, time.Duration) (storage.Revision, error) {
	return 0, fmt.Errorf("%w: quota", storage.ErrFull)
}

// TestFullStoreIsCompacted: only a compaction makes room.
func TestFullStoreIsCompacted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := openStore(t)
		_, feeds := startCaches(t, store, watchcache.Options{})
		write(t, store, podA)
		erase(t, store, "/registry/pods/"+podA.Key())
		worth, err := feeds[0].BeforeCompaction(t.Context(), fullStore{store}, now(t, store))
		if !worth || err != nil {
			t.Errorf("worth compacting: %v, %v", worth, err)
		}
	})
}

// TestTombstonesAreBounded deletes more objects than tombstones are kept.
func TestTombstonesAreBounded(t *testing.T) {
	for name, opts := range map[string]watchcache.Options{
		"count": {HistoryEvents: 1, Tombstones: 10},
		"bytes": {HistoryEvents: 1, TombstoneBytes: 10 * (tombstone.Overhead + int64(len(podA.Value())) + 40)},
		"age":   {HistoryEvents: 1, TombstoneAge: 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := openStore(t)
				caches, _ := startCaches(t, store, opts)
				c := caches[0]
				var deleted []storage.Revision
				for range 40 {
					write(t, store, podA)
					deleted = append(deleted, erase(t, store, "/registry/pods/"+podA.Key()))
					time.Sleep(time.Second)
				}
				write(t, store, podB)
				synctest.Wait()
				if got := c.Stats().Tombstones; got < 8 || got > 12 {
					t.Errorf("%d tombstones, want about 10", got)
				}
				watching(t, c, watchcache.WatchOptions{After: deleted[32]})
				if _, err := c.Watch(watchcache.WatchOptions{After: deleted[25]}); !errors.Is(err, watchcache.ErrExpired) {
					t.Errorf("a watch from before the oldest tombstone: %v", err)
				}
				time.Sleep(time.Hour)
				_, err := c.Watch(watchcache.WatchOptions{After: deleted[32]})
				if errors.Is(err, watchcache.ErrExpired) != (name == "age") {
					t.Errorf("an hour later: %v", err)
				}
			})
		})
	}
}
