package read

import (
	"container/heap"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/storage"
)

// visibleWatcher is the cursor of a watch that shows what a user may see. It merges, in the
// order of revisions, the events of the namespaces that are visible and the changes of which
// those are. A change at revision R is sent behind all events before R: Deleted for what
// state(R-1) has in namespaces that are not visible any more, then Added for what state(R) has
// in those that are now.
//
// It passes a revision only when the policy is known up to it, and never goes beyond what
// was visible at it. Besides, the content of an object is never sent once its namespace is
// not visible at the latest known revision, although it was at the event's: whether a client
// that is late has had it before is not known. Of such objects only the deletion is sent.
//
// A set of few namespaces has a watcher for each, which is woken by events in its namespace
// alone; more share one watcher, whose events are filtered.
//
// It is used by one goroutine at a time.
type visibleWatcher struct {
	cache     *watchcache.Cache
	visible   Visibility
	selection *watchcache.Selection // in all namespaces
	waker     watchcache.Waker

	position  storage.Revision       // everything up to it has been read
	set       *watchcache.Namespaces // visible at position
	parts     map[string]*part       // by namespace; "" if one watcher is for all
	queued    partHeap               // those that have events
	phases    []phase                // to be read before the parts
	initial   bool                   // the first phase is the initial state
	began     watchcache.Beginning
	bookmark  bool // the client has objects with revisions before position
	awaiting  bool // an event waits for the policy, which will wake
	lagging   bool // the cache lags behind the policy, and nothing will wake
	closed    bool // the resource is not served any more
	failed    error
	now, past *watchcache.Namespaces // visible at the latest known revision, and before it last changed
	nowAt     storage.Revision       // at which now was known to be right
	pastAt    storage.Revision       // at which past was

	mu    sync.Mutex // guards awake, and part.awake; nothing else is locked while it is held
	awake []*part    // may have events
}

// maxParts is how many namespaces have a watcher each. A watcher takes about 1 KiB, and all
// of them count as one watch.
const maxParts = 64

// part is the watcher of one namespace, or of all.
type part struct {
	whole   *visibleWatcher
	watcher *watchcache.Watcher
	events  []watchcache.Event // read, and not passed on
	index   int                // in the heap; -1: not there
	gone    bool               // closed
	awake   bool
}

// Wake implements watchcache.Waker.
func (p *part) Wake() watchcache.Starter {
	p.whole.wakePart(p)
	return p.whole.waker.Wake()
}

func (w *visibleWatcher) wakePart(p *part) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !p.awake {
		p.awake = true
		w.awake = append(w.awake, p)
	}
}

// phase is a part of a snapshot that is sent.
type phase struct {
	kind      watchcache.EventType
	snapshot  watchcache.Snapshot
	selection *watchcache.Selection
	except    *watchcache.Namespaces // are left out
	from      string                 // the first key that has not been read

	// Deleted events carry the revision before at, so that a client that is cut off between
	// two of them gets the rest when it resumes; the last one carries through, which is at
	// unless more follows.
	at, through storage.Revision
	held        *watchcache.Object // may be the last one
}

// newVisibleWatcher opens the cursor behind a revision, which the cache and the policy have
// reached, with the initial state of that revision if it is not nil.
func newVisibleWatcher(ctx context.Context, cache *watchcache.Cache, visible Visibility, selection *watchcache.Selection,
	after storage.Revision, initial *watchcache.Snapshot, waker watchcache.Waker,
) (*visibleWatcher, error) {
	w := &visibleWatcher{cache: cache, visible: visible, selection: selection, waker: waker, position: after, began: watchcache.BeganExact}
	w.nowAt = visible.Reached()
	w.now = visible.Now()
	var err error
	if w.set, err = visible.At(after); err != nil {
		return nil, err
	}
	if initial != nil {
		w.initial, w.began = true, watchcache.BeganInitial
		w.phases = append(w.phases, phase{kind: watchcache.Added, snapshot: *initial, selection: selection.InNamespaces(w.set)})
	}
	visible.Subscribe(waker)
	if err := w.openParts(ctx, after); err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

// openParts opens the watchers of all visible namespaces behind a revision.
func (w *visibleWatcher) openParts(ctx context.Context, after storage.Revision) error {
	w.closeParts()
	w.parts = map[string]*part{}
	if w.inOne(w.set) {
		return w.openPart(ctx, "", after)
	}
	for _, namespace := range w.set.Names() {
		if err := w.openPart(ctx, namespace, after); err != nil {
			return err
		}
	}
	return nil
}

// inOne reports whether one watcher is for all namespaces.
func (w *visibleWatcher) inOne(set *watchcache.Namespaces) bool {
	return set.All() || len(set.Names()) > maxParts
}

func (w *visibleWatcher) openPart(ctx context.Context, namespace string, after storage.Revision) error {
	selection := w.selection
	if namespace != "" {
		if selection.Namespace != "" && selection.Namespace != namespace {
			return nil
		}
		selection = selection.InNamespace(namespace)
	}
	p := &part{whole: w, index: -1}
	var err error
	if p.watcher, err = w.cache.Resume(ctx, watchcache.WatchOptions{Selection: selection, After: after, Waker: p}); err != nil {
		return err
	}
	w.parts[namespace] = p
	w.wakePart(p)
	return nil
}

func (w *visibleWatcher) closeParts() {
	for namespace, p := range w.parts {
		w.closePart(namespace, p)
	}
}

func (w *visibleWatcher) closePart(namespace string, p *part) {
	p.gone = true
	p.watcher.Close()
	if p.index >= 0 {
		heap.Remove(&w.queued, p.index)
	}
	delete(w.parts, namespace)
}

// Read is as watchcache.Watcher.Read.
func (w *visibleWatcher) Read(buf []watchcache.Event) (int, error) {
	if w.failed != nil || len(buf) == 0 {
		return 0, w.failed
	}
	n, err := w.read(buf)
	w.failed = err
	return n, err
}

func (w *visibleWatcher) read(buf []watchcache.Event) (int, error) {
	w.awaiting, w.lagging = false, false
	for {
		reached := w.look()
		if n := w.readPhases(buf); n > 0 {
			return n, nil
		}
		// What is published has woken its parts, so that none of the events up to bound is
		// missing. The policy is asked for its next change after it is known up to bound.
		bound := min(w.cache.Published(), reached)
		at, set, err := w.visible.Next(w.position)
		switch {
		case err != nil:
			return 0, err
		case at > bound:
			// Content of namespaces that are gone by then is not sent any more, so there would
			// be no revision that the client's state is of.
			w.lagging = true
			return 0, nil
		}
		through := bound
		if at != 0 {
			through = at - 1
		}
		if n, err := w.readParts(buf, through); n > 0 || err != nil {
			return n, err
		}
		w.position = max(w.position, through)
		if at == 0 {
			return 0, w.sleep(reached)
		}
		if err := w.change(at, set); err != nil {
			return 0, err
		}
	}
}

// look takes note of what is visible at the latest known revision, which it returns.
func (w *visibleWatcher) look() storage.Revision {
	reached := w.visible.Reached()
	if now := w.visible.Now(); now != w.now {
		w.past, w.pastAt, w.now = w.now, w.nowAt, now
	}
	w.nowAt = reached
	return reached
}

// sleep makes sure that something wakes the watch when the next event that has been read may
// be passed on.
func (w *visibleWatcher) sleep(reached storage.Revision) error {
	switch {
	case len(w.queued) == 0 && w.closed:
		return ErrClosed
	case len(w.queued) == 0:
	case w.queued[0].events[0].Revision > reached:
		w.awaiting = true
		w.visible.Await(w.queued[0].events[0].Revision, w.waker)
	default:
		w.lagging = true
	}
	return nil
}

// readPhases reads what has become visible, or is not any more.
func (w *visibleWatcher) readPhases(buf []watchcache.Event) (n int) {
	for len(w.phases) > 0 {
		p := &w.phases[0]
		m, done := w.readPhase(p, buf[n:])
		if n += m; !done {
			return n
		}
		w.phases = slices.Delete(w.phases, 0, 1)
		w.initial = false
	}
	return n
}

// readPhase reads the next part of a phase.
func (w *visibleWatcher) readPhase(p *phase, buf []watchcache.Event) (n int, done bool) {
	add := func(o *watchcache.Object, revision storage.Revision) {
		if event, ok := w.project(watchcache.Event{Type: p.kind, Object: o, Revision: revision}, true); ok {
			buf[n] = event
			n++
		}
	}
	for o := range p.snapshot.Select(p.selection, p.from) {
		if n == len(buf) {
			return n, false
		}
		p.from = o.Key + "\x00"
		switch {
		case p.except.Has(o.Attributes.Namespace):
		case p.kind == watchcache.Added:
			add(o, o.Revision)
		default:
			if p.held != nil {
				add(p.held, p.at-1)
			}
			p.held = o
		}
	}
	if p.held == nil {
		return n, true
	}
	if n == len(buf) {
		return n, false
	}
	add(p.held, p.through)
	return n, true
}

// project reduces an event to what may be sent of it. last says that a deletion has the last
// state of an object that may not have been sent.
func (w *visibleWatcher) project(event watchcache.Event, last bool) (watchcache.Event, bool) {
	namespace := event.Object.Attributes.Namespace
	deleted := event.Type == watchcache.Deleted
	if w.now.Has(namespace) {
		if deleted && last {
			event.Object = event.Object.AtRevision(event.Revision)
		}
		return event, true
	}
	if !deleted {
		return event, false
	}
	if w.past.Has(namespace) && event.Object.Written() <= w.pastAt {
		if last {
			event.Object = event.Object.AtRevision(event.Revision)
		}
		return event, true
	}
	identity, err := event.Object.Identity(w.cache.Resource(), event.Revision)
	event.Object = identity
	return event, err == nil // it has been decoded before
}

// readParts reads the events up to a revision.
func (w *visibleWatcher) readParts(buf []watchcache.Event, through storage.Revision) (n int, err error) {
	if err := w.gather(); err != nil {
		return 0, err
	}
	for n < len(buf) && len(w.queued) > 0 {
		p := w.queued[0]
		event := p.events[0]
		if event.Revision > through {
			break
		}
		p.events[0] = watchcache.Event{}
		if p.events = p.events[1:]; len(p.events) > 0 {
			heap.Fix(&w.queued, 0)
		} else if err := w.fill(p); err != nil {
			return n, err
		}
		if !w.set.Has(event.Object.Attributes.Namespace) {
			continue
		}
		if event, ok := w.project(event, false); ok {
			buf[n] = event
			n++
		}
	}
	return n, nil
}

// gather reads the parts that have been woken.
func (w *visibleWatcher) gather() error {
	for {
		w.mu.Lock()
		last := len(w.awake) - 1
		if last < 0 {
			w.mu.Unlock()
			return nil
		}
		p := w.awake[last]
		w.awake[last] = nil
		w.awake, p.awake = w.awake[:last], false
		w.mu.Unlock()
		if p.gone || len(p.events) > 0 {
			continue
		}
		if err := w.fill(p); err != nil {
			w.wakePart(p)
			return err
		}
	}
}

// fill reads the next events of a part that has none, and puts it where it belongs in the
// heap.
func (w *visibleWatcher) fill(p *part) error {
	var events [16]watchcache.Event
	n, err := p.watcher.Read(events[:])
	if errors.Is(err, watchcache.ErrClosed) {
		w.closed, err = true, nil
	}
	p.events = append(p.events[:0:0], events[:n]...)
	switch {
	case n == 0 && p.index >= 0:
		heap.Remove(&w.queued, p.index)
	case n > 0 && p.index < 0:
		heap.Push(&w.queued, p)
	case n > 0:
		heap.Fix(&w.queued, p.index)
	}
	return err
}

// change makes another set visible. All events before its revision have been read.
func (w *visibleWatcher) change(at storage.Revision, set *watchcache.Namespaces) error {
	ctx := context.Background() // neither blocks: the cache has reached the revision
	withdrawn, granted := w.selection.InNamespaces(w.set.Without(set)), w.selection.InNamespaces(set.Without(w.set))
	if !set.Contains(w.set) {
		for namespace, p := range w.parts {
			if (namespace == "" || !set.Has(namespace)) && p.watcher.CoalescedThrough() >= at {
				// Of objects that were deleted before the change and created again after it,
				// coalesced history does not have the deletion.
				return &watchcache.ExpiredError{Requested: w.position, Oldest: p.watcher.CoalescedThrough()}
			}
		}
		before, err := w.cache.Exact(ctx, at-1)
		if err != nil {
			return err
		}
		through := at
		if !w.set.Contains(set) {
			through--
		}
		w.phases = append(w.phases, phase{kind: watchcache.Deleted, snapshot: before, selection: withdrawn, except: set, at: at, through: through})
	}
	if !w.set.Contains(set) {
		after, err := w.cache.Exact(ctx, at)
		if err != nil {
			return err
		}
		w.phases = append(w.phases, phase{kind: watchcache.Added, snapshot: after, selection: granted, except: w.set})
		w.bookmark = true
	}
	before := w.set
	w.set, w.position = set, at
	if w.inOne(before) || w.inOne(set) {
		if w.inOne(before) && w.inOne(set) {
			return nil
		}
		return w.openParts(ctx, at-1) // a store's transaction may have changed objects at the same revision
	}
	for namespace, p := range w.parts {
		if !set.Has(namespace) {
			w.closePart(namespace, p)
		}
	}
	for _, namespace := range set.Names() {
		if !before.Has(namespace) {
			if err := w.openPart(ctx, namespace, at); err != nil {
				return err
			}
		}
	}
	return nil
}

// Initial reports whether events of the initial state remain to be read.
func (w *visibleWatcher) Initial() bool { return w.initial }

// InCoalescedHistory is always true: only the request's own goroutine reads, because a Read
// may take long, and decides when the next bookmark or Read is due.
func (w *visibleWatcher) InCoalescedHistory() bool { return true }

// TakeInitial must not be called: what is visible may change while the state is sent.
func (w *visibleWatcher) TakeInitial() (watchcache.Snapshot, *watchcache.Selection) {
	panic("read: the initial state of a filtered watch cannot be taken as a whole")
}

// Bookmark returns the revision that the client's state is of after a Read that returned 0;
// 0 if it is of none.
func (w *visibleWatcher) Bookmark() storage.Revision {
	if w.initial || w.lagging {
		return 0
	}
	return w.position
}

// Close ends the watchers.
func (w *visibleWatcher) Close() {
	w.visible.Unsubscribe(w.waker)
	w.closeParts()
}

// partHeap has the part with the earliest event in front.
type partHeap []*part

func (h partHeap) Len() int           { return len(h) }
func (h partHeap) Less(i, j int) bool { return h[i].events[0].Revision < h[j].events[0].Revision }

func (h partHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push implements heap.Interface.
func (h *partHeap) Push(x any) {
	p := x.(*part)
	p.index = len(*h)
	*h = append(*h, p)
}

// Pop implements heap.Interface.
func (h *partHeap) Pop() any {
	last := len(*h) - 1
	p := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	p.index = -1
	return p
}

// Cursor says how far the watch is in all events of its resource, also of the namespaces that
// its user does not see.
func (w *visibleWatcher) Cursor() watchcache.Cursor {
	c := w.cache.CursorAt(w.began, w.position)
	if w.initial {
		c.Phase = watchcache.InInitial
	}
	return c
}
