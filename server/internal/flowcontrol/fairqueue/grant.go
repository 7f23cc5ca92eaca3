package fairqueue

import (
	"slices"
	"time"
)

// enqueue has a request wait for its turn.
func (l *Level) enqueue(f *flow, n int64, begun bool) *waiter {
	w := &waiter{n: n, begun: begun, since: time.Now(), granted: make(chan struct{})}
	w.place = f.waiters.PushBack(w)
	if f.turn == nil {
		f.turn = l.queue.PushBack(f)
	}
	if !begun {
		f.queued++
		l.queued++
	}
	f.schema.queued(1, n)
	if l.waiters++; l.waiters == 1 {
		l.seats.waiting = append(l.seats.waiting, l)
	}
	if l.queue.Front() == f.turn && f.held == 0 {
		l.blocked = true
	}
	return w
}

// dequeue takes a request out of its queue: because its turn has come, or because it does
// not wait any longer. It costs the same however many others wait: thousands of watches
// end at once when a client goes away, and Seats.mu is held.
func (l *Level) dequeue(f *flow, w *waiter) {
	f.waiters.Remove(w.place)
	if f.waiters.Len() == 0 {
		l.queue.Remove(f.turn)
		f.turn = nil
	}
	if !w.begun {
		f.queued--
		l.queued--
	}
	f.schema.queued(-1, -w.n)
	if l.waiters--; l.waiters == 0 {
		l.blocked = false
		l.seats.waiting = slices.DeleteFunc(l.seats.waiting, func(other *Level) bool { return other == l })
	}
}

// grant lets those go on that wait for what is free now: first those of the level that
// uses least of its own seats.
func (s *Seats) grant() {
	for {
		var next *Level
		for _, l := range s.waiting {
			if !l.stuck && l.headroom() > 0 && (next == nil || l.fill() < next.fill()) {
				next = l
			}
		}
		if next == nil {
			break
		}
		next.stuck = !next.grantOne()
	}
	for _, l := range s.waiting {
		l.stuck = false
	}
}

// grantOne lets one request of the level go on, if one may.
func (l *Level) grantOne() bool {
	l.blocked = false
	for range l.queue.Len() {
		f := l.queue.Front().Value.(*flow)
		w := f.first()
		if !l.admits(f, w.n) {
			if f.held == 0 {
				l.blocked = true
				return false
			}
			l.queue.MoveToBack(f.turn) // it has its share
			continue
		}
		l.queue.MoveToBack(f.turn)
		l.dequeue(f, w)
		l.take(f, w.n)
		f.schema.dispatched(time.Since(w.since))
		close(w.granted)
		return true
	}
	return false
}
