package feed_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/memory"
)

const podAKey = "/registry/pods/one/a"

// breakPod writes a pod, then values that cannot be decoded, and returns the
// revision of the pod.
func breakPod(t *testing.T, store *memory.Store) storage.Revision {
	t.Helper()
	decodable := write(t, store, podA)
	for range 3 {
		writeKey(t, store, podAKey, []byte(`{"kind":`))
	}
	return decodable
}

// TestDeletionOfAnUndecodableObject reaches clients that have its last decodable
// state, whichever kind of history they resume with.
func TestDeletionOfAnUndecodableObject(t *testing.T) {
	for _, compacted := range []bool{false, true} {
		t.Run(fmt.Sprint("compacted=", compacted), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := openStore(t)
				caches, feeds := startCaches(t, store, watchcache.Options{})
				decodable := breakPod(t, store)
				gone := erase(t, store, podAKey)
				write(t, store, podB)
				synctest.Wait()
				if compacted {
					compactAfter(t, store, feeds[0], now(t, store))
				}
				small, _ := startCaches(t, store, watchcache.Options{}, watchcache.Options{HistoryEvents: 1})
				want := []string{fmt.Sprintf("DELETED one/a@%d", gone), fmt.Sprintf("ADDED one/b@%d", gone+1)}
				for _, c := range append(caches, small...) {
					expect(t, drain(t, watching(t, c, watchcache.WatchOptions{After: decodable})), want...)
				}
			})
		})
	}
}

// TestFillFindsTheLastDecodableState of an object, and the cache keeps it.
func TestFillFindsTheLastDecodableState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := openStore(t)
		decodable := breakPod(t, store)
		caches, _ := startCaches(t, store, watchcache.Options{})
		if o, ok := caches[0].Current().Get(podA.Key()); !ok || o.Revision != decodable {
			t.Errorf("the cache holds %v", o)
		}
		w := watching(t, caches[0], watchcache.WatchOptions{After: decodable})
		expect(t, drain(t, w))
		gone := erase(t, store, podAKey)
		synctest.Wait()
		expect(t, drain(t, w), fmt.Sprintf("DELETED one/a@%d", gone))
	})
}

// TestUnknownStateOfADeletedObject: when the last decodable state is compacted, all
// history from before the deletion expires, because a client may hold the object.
func TestUnknownStateOfADeletedObject(t *testing.T) {
	for _, compacted := range []bool{false, true} {
		t.Run(fmt.Sprint("compacted=", compacted), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := openStore(t)
				_, feeds := startCaches(t, store, watchcache.Options{})
				breakPod(t, store)
				old := now(t, store)
				compactAfter(t, store, feeds[0], old)
				write(t, store, podB)
				gone := erase(t, store, podAKey)
				write(t, store, podB)
				synctest.Wait()
				if compacted {
					compactAfter(t, store, feeds[0], now(t, store))
				}
				later, _ := startCaches(t, store, watchcache.Options{}, watchcache.Options{HistoryEvents: 1})
				for _, c := range later {
					if _, err := c.Watch(watchcache.WatchOptions{After: gone - 1}); !errors.Is(err, watchcache.ErrExpired) {
						t.Errorf("a watch from before the deletion of an object whose state is unknown: %v", err)
					}
					expect(t, drain(t, watching(t, c, watchcache.WatchOptions{After: gone})), fmt.Sprintf("MODIFIED one/b@%d", gone+1))
				}
			})
		})
	}
}
