package workqueue

import (
	"container/heap"
	"time"
)

// AddAfter adds key once delay has passed; at once if delay is not positive.
// A key that is delayed twice is added once, at the earlier time. A shutdown
// drops delayed keys.
func (q *Queue[K]) AddAfter(key K, delay time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closing {
		q.counts.Rejected++
		return
	}
	now := time.Now()
	if delay <= 0 {
		q.add(key, now)
		return
	}
	q.counts.Retries++
	if q.delayed.set(key, now.Add(delay)) {
		q.armTimer(now)
	}
}

// release moves the keys that are due into the queue. It runs on the timer's
// own goroutine, which lives only for this call.
func (q *Queue[K]) release() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closing {
		return
	}
	now := time.Now()
	for q.delayed.Len() > 0 && !q.delayed.items[0].due.After(now) {
		q.add(heap.Pop(&q.delayed).(delayed[K]).key, now)
	}
	q.armTimer(now)
}

// armTimer sets the one timer to the first due key. It needs q.mu.
func (q *Queue[K]) armTimer(now time.Time) {
	if q.delayed.Len() == 0 {
		return
	}
	wait := q.delayed.items[0].due.Sub(now)
	if q.timer == nil {
		q.timer = time.AfterFunc(wait, q.release)
		return
	}
	q.timer.Reset(wait)
}

type delayed[K comparable] struct {
	key K
	due time.Time
}

// delayHeap is a heap of keys by due time; index finds a key's place in it.
type delayHeap[K comparable] struct {
	items []delayed[K]
	index map[K]int
}

// set delays key until due unless it is due earlier already, and returns
// whether the head of the heap has changed.
func (h *delayHeap[K]) set(key K, due time.Time) bool {
	i, ok := h.index[key]
	switch {
	case !ok:
		heap.Push(h, delayed[K]{key, due})
	case due.Before(h.items[i].due):
		h.items[i].due = due
		heap.Fix(h, i)
	default:
		return false
	}
	return h.items[0].key == key
}

func (h *delayHeap[K]) Len() int           { return len(h.items) }
func (h *delayHeap[K]) Less(i, j int) bool { return h.items[i].due.Before(h.items[j].due) }

func (h *delayHeap[K]) Swap(i, j int) {
	h.items[i], h.items[j] = h.items[j], h.items[i]
	h.index[h.items[i].key] = i
	h.index[h.items[j].key] = j
}

// Push is for container/heap.
func (h *delayHeap[K]) Push(x any) {
	d := x.(delayed[K])
	h.index[d.key] = len(h.items)
	h.items = append(h.items, d)
}

// Pop is for container/heap.
func (h *delayHeap[K]) Pop() any {
	last := len(h.items) - 1
	d := h.items[last]
	h.items[last] = delayed[K]{}
	h.items = h.items[:last]
	delete(h.index, d.key)
	return d
}
