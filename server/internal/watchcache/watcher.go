package watchcache

import (
	"errors"
	"sync/atomic"

	"github.com/levelwire/levelwire/storage"
)

// WatchOptions says what a Watcher delivers.
type WatchOptions struct {
	// After: only changes with a greater revision are delivered; if several
	// objects have been written in that very revision, these as well. A future one
	// is waited for in silence. Ignored if Initial is set.
	After storage.Revision
	// Selection leaves out what the watcher does not want; nil wants all. It
	// must have been compiled for the cache's resource, or one shown over it.
	Selection *Selection
	// Initial, if set, is delivered first, as Added events in the order of
	// keys; changes after it follow without gap or duplicate.
	Initial *Snapshot
	// Waker, if set, is told in place of Ready, which then never receives.
	Waker Waker
}

// Waker learns that its Watcher may have something to Read, after a Read that
// returned 0 and at most once for each such Read. Its methods are called by the
// cache's writer: they must neither block nor call the cache.
type Waker interface {
	// Wake returns nil, or who has to be started when all those have been told
	// who wait for the same.
	Wake() Starter
}

// Starter goes to work for a number of watchers.
type Starter interface{ Start() }

// Watcher is a cursor in the history of a cache. Read, Initial and Reached
// are for one goroutine at a time; Ready and Close may be called by any. A
// Watcher that is not read costs nothing but its own small memory, plus that
// of the Initial snapshot until it has been read.
type Watcher struct {
	cache      *Cache
	bucket     *bucket
	selection  *Selection
	generation uint64
	waker      Waker         // nil: ready is used
	ready      chan struct{} // nil: waker is used
	closed     atomic.Bool

	asleep atomic.Bool
	slot   int // in bucket.sleepers; guarded by its lock

	// What follows belongs to the goroutine that reads.
	initial  *Snapshot // nil when it has been delivered
	from     string    // first key of initial that has not been delivered
	behind   uint64    // position in the cache's log, until the bucket's takes over
	until    uint64    // where it does
	position uint64    // in the bucket's log
	after    storage.Revision
	reached  storage.Revision

	// The coalesced history that comes before the log's, nil if there is none or
	// it has been told; see readSummary.
	summary  *summary
	since    storage.Revision // what the client has had before it
	cursor   int              // of the next change
	sweeping bool             // in its first part
}

// Ready receives when there may be something to Read, at the latest after the
// next event of interest that came after a Read returned 0. It may also
// receive without reason.
func (w *Watcher) Ready() <-chan struct{} { return w.ready }

// signal tells whoever waits, and returns who is to be started.
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

// Read fills buf with the next events and returns how many there were; 0
// means that nothing is there now and Ready will tell. It waits for nobody, and
// the events' objects are shared. A watcher that was so slow that the log has
// dropped what it has not read is told coalesced history instead, and fails
// with an *ExpiredError only if that is gone, too, or with ErrClosed. Events
// that were returned along with an earlier call stay valid.
func (w *Watcher) Read(buf []Event) (int, error) {
	if w.closed.Load() {
		return 0, ErrClosed
	}
	if w.generation != w.cache.generation.Load() {
		return 0, w.reset()
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
				return n, nil
			}
		}
		n, err := w.readLog(buf)
		if errors.Is(err, errSummary) {
			continue
		}
		if n > 0 || err != nil {
			return n, err
		}
		w.bucket.sleep(w)
		// The order matters: what was entered before the cache was closed is
		// in the log.
		over := w.cache.closed.Load()
		if w.closed.Load() {
			w.bucket.forget(w) // Close may have looked before it was on the list
			return 0, ErrClosed
		}
		if w.generation != w.cache.generation.Load() {
			return 0, w.reset()
		}
		if w.position == w.bucket.log.end.Load() {
			if over {
				w.bucket.forget(w)
				return 0, ErrClosed
			}
			return 0, nil
		}
	}
}

// reset is the end of a watcher whose cache has given its history up.
func (w *Watcher) reset() error {
	w.cache.counters.expiredReset.Add(1)
	return w.cache.expired(w.reached)
}

// late is the end of a watcher that was too slow.
func (w *Watcher) late() error {
	w.cache.counters.expiredSlow.Add(1)
	return w.cache.expired(w.reached)
}

// readInitial delivers the next part of the initial snapshot, which must be set.
// The iteration allocates, which is why other reads do not come here.
func (w *Watcher) readInitial(buf []Event) int {
	n := 0
	for o := range w.initial.Select(w.selection, w.from) {
		if n == len(buf) {
			w.from = o.Key
			return n
		}
		buf[n] = Event{Type: Added, Object: o, Revision: o.Revision}
		n++
	}
	w.toldInitial()
	return n
}

// toldInitial is the end of the initial snapshot: what follows begins at its
// revision.
func (w *Watcher) toldInitial() {
	w.reached = max(w.reached, w.initial.revision)
	w.initial, w.from = nil, ""
}

// readLog delivers from the cache's log until the position from which the
// bucket's log is complete, and from there on from that.
func (w *Watcher) readLog(buf []Event) (int, error) {
	n := 0
	for n < len(buf) {
		e, ok := w.next()
		if !ok && n == 0 {
			if !w.resumeFromSummary() {
				return 0, w.late()
			}
			return 0, errSummary
		}
		if e == nil {
			return n, nil // at the end, or the next Read will say that the rest is gone
		}
		if e.revision > w.after {
			if event, ok := w.selection.project(e, w.cache.account.Load()); ok {
				buf[n] = event
				n++
			}
		}
		w.advance(e)
	}
	return n, nil
}

// next returns the first entry that has not been looked at; nil at the end.
// It is false if the entry was evicted.
func (w *Watcher) next() (*entry, bool) {
	from, position := w.bucket.log, w.position
	if w.behind < w.until {
		from, position = w.cache.log, w.behind
	} else if position == from.end.Load() {
		return nil, true
	}
	e := from.at(position)
	return e, e != nil
}

func (w *Watcher) advance(e *entry) {
	if w.behind < w.until {
		w.behind++
	} else {
		w.position++
	}
	w.reached = max(w.reached, e.through)
}

// Initial reports whether events of the initial snapshot remain to be Read.
// When it turns false the end-of-initial bookmark is due, at Reached.
func (w *Watcher) Initial() bool { return w.initial != nil }

// InCoalescedHistory reports whether what comes next is coalesced history: a Read may then
// take as long as there are changes to be sorted or looked through, and is for a
// goroutine that nobody else depends on. It is for the goroutine that reads.
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

// TakeInitial hands the initial snapshot, which must not have been Read from,
// and what is selected of it, to a reader that delivers it by other means. Read
// goes on with the changes after it.
func (w *Watcher) TakeInitial() (Snapshot, *Selection) {
	snapshot := *w.initial
	w.toldInitial()
	return snapshot, w.selection
}

// Reached returns the greatest revision of which it is sure that every event
// of the watcher up to it has been returned by Read: what a bookmark may say.
// It is 0 until the initial events have been read, and from then on never less
// than After, or than the revision before if that is told once more.
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
	// The order matters: what is published as reached is in the logs before.
	through := w.cache.reached()
	for {
		e, ok := w.next()
		if !ok {
			return w.reached
		}
		if e == nil {
			break
		}
		if e.revision > w.after && w.selection.transition(e) != 0 {
			through = min(through, e.revision-1)
			break
		}
		w.advance(e) // of no concern to this watcher
	}
	w.reached = max(w.reached, through)
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
