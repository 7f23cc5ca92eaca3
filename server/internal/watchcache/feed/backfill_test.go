package feed_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/server/internal/watchcache/feed"
	"github.com/levelwire/levelwire/storage"
)

// TestResumeAfterAStart writes at random, compacts, starts the caches only
// then, goes on writing, and resumes from every revision with all kinds of
// selections.
func TestResumeAfterAStart(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				random := rand.New(rand.NewPCG(seed, 7))
				store := openStore(t)
				h := &truth{states: map[string]pod{}}
				for range 400 {
					h.write(t, store, random)
				}
				current, _ := store.Current(t.Context())
				oldest := storage.Revision(1)
				if seed > 0 {
					oldest = current - 300
					if err := store.Compact(t.Context(), oldest); err != nil {
						t.Fatal(err)
					}
				}
				r := startRig(t, store, nil, feed.Options{PageSize: 10})
				for range 100 {
					h.write(t, store, random)
				}
				synctest.Wait()
				now := r.pods.Current().Revision()
				for after := oldest; after <= now; after++ {
					c := resumed(t, r.pods, random, after)
					for _, e := range drain(t, c.watcher) {
						c.events = append(c.events, describe(e))
					}
					c.verify(t, h)
					c.watcher.Close()
					s, err := r.pods.Exact(t.Context(), after)
					if want := h.stateAt(query{}.parsed(), after); err != nil || fmt.Sprint(revisions(s)) != fmt.Sprint(want) {
						t.Errorf("exact read at %d: %v, %v, want %v", after, err, revisions(s), want)
					}
				}
				if oldest > 1 {
					if _, err := r.pods.Watch(watchcache.WatchOptions{After: oldest - 1}); !errors.Is(err, watchcache.ErrExpired) {
						t.Errorf("a watch from before the store's history: %v, want %v", err, watchcache.ErrExpired)
					}
				}
			})
		})
	}
}

// resumed is a client that resumes after a revision.
func resumed(t *testing.T, cache *watchcache.Cache, random *rand.Rand, after storage.Revision) *client {
	t.Helper()
	c := &client{query: randomQuery(random), after: after}
	w, err := cache.Watch(watchcache.WatchOptions{Selection: c.query.selection(t), After: after})
	if err != nil {
		t.Fatalf("resume after %d: %v", after, err)
	}
	c.watcher = w
	return c
}

// TestBackfillIsBounded: the log has the same limits for earlier history as for
// new events.
func TestBackfillIsBounded(t *testing.T) {
	for _, test := range []struct {
		name string
		opts watchcache.Options
		feed feed.Options
		want int
	}{
		{"defaults", watchcache.Options{}, feed.Options{}, 200},
		{"events", watchcache.Options{HistoryEvents: 50, ExactHistory: true}, feed.Options{}, 50},
		{"bytes", watchcache.Options{ExactHistory: true, HistoryBytes: 20 * (256 + int64(len(podA.Value())) + 40)}, feed.Options{}, 20},
		{"revisions", watchcache.Options{}, feed.Options{ReplayRevisions: 70}, 70},
		{"none", watchcache.Options{}, feed.Options{ReplayRevisions: -1}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := openStore(t)
				for range 200 {
					write(t, store, podA)
				}
				c := watchcache.New(podResource(), test.opts)
				run(t, feed.New(store, []*watchcache.Cache{c}, test.feed))
				stats := c.Stats()
				if d := stats.HistoryLen - test.want; d < -3 || d > 3 {
					t.Errorf("%d events of history, want about %d", stats.HistoryLen, test.want)
				}
				if test.opts.HistoryBytes > 0 && stats.HistoryBytes > test.opts.HistoryBytes {
					t.Errorf("%d bytes of history, limit %d", stats.HistoryBytes, test.opts.HistoryBytes)
				}
				var expired *watchcache.ExpiredError
				if _, err := c.Watch(watchcache.WatchOptions{}); !errors.As(err, &expired) {
					t.Fatalf("a watch from before all history: %v", err)
				}
				base := expired.Oldest
				watching(t, c, watchcache.WatchOptions{After: base})
				if _, err := c.Watch(watchcache.WatchOptions{After: base - 1}); !errors.Is(err, watchcache.ErrExpired) {
					t.Errorf("a watch from before the history: %v", err)
				}
				for range 100 { // what has been prepended is evicted first
					write(t, store, podA)
				}
				synctest.Wait()
				if got := c.Stats(); test.opts.HistoryEvents > 0 && got.HistoryLen != test.opts.HistoryEvents {
					t.Errorf("%d events of history in the end, want %d", got.HistoryLen, test.opts.HistoryEvents)
				}
			})
		})
	}
}

// slowHistory is a store that returns its history late, after some failures.
type slowHistory struct {
	storage.Store
	delay    time.Duration
	failures *atomic.Int64
}

func (s slowHistory) Oldest(ctx context.Context) (storage.Revision, error) {
	select {
	case <-time.After(s.delay):
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	if s.failures.Add(-1) >= 0 {
		return 0, storage.ErrUnavailable
	}
	return s.Store.Oldest(ctx)
}

func newSlowHistory(store storage.Store, delay time.Duration, failures int64) slowHistory {
	s := slowHistory{store, delay, new(atomic.Int64)}
	s.failures.Store(failures)
	return s
}

// TestResumeWaitsForTheBackfill resumes while earlier history is being read, and
// again a minute later.
func TestResumeWaitsForTheBackfill(t *testing.T) {
	for _, test := range []struct {
		name     string
		delay    time.Duration
		failures int64
		at, then error
	}{
		{"soon", time.Second, 0, nil, nil},
		{"too late", 30 * time.Second, 0, watchcache.ErrNotReady, nil},
		{"at the third attempt", 100 * time.Millisecond, 2, nil, nil},
		{"never", time.Second, 1000, watchcache.ErrNotReady, watchcache.ErrExpired},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := openStore(t)
				old := write(t, store, podA)
				for range 10 {
					write(t, store, podB)
				}
				c := watchcache.New(podResource(), watchcache.Options{})
				run(t, feed.New(newSlowHistory(store, test.delay, test.failures), []*watchcache.Cache{c}, feed.Options{}))
				if !c.IsReady() {
					t.Fatal("the cache is not ready before its backfill")
				}
				ended, cancel := context.WithCancel(t.Context())
				cancel()
				if _, err := c.Resume(ended, watchcache.WatchOptions{After: old}); !errors.Is(err, context.Canceled) {
					t.Errorf("resume with a context that has ended: %v", err)
				}
				for _, want := range []error{test.at, test.then} {
					w, err := c.Resume(t.Context(), watchcache.WatchOptions{After: old})
					if !errors.Is(err, want) {
						t.Fatalf("resume: %v, want %v", err, want)
					}
					if err == nil {
						if got := len(drain(t, w)); got != 10 {
							t.Errorf("%d events, want 10", got)
						}
						w.Close()
					}
					time.Sleep(time.Minute)
				}
			})
		})
	}
}

// TestCloseEndsTheWaitForTheBackfill of a cache that is removed.
func TestCloseEndsTheWaitForTheBackfill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := openStore(t)
		old := write(t, store, podA)
		write(t, store, podA)
		c := watchcache.New(podResource(), watchcache.Options{})
		f := feed.New(newSlowHistory(store, time.Minute, 0), []*watchcache.Cache{c}, feed.Options{})
		run(t, f)
		time.AfterFunc(time.Second, func() { f.Remove(c) })
		begin := time.Now()
		if _, err := c.Resume(t.Context(), watchcache.WatchOptions{After: old}); !errors.Is(err, watchcache.ErrClosed) || time.Since(begin) != time.Second {
			t.Errorf("resume: %v after %v, want %v after a second", err, time.Since(begin), watchcache.ErrClosed)
		}
	})
}

// nodesNeverListed is a store whose list of nodes does not return.
type nodesNeverListed struct{ storage.Store }

func (s nodesNeverListed) List(ctx context.Context, prefix string, opts storage.ListOptions) (storage.Page, error) {
	if prefix == nodeResource().StorePrefix {
		<-ctx.Done()
		return storage.Page{}, ctx.Err()
	}
	return s.Store.List(ctx, prefix, opts)
}

// TestBackfillDoesNotWaitForRemovedCaches whose fill does not end.
func TestBackfillDoesNotWaitForRemovedCaches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := openStore(t)
		old := write(t, store, podA)
		write(t, store, podA)
		pods, nodes := watchcache.New(podResource(), watchcache.Options{}), watchcache.New(nodeResource(), watchcache.Options{})
		f := feed.New(nodesNeverListed{store}, []*watchcache.Cache{pods, nodes}, feed.Options{})
		run(t, f)
		f.Remove(nodes)
		w, err := pods.Resume(t.Context(), watchcache.WatchOptions{After: old})
		if err != nil {
			t.Fatal(err)
		}
		w.Close()
	})
}

// TestEvictionBeforeTheBackfill: a deletion that the log has evicted by then is a
// tombstone once, and not by the backfill as well.
func TestEvictionBeforeTheBackfill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := openStore(t)
		old := write(t, store, podB)
		var want []string
		again := func(count int) {
			for range count {
				write(t, store, podA)
				want = append(want, fmt.Sprintf("DELETED one/a@%d", erase(t, store, "/registry/pods/"+podA.Key())))
			}
		}
		again(3)
		c := watchcache.New(podResource(), watchcache.Options{HistoryEvents: 2})
		run(t, feed.New(newSlowHistory(store, time.Second, 0), []*watchcache.Cache{c}, feed.Options{}))
		again(4)
		time.Sleep(time.Minute)
		if got := c.Stats().Tombstones; got != len(want)-1 { // the last is in the log
			t.Errorf("%d tombstones, want %d", got, len(want)-1)
		}
		// All but the first are of objects that the client never had.
		expect(t, drain(t, watching(t, c, watchcache.WatchOptions{After: old})))
		expect(t, drain(t, watching(t, c, watchcache.WatchOptions{After: old + 1})), want[0])
	})
}
