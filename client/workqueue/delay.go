package workqueue

import (
	"container/heap"
	"time"
)

// AddAfter adds key once delay has passed; at once if delay is not positive.
// If a worker has the key, it keeps the priority that it was taken with, and
// else has priority 0. AddWith says what delaying twice means. A shutdown
// drops delayed keys.
func (q *Queue[K]) AddAfter(key K, delay time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	opts := AddOptions{After: delay}
	if i, ok := q.items[key]; ok && i.working {
		opts.Priority = i.priority
	}
	q.enter(key, opts)
}

// delay needs q.mu, and that the queue is not closing.
func (q *Queue[K]) delay(key K, opts AddOptions, now time.Time) {
	q.counts.Retries++
	i, due := q.item(key), now.Add(opts.After)
	switch {
	case i.place == 0:
		i.due, i.duePriority = due, opts.Priority
		heap.Push(&q.delayed, i)
	case due.Before(i.due):
		i.due, i.duePriority = due, max(i.duePriority, opts.Priority)
		heap.Fix(&q.delayed, i.place-1)
	default:
		i.duePriority = max(i.duePriority, opts.Priority)
		return
	}
	if q.delayed[0] == i {
		q.armTimer(now)
	}
}

// expire moves the keys that are due into the queue. It runs on the timer's own
// goroutine, which runs only for this call.
func (q *Queue[K]) expire() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closing {
		return
	}
	now := time.Now()
	for len(q.delayed) > 0 && !q.delayed[0].due.After(now) {
		i := heap.Pop(&q.delayed).(*item[K])
		q.add(i, i.duePriority, now)
	}
	q.armTimer(now)
}

// armTimer sets the one timer to the first due key. It needs q.mu.
func (q *Queue[K]) armTimer(now time.Time) {
	if len(q.delayed) == 0 {
		return
	}
	wait := q.delayed[0].due.Sub(now)
	if q.timer == nil {
		q.timer = time.AfterFunc(wait, q.expire)
		return
	}
	q.timer.Reset(wait)
}

// dropDelayed drops all delayed keys and stops the timer. It needs q.mu.
func (q *Queue[K]) dropDelayed() {
	for _, i := range q.delayed {
		i.place = 0
		q.release(i)
	}
	q.delayed = nil
	if q.timer != nil {
		q.timer.Stop()
	}
}

// delayHeap is a heap of keys by due time; an item's place says where it is.
type delayHeap[K comparable] []*item[K]

// Len is for container/heap.
func (h delayHeap[K]) Len() int { return len(h) }

// Less is for container/heap.
func (h delayHeap[K]) Less(i, j int) bool { return h[i].due.Before(h[j].due) }

// Swap is for container/heap.
func (h delayHeap[K]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i+1, j+1
}

// Push is for container/heap.
func (h *delayHeap[K]) Push(x any) {
	i := x.(*item[K])
	*h = append(*h, i)
	i.place = len(*h)
}

// Pop is for container/heap.
func (h *delayHeap[K]) Pop() any {
	last := len(*h) - 1
	i := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	i.place = 0
	return i
}
