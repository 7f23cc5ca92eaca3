package watchcache

import (
	"sync"
	"sync/atomic"

	"github.com/levelwire/levelwire/server/internal/watchcache/eventlog"
	"github.com/levelwire/levelwire/server/internal/watchcache/state"
)

// bucket is shared by the watchers of one interest: a log that holds only the
// events that touch the interest, and the list of watchers that sleep until the
// next one.
type bucket struct {
	interest state.Interest
	log      *eventlog.Log
	start    uint64 // log holds every event of the interest from this position of the cache's log on
	watchers int    // guarded by the cache's lock
	touched  bool   // the writer's: has to be woken after this batch

	sleeping atomic.Int64 // len(sleepers), readable without the lock
	mu       sync.Mutex   // guards sleepers; nothing else is locked while it is held
	sleepers []*Watcher
	spare    []*Watcher // the writer's: the list that it woke last, for reuse
	starters []Starter  // the writer's: of the watchers that it is waking
}

const (
	mainShift   = 8 // the cache's own log: chunks of 256 entries
	bucketShift = 4 // buckets: chunks of 16, because most interests are narrow
)

func newBucket(i state.Interest, start uint64) *bucket {
	return &bucket{interest: i, start: start, log: eventlog.New(bucketShift)}
}

// sleep makes the next event wake the watcher. The caller has to read the log once
// more afterwards: an event may have been appended before the watcher was on the
// list.
func (b *bucket) sleep(w *Watcher) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if w.asleep.Load() {
		return // still on the list, or being woken
	}
	w.asleep.Store(true)
	w.slot = len(b.sleepers)
	b.sleepers = append(b.sleepers, w)
	b.sleeping.Store(int64(len(b.sleepers)))
}

// wake wakes every sleeping watcher and returns how many there were. The cache's
// lock is held.
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
		// asleep is cleared before the signal: a watcher that still finds it set
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

// remove takes a closed watcher off the list.
func (b *bucket) remove(w *Watcher) {
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
