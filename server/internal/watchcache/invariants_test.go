//go:build invariants

package watchcache

import (
	"strings"
	"testing"
	"time"

	"github.com/levelwire/levelwire/server/internal/watchcache/eventlog"
	"github.com/levelwire/levelwire/server/internal/watchcache/invariant"
	"github.com/levelwire/levelwire/storage"
)

// appendRaw appends changes of one revision to the log in the order in which they are, as Apply
// must not.
func appendRaw(c *Cache, changes ...Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	tree := c.state.Load().tree.Batch()
	for i := range changes {
		through := changes[i].Revision
		if i+1 < len(changes) {
			through--
		}
		previous, _ := tree.Get(changes[i].Key)
		c.append(&changes[i], previous, through, 0, tree)
	}
	c.state.Store(&cacheState{tree: tree.Tree(), revision: changes[0].Revision})
}

// TestBrokenInvariants breaks each of them, and expects the sentence that says so.
func TestBrokenInvariants(t *testing.T) {
	onNode := pod{Namespace: "one", Name: "on-node", Node: "n1"}
	ofNode := selecting(t, "", "", "", "spec.nodeName=n1")
	read := func(w *Watcher) {
		for buf := make([]Event, 1); ; {
			if n, err := w.Read(buf); n == 0 || err != nil {
				return
			}
		}
	}
	for name, test := range map[string]struct {
		opts Options
		run  func(*testing.T, *Cache)
		want string
	}{
		"a batch that goes back": {run: func(t *testing.T, c *Cache) {
			c.Apply([]Change{put(t, c, podA, 20), put(t, c, podB, 15)})
		}, want: `versions in a log never decrease: of pods, the change of "one/b" at version 15 comes in a batch behind one at version 20`},
		"a log that goes back": {run: func(t *testing.T, c *Cache) {
			appendRaw(c, put(t, c, podA, 20))
			appendRaw(c, put(t, c, podB, 15))
		}, want: `versions in a log never decrease: of pods, the change of "one/b" at version 15 follows that of "one/a" at version 20`},
		"put, delete, put in one transaction, in that order": {run: func(t *testing.T, c *Cache) {
			appendRaw(c, put(t, c, podB, 20), gone(podA.Key(), 20), put(t, c, podC, 20))
		}, want: `a log has the deletions of a version first: of pods, the deletion of "one/a" at version 20, which carries 19, follows the write of "one/b" at version 20`},
		"a version in two batches": {run: func(t *testing.T, c *Cache) {
			appendRaw(c, put(t, c, podA, 20))
			appendRaw(c, put(t, c, podB, 20))
		}, want: `a watch resumes only behind the last change of a version: of pods, the change of "one/a" at version 20 says that it is the last, and that of "one/b" follows`},
		"a key that changes twice": {run: func(t *testing.T, c *Cache) {
			c.Apply([]Change{put(t, c, podA, 20), gone(podA.Key(), 20)})
		}, want: `a key changes once in a version: of pods, "one/a" changes twice at version 20`},
		"an object under another key": {run: func(t *testing.T, c *Cache) {
			c.Apply([]Change{{Key: podB.Key(), Object: objectOf(t, c, podA, 20), Revision: 20}})
		}, want: `an object has the key of its change: of pods, "one/a" is written as "one/b" at version 20`},
		"a change at a published version": {run: func(t *testing.T, c *Cache) {
			c.Advance(30)
			c.Apply([]Change{put(t, c, podA, 25)})
		}, want: `a version is published behind its changes: of pods, "one/a" changes at version 25, and 30 has been published`},
		"a bucket that is not found": {run: func(t *testing.T, c *Cache) {
			w := watching(t, c, WatchOptions{After: 10, Selection: ofNode})
			table := c.index.table(&w.bucket.interest)
			table["n2"] = w.bucket
			delete(table, "n1")
			c.Apply([]Change{gone(onNode.Key(), 20)})
		}, want: `every change reaches every watcher: of pods, the change of "one/on-node" at version 20 (deleted: true) is kept from the watchers of`},
		"a deletion that is kept from a watcher with initial events": {run: func(t *testing.T, c *Cache) {
			snapshot := c.Current()
			w := watching(t, c, WatchOptions{Initial: &snapshot, Selection: ofNode})
			read(w)
			c.index.remove(w.bucket)
			c.Apply([]Change{gone(onNode.Key(), 20)})
			read(w)
		}, want: `every deletion reaches every watcher: of pods, a watcher that has read everything up to version 20 has it, "one/on-node" at version 1`},
		"a deletion that is kept from a watcher that resumed": {run: func(t *testing.T, c *Cache) {
			w := watching(t, c, WatchOptions{After: 10, Selection: ofNode})
			c.index.remove(w.bucket)
			c.Apply([]Change{gone(onNode.Key(), 20)})
			read(w)
		}, want: `every deletion reaches every watcher: of pods, a watcher that has read everything up to version 20 has it, "one/on-node" at version 1`},
		"a deletion that is kept from a watcher that was told of the object": {run: func(t *testing.T, c *Cache) {
			w := watching(t, c, WatchOptions{After: 10, Selection: ofNode})
			c.Apply([]Change{put(t, c, onNode, 20)})
			if n, err := w.Read(make([]Event, 1)); n != 1 || err != nil {
				t.Fatal(n, err)
			}
			c.index.remove(w.bucket)
			c.Apply([]Change{gone(onNode.Key(), 30)})
			read(w)
		}, want: `every deletion reaches every watcher: of pods, a watcher that has read everything up to version 30 was told of it, "one/on-node" at version 20`},
		"an object that is kept from a watcher": {run: func(t *testing.T, c *Cache) {
			w := watching(t, c, WatchOptions{After: 10})
			w.position++
			c.Apply([]Change{put(t, c, podA, 20)})
			read(w)
		}, want: `every change reaches every watcher: of pods, a watcher that has read everything up to version 20 has it, "one/a" at version 1`},
		"an object that is kept in coalesced history": {opts: Options{HistoryEvents: 1}, run: func(t *testing.T, c *Cache) {
			c.Apply([]Change{put(t, c, podA, 20), put(t, c, podB, 21)})
			w := watching(t, c, WatchOptions{After: 10})
			w.summary.changes = w.summary.changes[1:]
			read(w)
		}, want: `every change reaches every watcher: of pods, a watcher that has read everything up to version 21 has not been told of it, "one/a" at version 0`},
		"an event that comes twice": {run: func(t *testing.T, c *Cache) {
			c.Apply([]Change{put(t, c, pod{Namespace: "one", Name: "new"}, 20)})
			w := watching(t, c, WatchOptions{After: 10})
			w.Read(make([]Event, 1))
			w.position--
			read(w)
		}, want: `exact history says ADDED of what a watcher does not have, and MODIFIED and DELETED of what it has: of pods, a watcher that has got to version 20 is told ADDED "one/new" at version 20`},
		"events that go back": {run: func(t *testing.T, c *Cache) {
			c.Apply([]Change{put(t, c, podA, 20), put(t, c, podB, 21)})
			w := watching(t, c, WatchOptions{After: 10})
			w.Read(make([]Event, 2))
			w.position, w.handed = w.position-2, 0
			read(w)
		}, want: `versions never decrease in what a watcher is told: of pods, a watcher that has got to version 21 is told MODIFIED "one/a" at version 20`},
		"a bookmark that goes back": {run: func(t *testing.T, c *Cache) {
			w := watching(t, c, WatchOptions{After: 10})
			w.told.version = 30
			w.Bookmark()
		}, want: `versions never decrease in what a watcher is told: of pods, a bookmark at version 10 follows version 30`},
		"an initial event that is missing": {run: func(t *testing.T, c *Cache) {
			snapshot := c.Current()
			w := watching(t, c, WatchOptions{Initial: &snapshot})
			w.from = podB.Key()
			read(w)
		}, want: `initial events are the objects of a snapshot: of pods at version 10, 3 were told of 4`},
		"an object that is modified": {run: func(t *testing.T, c *Cache) {
			a, _ := c.Current().Get(podA.Key())
			a.JSON()[a.Size()-1] = ' '
			c.Apply([]Change{gone(podA.Key(), 20)})
		}, want: `a shared object is never modified: of pods, the JSON of "one/a" at version 1 has changed since it was stored`},
		"a state that no change left": {run: func(t *testing.T, c *Cache) {
			c.Apply([]Change{put(t, c, podA, 20), put(t, c, podA, 25), put(t, c, podA, 30)})
			c.log.At(c.log.Oldest() + 1).Object = objectOf(t, c, podA, 24)
			_, _ = c.Exact(t.Context(), 20)
		}, want: `the state before a change is what the change before it left: of pods, the change of "one/a" at version 25 is undone in a state that has it at version 25, and the change left it at 24`},
		"a bucket that begins too early": {opts: Options{HistoryEvents: 1}, run: func(t *testing.T, c *Cache) {
			w := watching(t, c, WatchOptions{After: 10, Selection: ofNode})
			c.Apply([]Change{put(t, c, onNode, 20)})
			w.bucket.log.Evict()
			c.Apply([]Change{put(t, c, onNode, 30)})
		}, want: `the oldest entry of a log is the oldest in each bucket: of pods, the change of "one/on-node" at version 20 is evicted`},
		"tombstones in disorder": {opts: Options{HistoryEvents: 1}, run: func(t *testing.T, c *Cache) {
			b, _ := c.Current().Get(podB.Key())
			c.tombstones.Add(eventlog.Evicted(40, 40, b), time.Now())
			c.Apply([]Change{gone(podA.Key(), 20), put(t, c, podC, 30)})
		}, want: `tombstones are in the order of versions: of pods, that of "one/a" at version 20 follows that of "one/b" at version 40`},
		"history that does not end before the log": {run: func(t *testing.T, c *Cache) {
			c.Apply([]Change{put(t, c, podA, 20)})
			o := objectOf(t, c, podB, 30)
			c.checkPrepended([]*eventlog.Entry{{Revision: 30, Through: 30, Object: o}}, 5)
		}, want: `versions in a log never decrease: of pods, the change of "one/a" at version 20 follows that of "one/b" at version 30`},
		"books that do not balance": {run: func(_ *testing.T, c *Cache) {
			c.counters.historyBytes.Add(1)
			_, _ = c.Refill(nil, 5, true)
		}, want: `an empty log takes nothing: of pods, it counts 1 bytes, 0 with forms, and 0 deletions`},
	} {
		t.Run(name, func(t *testing.T) {
			c := filled(t, test.opts, podA, podB, podC, onNode)
			if got := invariant.Catch(func() { test.run(t, c) }); !strings.HasPrefix(got, "broken invariant: "+test.want) {
				t.Errorf("the check says\n%q, want\n%q", got, test.want)
			}
		})
	}
}

// TestTransactionsOfOtherPrograms: "put, delete, put" in one revision, which Apply puts in order,
// breaks nothing for any watcher, wherever it begins and however it reads.
func TestTransactionsOfOtherPrograms(t *testing.T) {
	for _, opts := range []Options{{}, {HistoryEvents: 1}, {HistoryEvents: 2}} {
		for _, selection := range []*Selection{nil, selecting(t, "one", "", "", ""), selecting(t, "", "", "", "spec.nodeName=n1")} {
			for _, after := range []storage.Revision{10, 19, 20} {
				if got := invariant.Catch(func() {
					c := filled(t, opts, podA, podB, podC)
					early := watching(t, c, WatchOptions{After: 10, Selection: selection})
					c.Apply([]Change{put(t, c, podB, 20), gone(podA.Key(), 20), put(t, c, podC, 20)})
					late := watching(t, c, WatchOptions{After: after, Selection: selection})
					for _, w := range []*Watcher{early, late} {
						drain(t, w)
						w.Bookmark()
					}
				}); got != "" {
					t.Error(got)
				}
			}
		}
	}
}
