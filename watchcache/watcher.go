package watchcache

import (
	"sync/atomic"

	"github.com/levelwire/levelwire/storage"
)

// WatchOptions says what a Watcher delivers.
type WatchOptions struct {
	// After: only changes with a greater revision are delivered. A future one
	// is waited for in silence. Ignored if Initial is set.
	After storage.Revision
	// Selection leaves out what the watcher does not want; nil wants all. It
	// must have been compiled for the cache's resource, or one shown over it.
	Selection *Selection
	// Initial, if set, is delivered first, as Added events in the order of
	// keys; changes after it follow without gap or duplicate.
	Initial *Snapshot
}

// Watcher is a cursor in the history of a cache. Read, Initial and Reached
// are for one goroutine at a time; Ready and Close may be called by any. A
// Watcher that is not read costs nothing but its own small memory, plus that
// of the Initial snapshot until it has been read.
type Watcher struct {
	cache      *Cache
	bucket     *bucket
	selection  *Selection
	generation uint64
	ready      chan struct{}
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
}

// Ready receives when there may be something to Read, at the latest after the
// next event of interest that came after a Read returned 0. It may also
// receive without reason.
func (w *Watcher) Ready() <-chan struct{} { return w.ready }

func (w *Watcher) signal() {
	select {
	case w.ready <- struct{}{}:
	default:
	}
}

// Read fills buf with the next events and returns how many there were; 0
// means that nothing is there now and Ready will tell. It never blocks, and
// the events' objects are shared. It fails with an *ExpiredError when the
// watcher was so slow that history it has not read is gone, and with
// ErrClosed. Events that were returned along with an earlier call stay valid.
func (w *Watcher) Read(buf []Event) (int, error) {
	if w.closed.Load() {
		return 0, ErrClosed
	}
	if w.generation != w.cache.generation.Load() {
		return 0, w.expired()
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
		n, err := w.readLog(buf)
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
			return 0, w.expired()
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

// expired counts a watcher that cannot go on.
func (w *Watcher) expired() error {
	w.cache.counters.expired.Add(1)
	return &ExpiredError{Requested: w.reached, Oldest: storage.Revision(w.cache.base.Load())}
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
	w.initial, w.from = nil, ""
	w.reached = max(w.reached, w.after)
	return n
}

// readLog delivers from the cache's log until the position from which the
// bucket's log is complete, and from there on from that.
func (w *Watcher) readLog(buf []Event) (int, error) {
	n := 0
	for n < len(buf) {
		e, ok := w.next()
		if !ok && n == 0 {
			return 0, w.expired()
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

// Reached returns the greatest revision of which it is sure that every event
// of the watcher up to it has been returned by Read: what a bookmark may say.
// It is 0 until the initial events have been read, and never less than
// After.
func (w *Watcher) Reached() storage.Revision {
	if w.initial != nil {
		return 0
	}
	if w.generation != w.cache.generation.Load() {
		return w.reached
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
		w.signal()
	}
}
