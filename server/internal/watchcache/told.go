//go:build invariants

package watchcache

import (
	"github.com/levelwire/levelwire/server/internal/watchcache/invariant"
	"github.com/levelwire/levelwire/storage"
)

// told is what a watcher has been told, in builds that check invariants:
//
//   - No event and no bookmark has a version before what the watcher was told before, nor before
//     the version that the client named. Initial events are in the order of keys, and none has a
//     version after that of their snapshot. (An object in an event carries the version of the event,
//     but for what a source corrects later: such an object has the version that it has in the store.)
//   - A watcher that has read its log to the end has been told exactly what its selection selects
//     of the cache's state: of every such object the latest state, and of every object that it was
//     told of, and that is gone or not selected any more, that it was DELETED. Of a watcher that
//     began at a version, that includes the objects that were selected then, unless the log does not
//     say which: then only of those that it was told of itself. A watcher that ends before, with 410
//     or because its cache is closed, has been promised nothing.
//   - Exact history says ADDED of what a client does not have, and MODIFIED and DELETED of what it
//     has. Coalesced history may say MODIFIED and DELETED of what a client does not have: an object
//     that is not selected now may have been at the client's version. A revision that several changes
//     share is told again to a client that may have a part of it.
//
// It is used by the goroutine that reads.
type told struct {
	version storage.Revision            // that the client has
	known   bool                        // base is what the client had
	base    Snapshot                    // when it began, or was last found to be up to date
	since   storage.Revision            // unless known: the client had what has not changed since, and it is not known what else
	latest  map[string]storage.Revision // of what it was told since; 0: DELETED
	initial int                         // initial events
	steps   int                         // until the next comparison with the cache's state
}

// beginTold is called when the watcher has been attached.
func (w *Watcher) beginTold(requested storage.Revision) {
	w.told = told{version: requested, since: w.after, latest: map[string]storage.Revision{}}
	switch {
	case w.initial != nil:
		w.told.version, w.told.known = 0, true
	case w.summary != nil:
		w.told.since = w.since
	case w.after <= w.cache.StateRevision() && w.after >= w.cache.ExactSince():
		base, err := w.cache.rewind(w.after) // fails if the log has been shortened since
		w.told.base, w.told.known = base, err == nil && !w.cache.isShared(w.after)
	}
}

// isShared reports whether the state at a revision may have been told without some of the changes of
// that revision.
func (c *Cache) isShared(revision storage.Revision) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.resumeAfter(revision) != revision
}

// has reports whether the client has an object; it is not known if sure is false.
func (w *Watcher) has(key string) (has, sure bool) {
	t := &w.told
	if revision, ok := t.latest[key]; ok {
		return revision != 0, true
	}
	o, ok := t.base.Get(key)
	return ok && w.selection.Matches(o), t.known
}

// tellInitial checks the n initial events in buf.
func (w *Watcher) tellInitial(buf []Event, n int) {
	events := buf[:n]
	w.told.initial += n
	last := ""
	for i := range events {
		o := events[i].Object
		if o.Key <= last || events[i].Type != Added || o.Revision > w.initial.Revision() {
			w.brokenTold(&events[i], "initial events are the objects of a snapshot in the order of keys")
		}
		last = o.Key
	}
}

// endInitialTold is called when the initial events have been read, or are taken by the caller.
func (w *Watcher) endInitialTold(taken bool) {
	t := &w.told
	selected := 0
	for range w.initial.Select(w.selection, "") {
		selected++
	}
	if !taken && t.initial != selected {
		invariant.Broken("initial events are the objects of a snapshot: of %s at version %d, %d were told of %d", w.cache.res.GroupResource(), w.initial.Revision(), t.initial, selected)
	}
	t.base, t.version = *w.initial, w.initial.Revision()
}

// tell checks the n events in buf, which the watcher is told next.
func (w *Watcher) tell(buf []Event, n int, coalesced bool) {
	t, events := &w.told, buf[:n]
	t.steps -= n
	for i := range events {
		e := &events[i]
		if e.Revision < t.version || e.Type == Deleted && e.Object.Revision != e.Revision {
			w.brokenTold(e, "versions never decrease in what a watcher is told")
		}
		t.version = e.Revision
		if has, sure := w.has(e.Object.Key); sure && !coalesced && has == (e.Type == Added) {
			w.brokenTold(e, "exact history says ADDED of what a watcher does not have, and MODIFIED and DELETED of what it has")
		}
		t.latest[e.Object.Key] = e.Object.Revision
		if e.Type == Deleted {
			t.latest[e.Object.Key] = 0
		}
	}
}

func (w *Watcher) brokenTold(e *Event, invariantOf string) {
	has, sure := w.has(e.Object.Key)
	invariant.Broken("%s: of %s, a watcher that has got to version %d is told %s %q at version %d (it has it: %v, known: %v)",
		invariantOf, w.cache.res.GroupResource(), w.told.version, e.Type, e.Object.Key, e.Revision, has, sure)
}

// tellBookmark checks the version of a bookmark.
func (w *Watcher) tellBookmark(revision storage.Revision) {
	if revision < w.told.version {
		invariant.Broken("versions never decrease in what a watcher is told: of %s, a bookmark at version %d follows version %d",
			w.cache.res.GroupResource(), revision, w.told.version)
	}
	w.told.version = revision
}

// compareTold compares what the watcher has been told, when it has read its log to the end, with
// the cache's state: at once if that is small, and else after as many steps as it costs.
func (w *Watcher) compareTold() {
	t := &w.told
	if t.steps--; t.steps > 0 {
		return
	}
	now, ok := w.stateToCompare()
	if !ok {
		return
	}
	const often, share = 64, 4
	looked := w.compareWith(now)
	t.base, t.known, t.latest = now, true, map[string]storage.Revision{}
	if t.steps = 0; looked > often {
		t.steps = looked / share
	}
}

// stateToCompare returns the state that the end of the log has led to, if the watcher is there.
func (w *Watcher) stateToCompare() (Snapshot, bool) {
	c := w.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.state.Load()
	if w.generation != c.generation.Load() || w.position != w.bucket.log.End() || w.after > s.revision || w.inGap() || w.gapAhead() {
		return Snapshot{}, false
	}
	return c.snapshot(s.tree, s.revision), true
}

// compareWith compares what the client has with a state, and returns at how many objects it
// looked.
func (w *Watcher) compareWith(now Snapshot) (looked int) {
	t := &w.told
	kept := func(key string, how string, at storage.Revision) {
		o, ok := now.Get(key)
		switch {
		case !ok || !w.selection.Matches(o):
			w.brokenAtEnd(now, key, "every deletion reaches every watcher", how, at)
		case o.Revision != at:
			w.brokenAtEnd(now, key, "every change reaches every watcher", how, at)
		}
	}
	for key, revision := range t.latest {
		looked++
		if revision != 0 {
			kept(key, "was told of it", revision)
		}
	}
	for o := range t.base.Select(w.selection, "") {
		looked++
		if _, ok := t.latest[o.Key]; !ok {
			kept(o.Key, "has it", o.Revision)
		}
	}
	for o := range now.Select(w.selection, "") {
		looked++
		if has, sure := w.has(o.Key); !has && (sure || o.Revision > t.since) {
			w.brokenAtEnd(now, o.Key, "every change reaches every watcher", "has not been told of it", 0)
		}
	}
	return looked
}

func (w *Watcher) brokenAtEnd(now Snapshot, key, invariantOf, how string, at storage.Revision) {
	state := storage.Revision(0)
	if o, ok := now.Get(key); ok {
		state = o.Revision
	}
	invariant.Broken("%s: of %s, a watcher that has read everything up to version %d %s, %q at version %d (0: not at all), and the cache has it at version %d (0: not at all; selected: %+v)",
		invariantOf, w.cache.res.GroupResource(), now.Revision(), how, key, at, state, w.selection)
}
