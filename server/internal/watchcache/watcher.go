package watchcache

import (
	"errors"
	"sync/atomic"

	"github.com/levelwire/levelwire/server/internal/watchcache/eventlog"
	"github.com/levelwire/levelwire/storage"
)

// WatchOptions select what a Watcher delivers.
type WatchOptions struct {
	// After is the revision after which changes are delivered; if several objects
	// were written in that very revision, it is delivered as well. The watcher of a
	// future revision delivers nothing until then. Ignored if Initial is set.
	After storage.Revision
	// Selection selects the objects; nil selects all. It must have been compiled
	// for the cache's resource, or for one that is stored as that.
	Selection *Selection
	// Initial, if set, is delivered first, as Added events in the order of
	// keys; changes after it follow without gap or duplicate.
	Initial *Snapshot
	// Waker, if set, is woken in place of Ready, which then never receives.
	Waker Waker
	// EndAtGaps has Read fail with ErrClosed before the watcher would go on with less than
	// every change, which it otherwise does without notice: another cache is fed by it, and
	// has to know for which of its own watchers that is right.
	EndAtGaps bool
}

// Waker is called when its Watcher may have something to Read, after a Read that
// returned 0 and at most once for each such Read. Its methods are called by the
// cache's writer: they must neither block nor call the cache.
type Waker interface {
	// Wake returns nil, or a Starter that the cache starts once all watchers of the
	// bucket have been woken.
	Wake() Starter
}

// Starter begins to serve a number of watchers that have been woken.
type Starter interface{ Start() }

// Watcher is a cursor in the log of a cache. Read, Initial, Reached, Bookmark and
// InCoalescedHistory are for one goroutine at a time; Ready and Close may be called
// by any. A Watcher that is not read costs nothing but its own small memory, plus
// that of the Initial snapshot until it has been read.
//
// What a wake-up and the Read after it look at comes first, side by side: between two events
// the processor's cache forgets a watcher, and each further line of it costs 50 to 100 ns.
type Watcher struct {
	told       told // by Read, Bookmark and TakeInitial; nothing, unless the build checks invariants
	cache      *Cache
	bucket     *bucket
	selection  *Selection
	generation uint64
	waker      Waker // nil: ready is used
	slot       int   // in bucket.sleepers; guarded by the bucket's lock
	asleep     atomic.Bool
	closed     atomic.Bool
	endAtGaps  bool
	future     bool   // the cache had not reached after when the watcher began
	own        bool   // after is the revision of a Snapshot of this cache; the reader's
	gapsBegun  uint32 // those of the cache, when the watcher began

	// The fields below, but for ready, belong to the goroutine that reads.
	initial    *Snapshot // nil when it has been delivered
	catchUp    uint64    // position in the cache's log, while it is before catchUpEnd
	catchUpEnd uint64    // the bucket's log is complete from here on
	position   uint64    // in the bucket's log
	after      storage.Revision
	gaps       *gaps // those of which is known that after is in none
	reached    storage.Revision
	handed     storage.Revision // the version that the client has: of the last event, or what it named
	// summary is coalesced history to be read before the log; nil if there is none,
	// or when it has been read. See readSummary.
	summary *summary

	ready    chan struct{}    // nil: waker is used
	from     string           // first key of initial that has not been delivered
	since    storage.Revision // the client's revision before the summary
	cursor   int              // of the next change
	sweeping bool             // in the first part, of objects that have left the selection
	hasPart  bool             // the client may have a part of the revision after since

	coalescedThrough storage.Revision // of the latest summary; 0: there was none
	began            Beginning
}

// Ready receives when there may be something to Read: at the latest with the next
// event of the watcher's interest after a Read that returned 0. It may also
// receive when there is nothing.
func (w *Watcher) Ready() <-chan struct{} { return w.ready }

// signal wakes the watcher's reader, and returns the Starter that must be started
// afterwards, if any.
func (w *Watcher) signal() Starter {
	if w.waker != nil {
		return w.waker.Wake()
	}
	select {
	case w.ready <- struct{}{}:
	default:
	}
	return nil
}

// Read fills buf with the next events and returns how many there were; 0 means
// that there are none now and that Ready will receive. It does not block, and the
// events' objects are shared. A watcher whose next event has been evicted goes on
// with coalesced history, and fails with an *ExpiredError only if that does not
// reach back far enough, or with ErrClosed. Events of earlier calls stay valid.
func (w *Watcher) Read(buf []Event) (int, error) {
	if w.closed.Load() {
		return 0, ErrClosed
	}
	if w.generation != w.cache.generation.Load() {
		return 0, w.reset()
	}
	if err := w.endsAtGap(); err != nil {
		return 0, err
	}
	if len(buf) == 0 {
		return 0, nil
	}
	if w.initial != nil {
		if n := w.readInitial(buf); n > 0 {
			return n, nil
		}
	}
	for {
		if w.summary != nil {
			if n := w.readSummary(buf); n > 0 {
				w.tell(buf, n, true)
				return n, nil
			}
		}
		n, err := w.readLog(buf)
		if errors.Is(err, errSummary) {
			continue
		}
		if n > 0 || err != nil {
			w.tell(buf, n, false)
			return n, err
		}
		w.bucket.sleep(w)
		// The order matters: what was applied before the cache was closed is in the
		// log.
		closed := w.cache.closed.Load()
		if w.closed.Load() {
			w.bucket.remove(w) // Close may have looked before the watcher was on the list
			return 0, ErrClosed
		}
		if w.generation != w.cache.generation.Load() {
			return 0, w.reset()
		}
		if w.position == w.bucket.log.End() {
			if closed {
				w.bucket.remove(w)
				return 0, ErrClosed
			}
			w.compareTold()
			return 0, nil
		}
	}
}

// Skip reads all that there is now, and reports whether that was anything. It is for those
// who read the state from the cache when it has changed, and need no events.
func (w *Watcher) Skip() (any bool, err error) {
	var events [16]Event
	for ; ; any = true {
		if n, err := w.Read(events[:]); n == 0 || err != nil {
			return any, err
		}
	}
}

// reset makes the error of a watcher whose cache has dropped its log.
func (w *Watcher) reset() error {
	w.cache.counters.expiredReset.Add(1)
	return w.cache.expired(w.reached)
}

// tooSlow makes the error of a watcher that was slower than the log.
func (w *Watcher) tooSlow() error {
	w.cache.counters.expiredSlow.Add(1)
	return w.cache.expired(w.reached)
}

// readInitial delivers the next part of the initial snapshot, which must be set.
// It is a function of its own because the iteration allocates.
func (w *Watcher) readInitial(buf []Event) int {
	n := 0
	for o := range w.initial.Select(w.selection, w.from) {
		if n == len(buf) {
			w.from = o.Key
			w.tellInitial(buf, n)
			return n
		}
		buf[n] = Event{Type: Added, Object: o, Revision: o.Revision}
		n++
	}
	w.tellInitial(buf, n)
	w.endInitialTold(false)
	w.endInitial()
	return n
}

// endInitial drops the initial snapshot: the log is read from its revision on.
func (w *Watcher) endInitial() {
	w.reached = max(w.reached, w.initial.Revision())
	w.handed = w.initial.Revision()
	w.initial, w.from = nil, ""
}

// readLog delivers events from the cache's log up to the position from which the
// bucket's log is complete, and then from the bucket's log. If a gap has begun by then, what
// was read may come from behind it, and counts as not read.
func (w *Watcher) readLog(buf []Event) (int, error) {
	n, reached, handed := 0, w.reached, w.handed
	for n < len(buf) {
		e, ok := w.next()
		if !ok && n == 0 {
			if w.endAtGaps {
				w.reached = reached
				return 0, ErrClosed
			}
			if !w.resumeFromSummary() {
				return 0, w.tooSlow()
			}
			return 0, errSummary
		}
		if e == nil {
			break // at the end, or the next Read goes on with coalesced history
		}
		if w.isAhead(e) {
			if event, ok := project(w.selection, e, w.cache.formBytes.Load()); ok {
				if n == 0 {
					w.cache.noteReader(e)
				}
				buf[n] = event
				w.hand(&buf[n])
				n++
			}
		}
		w.advance(e)
	}
	if err := w.endsAtGap(); err != nil {
		w.reached, w.handed = reached, handed
		return 0, err
	}
	return n, nil
}

// hand makes sure that an event carries no version before the one that the client has. Only a
// deletion can: in a revision of which the client may have a part, and which it therefore gets
// again (eventlog.SharedRevisions), it would carry the revision before. A client that is cut off
// behind the event resumes from where it would have without it.
func (w *Watcher) hand(event *Event) {
	if event.Revision < w.handed {
		event.Object, event.Revision = event.Object.AtRevision(w.handed), w.handed
	}
	w.handed = event.Revision
}

// next returns the first entry that has not been read; nil at the end. It returns
// false if the entry was evicted.
func (w *Watcher) next() (*eventlog.Entry, bool) {
	from, position := w.bucket.log, w.position
	if w.catchUp < w.catchUpEnd {
		from, position = w.cache.log, w.catchUp
	} else if position == from.End() {
		return nil, true
	}
	e := from.At(position)
	return e, e != nil
}

// isAhead reports whether an entry, which the cursor has come to, is behind the revision after
// which the watcher starts, or at that revision and not surely what the client has.
func (w *Watcher) isAhead(e *eventlog.Entry) bool {
	return e.Revision > w.after || e.Revision == w.after && w.mayLack(e)
}

// mayLack reports whether a client that has named the entry's revision may lack the entry: the
// entry has come since, or is one of several of a revision that had not come when the watch began.
func (w *Watcher) mayLack(e *eventlog.Entry) bool {
	switch {
	case e.IsLate():
		return true
	case !w.future:
		return false
	}
	return e.Through < e.Revision || e.IsFollower() || w.cache.oneByOne.Load()
}

// advance moves the cursor behind an entry.
func (w *Watcher) advance(e *eventlog.Entry) {
	if w.catchUp < w.catchUpEnd {
		w.catchUp++
	} else {
		w.position++
	}
	w.reached = max(w.reached, e.Through)
}

// Initial reports whether events of the initial snapshot remain to be Read.
// When it turns false the end-of-initial bookmark is due.
func (w *Watcher) Initial() bool { return w.initial != nil }

// InCoalescedHistory reports whether the next Read returns coalesced history. It then
// takes time that grows with the number of changes, so it must not run on a
// goroutine that serves other watchers too.
func (w *Watcher) InCoalescedHistory() bool {
	switch {
	case w.initial != nil:
		return false
	case w.summary != nil:
		return true
	}
	_, ok := w.next()
	return !ok
}

// CoalescedThrough returns the revision up to which history has been coalesced: of the
// changes before it, the watcher may deliver only the latest of each object. It is 0 if all
// history was exact.
func (w *Watcher) CoalescedThrough() storage.Revision { return w.coalescedThrough }

// TakeInitial returns the initial snapshot, of which nothing must have been Read,
// and the selection, to a caller that sends the snapshot itself. Read goes on with
// the changes after it.
func (w *Watcher) TakeInitial() (Snapshot, *Selection) {
	snapshot := *w.initial
	w.endInitialTold(true)
	w.endInitial()
	return snapshot, w.selection
}

// Reached returns the greatest known revision up to which Read has returned every
// event of the watcher. It is 0 until the initial events have been read, and from
// then on never less than After, or than the revision before if After is delivered
// again.
func (w *Watcher) Reached() storage.Revision {
	if w.initial != nil {
		return 0
	}
	if w.generation != w.cache.generation.Load() {
		return w.reached
	}
	if w.summary != nil {
		return w.reachedInSummary()
	}
	// The order matters: events are in the logs before their revision is published.
	through := w.cache.Reached()
	if w.inGap() || w.gapAhead() {
		return w.reached
	}
	return w.skipUnselected(through)
}

// Bookmark returns the revision that a bookmark may name: Reached. It is 0, for none, while the
// watcher has events of a revision of which the cache is still applying the rest: the bookmark
// would have the revision before, and to a client that is a server that has gone back in time.
func (w *Watcher) Bookmark() storage.Revision {
	revision := w.Reached()
	if revision < w.handed {
		return 0
	}
	w.tellBookmark(revision)
	w.handed = revision
	return revision
}

// skipUnselected moves the cursor to the next event of the watcher, and returns the revision
// before it; that is through if there is none. It stays where it was if a gap has begun.
func (w *Watcher) skipUnselected(through storage.Revision) storage.Revision {
	reached := w.reached
	for {
		e, ok := w.next()
		if !ok {
			through = w.reached
			break
		}
		if e == nil {
			break
		}
		if w.isAhead(e) && transition(w.selection, e) != 0 {
			through = min(through, e.Revision-1)
			break
		}
		w.advance(e)
	}
	w.reached = max(w.reached, through)
	if w.inGap() || w.gapAhead() {
		w.reached = reached // the next Read ends the watcher
	}
	return w.reached
}

// Close ends the watcher. Reads from then on fail with ErrClosed.
func (w *Watcher) Close() {
	if !w.closed.Swap(true) {
		w.cache.detach(w)
		if w.waker == nil {
			w.signal()
		}
	}
}
