package watchcache

import (
	"container/heap"
	"context"
	"sync"
	"sync/atomic"

	"github.com/levelwire/levelwire/storage"
)

// Progress is how far a source has come: every change up to the revision has
// been applied to all caches that share the Progress. Sharing it makes the
// freshness of a resource that nobody writes cost nothing. The zero value is at
// revision 0; it must not be copied.
type Progress struct {
	revision atomic.Int64
	waiting  atomic.Int64 // len(waiters), readable without the lock
	mu       sync.Mutex   // guards waiters, and orders Publish against Wait
	waiters  waiters
}

// waiter waits until revision is reached; done is closed then.
type waiter struct {
	revision storage.Revision
	done     chan struct{}
	index    int // in the heap; -1 when it has been taken out
}

// Reached returns the revision.
func (p *Progress) Reached() storage.Revision { return storage.Revision(p.revision.Load()) }

// Publish moves the revision forward and releases those who waited for it; an earlier
// revision than before changes nothing. It costs two atomic operations when nobody waits.
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

// restart puts the revision back: the store itself has gone back, as after a
// restore from a backup.
func (p *Progress) restart(revision storage.Revision) { p.revision.Store(int64(revision)) }

// Wait blocks until the revision is reached or ctx ends, with ctx's error.
func (p *Progress) Wait(ctx context.Context, revision storage.Revision) error {
	if p.Reached() >= revision {
		return nil
	}
	w := &waiter{revision: revision, done: make(chan struct{})}
	p.mu.Lock()
	heap.Push(&p.waiters, w)
	p.waiting.Store(int64(len(p.waiters)))
	p.mu.Unlock()
	defer p.leave(w)
	if p.Reached() >= revision {
		return nil // published before the waiter was on the list
	}
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// leave takes a waiter off the list if it is still there.
func (p *Progress) leave(w *waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.index >= 0 {
		heap.Remove(&p.waiters, w.index)
		p.waiting.Store(int64(len(p.waiters)))
	}
}

// waiters is a heap: the smallest revision is in front.
type waiters []*waiter

func (h waiters) Len() int           { return len(h) }
func (h waiters) Less(i, j int) bool { return h[i].revision < h[j].revision }

func (h waiters) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push is heap.Interface's.
func (h *waiters) Push(x any) {
	w := x.(*waiter)
	w.index = len(*h)
	*h = append(*h, w)
}

// Pop is heap.Interface's.
func (h *waiters) Pop() any {
	last := len(*h) - 1
	w := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	w.index = -1
	return w
}
