package watchcache

import (
	"sync"
	"sync/atomic"
)

// bucket is what the watchers of one interest share: a log that holds only
// the events that touch it, and the list of those that wait for the next one.
type bucket struct {
	interest interest
	log      *log
	start    uint64 // the log holds every event of the interest from this position of the cache's log on
	watchers int    // guarded by the cache's lock
	touched  bool   // the writer's: has to be woken after this batch

	sleeping atomic.Int64 // len(sleepers), readable without the lock
	mu       sync.Mutex   // guards sleepers; nothing else is locked while it is held
	sleepers []*Watcher
	spare    []*Watcher // the writer's: the list it woke last, to be filled again
	starters []Starter  // the writer's: of those it is waking
}

const (
	mainShift   = 8 // the cache's own log: chunks of 256 entries
	bucketShift = 4 // most interests are narrow
)

func newBucket(i interest, start uint64) *bucket {
	return &bucket{interest: i, start: start, log: newLog(bucketShift)}
}

// sleep makes the next event wake the watcher. The caller has to look at the
// log once more afterwards: an event may have come before it was on the list.
func (b *bucket) sleep(w *Watcher) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if w.asleep.Load() {
		return // still on the list, or just being woken
	}
	w.asleep.Store(true)
	w.slot = len(b.sleepers)
	b.sleepers = append(b.sleepers, w)
	b.sleeping.Store(int64(len(b.sleepers)))
}

// wake wakes every watcher that sleeps and returns how many that were. Only
// one goroutine at a time may call it: the cache's lock sees to that.
func (b *bucket) wake() int {
	if b.sleeping.Load() == 0 {
		return 0
	}
	b.mu.Lock()
	list := b.sleepers
	b.sleepers = b.spare[:0]
	b.sleeping.Store(0)
	b.mu.Unlock()
	for _, w := range list {
		// First the mark, then the signal: a watcher that still finds the mark
		// relies on the signal that follows.
		w.asleep.Store(false)
		if starter := w.signal(); starter != nil {
			b.starters = append(b.starters, starter)
		}
	}
	for _, starter := range b.starters {
		starter.Start()
	}
	clear(b.starters)
	clear(list)
	b.spare, b.starters = list, b.starters[:0]
	return len(list)
}

// forget takes a watcher off the list that is closed.
func (b *bucket) forget(w *Watcher) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if w.slot >= len(b.sleepers) || b.sleepers[w.slot] != w {
		return
	}
	last := len(b.sleepers) - 1
	moved := b.sleepers[last]
	b.sleepers[w.slot] = moved
	moved.slot = w.slot
	b.sleepers[last] = nil
	b.sleepers = b.sleepers[:last]
	b.sleeping.Store(int64(last))
}
