package feed_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"

	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/storage"
)

// local is a client's copy of what it watches: it applies events, as every
// client does, whatever their order and whether or not it has the object.
type local struct {
	query   query
	holds   map[string]storage.Revision
	version storage.Revision
}

// watch reads some of a cache's events since the client's version, and notes the
// version it has reached. most is how many events it reads at most.
func (l *local) watch(t *testing.T, c *watchcache.Cache, random *rand.Rand, most int) {
	t.Helper()
	w, err := c.Watch(watchcache.WatchOptions{After: l.version, Selection: l.query.selection(t)})
	if err != nil {
		t.Fatalf("%v after %d: %v", l.query, l.version, err)
	}
	defer w.Close()
	began, last := l.version, l.version
	buf := make([]watchcache.Event, 1+random.IntN(7))
	for most > 0 {
		n, err := w.Read(buf[:min(len(buf), most)])
		if err != nil {
			t.Fatalf("%v after %d: %v", l.query, began, err)
		}
		for _, e := range buf[:n] {
			if e.Revision < last || e.Type != watchcache.Deleted && e.Revision <= began || e.Object.Revision != e.Revision {
				t.Errorf("%v after %d: %s %s@%d, which says that it is @%d, follows %d", l.query, began, e.Type, e.Object.Key, e.Revision, e.Object.Revision, last)
			}
			last = e.Revision
			if e.Type == watchcache.Deleted {
				delete(l.holds, e.Object.Key)
			} else {
				l.holds[e.Object.Key] = e.Revision
			}
		}
		l.version = last
		if random.IntN(3) == 0 {
			l.version = w.Reached() // as of a bookmark
			if l.version < last {
				t.Errorf("%v after %d: %d is reached after an event at %d", l.query, began, l.version, last)
			}
			last = l.version
		}
		if n == 0 {
			l.version = max(l.version, w.Reached())
			return
		}
		most -= n
	}
}

// TestCoalescedHistoryModel lets clients resume at random on several caches of one
// store, which keep different amounts of history and were started at different
// times, while objects are written. Each watch reads a part of what the client has
// missed; the next one may be on another cache. In the end each client must hold
// the newest state.
func TestCoalescedHistoryModel(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { runCoalesced(t, seed) })
		})
	}
}

func runCoalesced(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 5))
	store := openStore(t)
	h := &truth{states: map[string]pod{}}
	write := func(n int) {
		for range n {
			h.write(t, store, random)
		}
		synctest.Wait()
	}
	write(1 + random.IntN(60))
	caches, feeds := startCaches(t, store, watchcache.Options{HistoryEvents: 1 + random.IntN(10)}, watchcache.Options{HistoryEvents: 20}, watchcache.Options{})
	var clients []*local
	for range 12 {
		clients = append(clients, newLocal(h, random, now(t, store)))
	}
	for range 120 {
		write(random.IntN(12))
		if random.IntN(15) == 0 {
			// Another server, which has the store's history and not its own.
			more, _ := startCaches(t, store, watchcache.Options{HistoryEvents: 1 + random.IntN(60)})
			caches = append(caches, more...)
		}
		if random.IntN(10) == 0 {
			at := now(t, store) - storage.Revision(random.IntN(20))
			compactAfter(t, store, feeds[random.IntN(len(feeds))], at)
		}
		l := clients[random.IntN(len(clients))]
		l.watch(t, caches[random.IntN(len(caches))], random, random.IntN(30))
	}
	synctest.Wait()
	end := now(t, store)
	for _, l := range clients {
		if random.IntN(2) == 0 {
			l.watch(t, caches[random.IntN(len(caches))], random, random.IntN(5))
		}
		l.watch(t, caches[random.IntN(len(caches))], random, 1<<30)
		if want := h.stateAt(l.query, end); fmt.Sprint(l.holds) != fmt.Sprint(want) {
			t.Errorf("%v holds %v at %d, want %v", l.query, l.holds, l.version, want)
		}
		if l.version < end {
			t.Errorf("%v is at %d in the end, want %d", l.query, l.version, end)
		}
	}
	resumed := int64(0)
	for _, c := range caches {
		resumed += c.Stats().Resumes.Coalesced
	}
	if resumed < 10 {
		t.Errorf("%d watches got coalesced history: too few to mean anything", resumed)
	}
}

// newLocal is a client that has listed.
func newLocal(h *truth, random *rand.Rand, at storage.Revision) *local {
	l := &local{query: randomQuery(random), version: at}
	l.holds = h.stateAt(l.query, at)
	return l
}
