package memory

import (
	"container/heap"
	"time"

	"github.com/levelwire/levelwire/storage"
)

// expiry deletes keys whose ttl is over. It holds one entry per key with a ttl, and
// one timer for the soonest. Store.mu guards it.
type expiry struct {
	store *Store
	byKey map[string]*deadline
	queue deadlines
	timer *time.Timer
	due   time.Time // when timer fires; zero if it is not set
}

// deadline is when a key is deleted.
type deadline struct {
	key   string
	at    time.Time
	index int // in the queue
}

// set gives key a new ttl from now, or none.
func (x *expiry) set(key string, ttl time.Duration) {
	known := x.byKey[key]
	switch {
	case ttl <= 0 && known == nil:
		return
	case ttl <= 0:
		heap.Remove(&x.queue, known.index)
		delete(x.byKey, key)
	case known == nil:
		if x.byKey == nil {
			x.byKey = map[string]*deadline{}
		}
		d := &deadline{key: key, at: time.Now().Add(ttl)}
		x.byKey[key] = d
		heap.Push(&x.queue, d)
	default:
		known.at = time.Now().Add(ttl)
		heap.Fix(&x.queue, known.index)
	}
	x.schedule()
}

// schedule sets the timer to the soonest deadline. A timer that is due earlier is
// left alone: when it fires it finds nothing to delete, and schedules again.
func (x *expiry) schedule() {
	if len(x.queue) == 0 {
		return
	}
	soonest := x.queue[0].at
	if !x.due.IsZero() && !x.due.After(soonest) {
		return
	}
	x.due = soonest
	if x.timer == nil {
		x.timer = time.AfterFunc(time.Until(soonest), x.fire)
		return
	}
	x.timer.Reset(time.Until(soonest))
}

// fire deletes the keys that are due, each at a revision of its own.
func (x *expiry) fire() {
	s := x.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isOver {
		return
	}
	x.due = time.Time{}
	now := time.Now()
	for len(x.queue) > 0 && !x.queue[0].at.After(now) {
		d := heap.Pop(&x.queue).(*deadline)
		delete(x.byKey, d.key)
		s.commit(s.current.Load(), storage.Event{Key: d.key, Deleted: true})
	}
	x.schedule()
}

func (x *expiry) stop() {
	if x.timer != nil {
		x.timer.Stop()
	}
	x.byKey, x.queue = nil, nil
}

// deadlines is a heap, the soonest first.
type deadlines []*deadline

func (q deadlines) Len() int           { return len(q) }
func (q deadlines) Less(i, j int) bool { return q[i].at.Before(q[j].at) }
func (q deadlines) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

// Push implements heap.Interface.
func (q *deadlines) Push(x any) {
	d := x.(*deadline)
	d.index = len(*q)
	*q = append(*q, d)
}

// Pop implements heap.Interface.
func (q *deadlines) Pop() any {
	old := *q
	d := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	return d
}
