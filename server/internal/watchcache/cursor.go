package watchcache

import (
	"math"
	"time"

	"github.com/levelwire/levelwire/server/internal/watchcache/eventlog"
	"github.com/levelwire/levelwire/storage"
)

// Beginning is how a Watcher began.
type Beginning uint8

// The ways in which a Watcher begins.
const (
	BeganInitial   Beginning = iota + 1 // with the objects of a snapshot
	BeganExact                          // at a revision to which the log reaches back
	BeganCoalesced                      // before the log, with coalesced history
)

// String returns the beginning as the debug API has it.
func (b Beginning) String() string {
	switch b {
	case BeganInitial:
		return "initial"
	case BeganExact:
		return "exact"
	case BeganCoalesced:
		return "coalesced"
	}
	return ""
}

// CursorPhase is what a Watcher reads from.
type CursorPhase uint8

// The phases of a Watcher.
const (
	InLog       CursorPhase = iota // the events of the log
	InInitial                      // the objects of its initial snapshot
	InCoalesced                    // coalesced history
)

// String returns the phase as the debug API has it.
func (p CursorPhase) String() string {
	return [...]string{"log", "initial", "coalesced"}[p]
}

// Cursor is a copy of where a Watcher was in the history of its cache. It may be used by
// any goroutine, and keeps the Watcher's log in memory.
type Cursor struct {
	// Began says how the watch began, Phase what it reads from.
	Began Beginning
	Phase CursorPhase
	// Reached is the revision up to which the watcher has read everything that concerns it;
	// while it has nothing to read, it may be the revision of its last event.
	Reached storage.Revision
	// CoalescedThrough is that of the Watcher.
	CoalescedThrough storage.Revision

	cache     *Cache
	log       *eventlog.Log // of the bucket; nil: Reached counts
	position  uint64
	remaining uint64 // events before those in log
	next      uint64 // the position in the cache's log of the next event, if remaining is not 0
}

// Cursor returns where the watcher is. It is for the goroutine that may call Read. It takes
// no locks.
func (w *Watcher) Cursor() Cursor {
	c := Cursor{
		Began: w.began, Reached: w.reached, CoalescedThrough: w.coalescedThrough,
		cache: w.cache, log: w.bucket.log, position: w.position,
	}
	if w.catchUp < w.catchUpEnd {
		c.remaining, c.next = w.catchUpEnd-w.catchUp, w.catchUp
	}
	switch {
	case w.initial != nil:
		c.Phase = InInitial
	case w.summary != nil:
		c.Phase = InCoalesced
		c.remaining, c.next = uint64(len(w.summary.changes)-w.cursor), 0
	}
	return c
}

// CursorAt returns the cursor of a reader of the whole log that has got every event up to a
// revision.
func (c *Cache) CursorAt(began Beginning, reached storage.Revision) Cursor {
	return Cursor{Began: began, Reached: reached, cache: c}
}

// Lag returns how many events of the watcher's interest are before it, of which its selector
// may let pass fewer, and when the first of them arrived; the zero time if there is none or that
// is not known.
func (r *Cursor) Lag() (events int, since time.Time) {
	log, position := r.log, r.position
	if log == nil {
		log = r.cache.log
		position = r.cache.positionAfter(r.Reached)
	}
	position = max(position, log.Oldest())
	end := log.End()
	if position < end {
		events = int(end - position)
	}
	events += int(min(r.remaining, math.MaxInt32))
	var first *eventlog.Entry
	switch {
	case r.next != 0:
		first = r.cache.log.At(r.next)
	case r.remaining == 0 && position < end:
		first = log.At(position)
	}
	if first != nil {
		since = r.cache.arrivalOf(first)
	}
	return events, since
}

// positionAfter returns the position in the log of the first event after a revision.
func (c *Cache) positionAfter(revision storage.Revision) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.log.Search(func(e *eventlog.Entry) bool { return e.Revision > revision })
}

// tick is the resolution of the times at which events arrive: 32 bits of them last for
// sixteen months.
const tick = 10 * time.Millisecond

// ticks returns a time as entries have it; never 0.
func (c *Cache) ticks(now time.Time) uint32 { return uint32(now.Sub(c.epoch)/tick) + 1 }

// arrivalOf returns when the cache applied an entry; the zero time if that is not known.
func (c *Cache) arrivalOf(e *eventlog.Entry) time.Time {
	if e.Arrived == 0 {
		return time.Time{}
	}
	return c.epoch.Add(time.Duration(e.Arrived-1) * tick)
}

// OldestArrival returns when the oldest event of the log arrived; the zero time if the log is
// empty, or that is not known.
func (c *Cache) OldestArrival() time.Time {
	if first := c.log.At(c.log.Oldest()); first != nil {
		return c.arrivalOf(first)
	}
	return time.Time{}
}
