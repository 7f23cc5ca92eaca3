package watchcache

import (
	"container/heap"
	"context"
	"sync"
	"sync/atomic"

	"github.com/levelwire/levelwire/storage"
)

// Progress is the revision up to which a source has applied every change to all
// caches that follow the Progress. Because they share it, a consistent read of an
// idle resource needs no progress request. A cache that is behind the others
// follows a Progress of its own until it has caught up, so that the others need
// not wait for it; see Cache.Follow. The zero value is at revision 0; it must not
// be copied.
type Progress struct {
	revision   atomic.Int64
	waiting    atomic.Int64 // len(waiters), readable without the lock
	mu         sync.Mutex   // guards the fields below, and orders Publish against Wait
	waiters    waiters
	superseded bool
}

// waiter is one Wait: done is closed when revision is reached.
type waiter struct {
	revision storage.Revision
	done     chan struct{}
	index    int // in the heap; -1 when it has been removed
}

// Reached returns the revision.
func (p *Progress) Reached() storage.Revision { return storage.Revision(p.revision.Load()) }

// Publish moves the revision forward and ends the Waits for it; a revision that is
// not later changes nothing. Without waiters it costs two atomic operations.
func (p *Progress) Publish(revision storage.Revision) {
	for {
		before := p.revision.Load()
		if int64(revision) <= before {
			return
		}
		if p.revision.CompareAndSwap(before, int64(revision)) {
			break
		}
	}
	if p.waiting.Load() == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.waiters) > 0 && p.waiters[0].revision <= revision {
		w := heap.Pop(&p.waiters).(*waiter)
		close(w.done)
	}
	p.waiting.Store(int64(len(p.waiters)))
}

// Restart sets the revision back: the store itself has gone back, as after a
// restore from a backup.
func (p *Progress) Restart(revision storage.Revision) { p.revision.Store(int64(revision)) }

// supersede ends all Waits, those to come included: the cache follows another
// Progress now. The revision stays as it is.
func (p *Progress) supersede() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.superseded = true
	for len(p.waiters) > 0 {
		close(heap.Pop(&p.waiters).(*waiter).done)
	}
	p.waiting.Store(0)
}

// Wait blocks until the revision is reached, the Progress is superseded, or ctx
// ends, with ctx's error.
func (p *Progress) Wait(ctx context.Context, revision storage.Revision) error {
	if p.Reached() >= revision {
		return nil
	}
	w := &waiter{revision: revision, done: make(chan struct{})}
	if !p.add(w) {
		return nil
	}
	defer p.remove(w)
	if p.Reached() >= revision {
		return nil // published before the waiter was in the heap
	}
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// add adds a waiter to the heap, unless the Progress is superseded.
func (p *Progress) add(w *waiter) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.superseded {
		return false
	}
	heap.Push(&p.waiters, w)
	p.waiting.Store(int64(len(p.waiters)))
	return true
}

// remove removes a waiter from the heap if it is still there.
func (p *Progress) remove(w *waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.index >= 0 {
		heap.Remove(&p.waiters, w.index)
		p.waiting.Store(int64(len(p.waiters)))
	}
}

// waiters is a heap with the smallest revision in front.
type waiters []*waiter

func (h waiters) Len() int           { return len(h) }
func (h waiters) Less(i, j int) bool { return h[i].revision < h[j].revision }

func (h waiters) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push implements heap.Interface.
func (h *waiters) Push(x any) {
	w := x.(*waiter)
	w.index = len(*h)
	*h = append(*h, w)
}

// Pop implements heap.Interface.
func (h *waiters) Pop() any {
	last := len(*h) - 1
	w := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	w.index = -1
	return w
}
