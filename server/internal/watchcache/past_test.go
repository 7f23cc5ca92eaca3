package watchcache

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

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
				r := startRig(t, store, nil, FeedOptions{PageSize: 10})
				for range 100 {
					h.write(t, store, random)
				}
				synctest.Wait()
				now := r.pods.Current().Revision()
				for after := oldest; after <= now; after++ {
					c := resumed(t, r.pods, random, after)
					for _, e := range drain(t, c.watcher) {
						c.events = append(c.events, seen(e))
					}
					c.verify(t, h)
					c.watcher.Close()
					s, err := r.pods.Exact(t.Context(), after)
					if want := h.stateAt(wish{}.parsed(), after); err != nil || fmt.Sprint(revisions(s)) != fmt.Sprint(want) {
						t.Errorf("exact read at %d: %v, %v, want %v", after, err, revisions(s), want)
					}
				}
				if oldest > 1 {
					if _, err := r.pods.Watch(WatchOptions{After: oldest - 1}); !errors.Is(err, ErrExpired) {
						t.Errorf("a watch from before the store's history: %v, want %v", err, ErrExpired)
					}
				}
			})
		})
	}
}

// resumed is a client that comes back with a revision.
func resumed(t *testing.T, cache *Cache, random *rand.Rand, after storage.Revision) *client {
	t.Helper()
	c := &client{wish: randomWish(random), after: after}
	w, err := cache.Watch(WatchOptions{Selection: c.wish.selection(t), After: after})
	if err != nil {
		t.Fatalf("resume after %d: %v", after, err)
	}
	c.watcher = w
	return c
}

// TestThePastIsBounded holds the history that is read at a start to the limits
// of the one that grows.
func TestThePastIsBounded(t *testing.T) {
	for _, test := range []struct {
		name string
		opts Options
		feed FeedOptions
		want int
	}{
		{"defaults", Options{}, FeedOptions{}, 200},
		{"events", Options{HistoryEvents: 50, ExactHistory: true}, FeedOptions{}, 50},
		{"bytes", Options{ExactHistory: true, HistoryBytes: 20 * (256 + int64(len(podA.value())) + 40)}, FeedOptions{}, 20},
		{"revisions", Options{}, FeedOptions{ReplayRevisions: 70}, 70},
		{"none", Options{}, FeedOptions{ReplayRevisions: -1}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := openStore(t)
				for range 200 {
					write(t, store, podA)
				}
				c := New(podResource(), test.opts)
				follow(t, NewFeed(store, []*Cache{c}, test.feed))
				stats := c.Stats()
				if d := stats.HistoryLen - test.want; d < -3 || d > 3 {
					t.Errorf("%d events of history, want about %d", stats.HistoryLen, test.want)
				}
				if test.opts.HistoryBytes > 0 && stats.HistoryBytes > test.opts.HistoryBytes {
					t.Errorf("%d bytes of history, limit %d", stats.HistoryBytes, test.opts.HistoryBytes)
				}
				base := storage.Revision(c.base.Load())
				watching(t, c, WatchOptions{After: base})
				if _, err := c.Watch(WatchOptions{After: base - 1}); !errors.Is(err, ErrExpired) {
					t.Errorf("a watch from before the history: %v", err)
				}
				for range 100 { // what has been put in front goes first
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

// follow runs a feed until the test ends.
func follow(t *testing.T, feed *Feed) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- feed.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("the feed ended: %v", err)
		}
	})
	synctest.Wait()
}

// slowHistory is a store whose past comes late, after some failures.
type slowHistory struct {
	storage.Store
	delay    time.Duration
	failures *atomic.Int64
}

func (s slowHistory) Oldest(ctx context.Context) (storage.Revision, error) {
	if err := sleep(ctx, s.delay); err != nil {
		return 0, err
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

// TestResumeWaitsForThePast comes back while the past is being read, and again
// a minute later.
func TestResumeWaitsForThePast(t *testing.T) {
	for _, test := range []struct {
		name     string
		delay    time.Duration
		failures int64
		at, then error
	}{
		{"soon", time.Second, 0, nil, nil},
		{"too late", 30 * time.Second, 0, ErrNotReady, nil},
		{"at the third attempt", 100 * time.Millisecond, 2, nil, nil},
		{"never", time.Second, 1000, ErrNotReady, ErrExpired},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := openStore(t)
				old := write(t, store, podA)
				for range 10 {
					write(t, store, podB)
				}
				c := New(podResource(), Options{})
				follow(t, NewFeed(newSlowHistory(store, test.delay, test.failures), []*Cache{c}, FeedOptions{}))
				if !c.isReady() {
					t.Fatal("the cache waits for its past")
				}
				ended, cancel := context.WithCancel(t.Context())
				cancel()
				if _, err := c.Resume(ended, WatchOptions{After: old}); !errors.Is(err, context.Canceled) {
					t.Errorf("resume of somebody who has gone: %v", err)
				}
				for _, want := range []error{test.at, test.then} {
					w, err := c.Resume(t.Context(), WatchOptions{After: old})
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

// TestClosedCachesHaveNoPast to wait for.
func TestClosedCachesHaveNoPast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := openStore(t)
		old := write(t, store, podA)
		write(t, store, podA)
		c := New(podResource(), Options{})
		f := NewFeed(newSlowHistory(store, time.Minute, 0), []*Cache{c}, FeedOptions{})
		follow(t, f)
		time.AfterFunc(time.Second, func() { f.Remove(c) })
		begin := time.Now()
		if _, err := c.Resume(t.Context(), WatchOptions{After: old}); !errors.Is(err, ErrClosed) || time.Since(begin) != time.Second {
			t.Errorf("resume: %v after %v, want %v after a second", err, time.Since(begin), ErrClosed)
		}
	})
}

// stuck is a store that never lists nodes.
type stuck struct{ storage.Store }

func (s stuck) List(ctx context.Context, prefix string, opts storage.ListOptions) (storage.Page, error) {
	if prefix == nodeResource().StorePrefix {
		<-ctx.Done()
		return storage.Page{}, ctx.Err()
	}
	return s.Store.List(ctx, prefix, opts)
}

// TestThePastComesThoughAFillDoesNotEnd because its cache was removed meanwhile.
func TestThePastComesThoughAFillDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := openStore(t)
		old := write(t, store, podA)
		write(t, store, podA)
		pods, nodes := New(podResource(), Options{}), New(nodeResource(), Options{})
		f := NewFeed(stuck{store}, []*Cache{pods, nodes}, FeedOptions{})
		follow(t, f)
		f.Remove(nodes)
		w, err := pods.Resume(t.Context(), WatchOptions{After: old})
		if err != nil {
			t.Fatal(err)
		}
		w.Close()
	})
}

// TestTheLogMovesOnBeforeThePastIsRead: what has left the log by then is told
// once, and not by the past as well.
func TestTheLogMovesOnBeforeThePastIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := openStore(t)
		old := write(t, store, podB)
		var want []string
		again := func(count int) {
			for range count {
				write(t, store, podA)
				want = append(want, fmt.Sprintf("DELETED one/a@%d", erase(t, store, "/registry/pods/"+podA.key())))
			}
		}
		again(3)
		c := New(podResource(), Options{HistoryEvents: 2})
		follow(t, NewFeed(newSlowHistory(store, time.Second, 0), []*Cache{c}, FeedOptions{}))
		again(4)
		time.Sleep(time.Minute)
		if got := c.Stats().Tombstones; got != len(want)-1 { // the last is in the log
			t.Errorf("%d tombstones, want %d", got, len(want)-1)
		}
		// To the client all but the first are of objects that came and went unseen.
		expect(t, drain(t, watching(t, c, WatchOptions{After: old})))
		expect(t, drain(t, watching(t, c, WatchOptions{After: old + 1})), want[0])
	})
}

// TestARecollectionRemembersOnlyWhatItKeeps of a history of many keys.
func TestARecollectionRemembersOnlyWhatItKeeps(t *testing.T) {
	c := filled(t, Options{HistoryEvents: 10})
	m := c.newRecollection("/registry/pods/")
	m.through = 1 << 30
	for i := range 1000 {
		e := storage.Event{Key: fmt.Sprintf("/registry/pods/one/%d", i%300), Revision: storage.Revision(11 + i), Value: podA.value()}
		if i%7 == 0 {
			e.Value, e.Deleted = nil, true
		}
		m.note(&e)
	}
	if len(m.kept) != 10 || len(m.latest) > 10 {
		t.Errorf("%d changes are kept, and the latest of %d keys", len(m.kept), len(m.latest))
	}
}

// TestThePastTellsWhatSharesARevision, although the log has no room for it: who was
// cut off in the middle of it is told the rest by coalesced history.
func TestThePastTellsWhatSharesARevision(t *testing.T) {
	c := filled(t, Options{HistoryEvents: 1}, podA, podB, podC)
	m := c.newRecollection("/registry/pods/")
	for _, n := range []struct {
		p        pod
		revision storage.Revision
	}{{podA, 5}, {podB, 5}, {podA, 6}, {podC, 7}, {podC, 8}} {
		m.note(&storage.Event{Key: "/registry/pods/" + n.p.key(), Value: n.p.value(), Revision: n.revision})
	}
	if got := fmt.Sprint(m.shared); got != "[5]" {
		t.Fatalf("%s are shared, want [5]", got)
	}
	c.recall(past{generation: m.generation, from: 7, through: m.through, shared: m.shared})
	for revision, want := range map[storage.Revision]storage.Revision{4: 4, 5: 4, 6: 6, 7: 7} {
		if got := c.shared.after(revision); got != want {
			t.Errorf("who has %d goes on after %d, want %d", revision, got, want)
		}
	}
}
