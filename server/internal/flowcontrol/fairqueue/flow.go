package fairqueue

import (
	"container/list"
	"context"
	"errors"
	"time"
)

// Why a request gets no seat. The texts are the reasons in Kubernetes' metrics.
var (
	ErrQueueFull        = errors.New("queue-full")
	ErrConcurrencyLimit = errors.New("concurrency-limit")
	ErrTimeout          = errors.New("time-out")
)

// Flow is what one request takes its seats for: requests of the same schema and key
// share what a flow may have.
type Flow struct {
	Level  *Level
	Schema *Schema
	Key    string
	Seats  int // at least 1; more than the level gives one request are reduced to that
}

// flowKey identifies a flow in its level.
type flowKey struct {
	schema *Schema
	key    string
}

// flow is what the requests of one flow hold.
type flow struct {
	flowKey
	held    int64
	waiters list.List     // of *waiter, in the order in which they came
	queued  int           // those of waiters that count for the limit of the queue
	turn    *list.Element // in Level.queue; nil while none of its requests waits
}

// first returns the request that has waited longest; nil if none waits.
func (f *flow) first() *waiter {
	if e := f.waiters.Front(); e != nil {
		return e.Value.(*waiter)
	}
	return nil
}

// waiter is one request that waits.
type waiter struct {
	n       int64
	begun   bool          // its answer has begun: the limits of the queues do not apply to it
	place   *list.Element // in flow.waiters
	since   time.Time
	granted chan struct{}
}

// Hold is what a request holds. Release must be called once.
type Hold struct {
	level *Level
	flow  *flow
	n     int64
}

// Acquire takes the seats of a request. If they are not free, it waits for them: until
// ctx ends, which is its error then, or the time for that is over. It returns ErrQueueFull
// if too many wait already, or ErrConcurrencyLimit if none may.
func (f Flow) Acquire(ctx context.Context) (Hold, error) { return f.acquire(ctx, false) }

// Wait is Acquire that waits until ctx ends, however many wait already. It is for requests
// whose answers have begun, which cannot be refused anymore; their number is bounded
// elsewhere, and they take no room in the queues from requests that Acquire seats.
func (f Flow) Wait(ctx context.Context) (Hold, error) { return f.acquire(ctx, true) }

func (f Flow) acquire(ctx context.Context, begun bool) (Hold, error) {
	l := f.Level
	s := l.seats
	s.mu.Lock()
	n := min(max(int64(f.Seats), 1), l.widest())
	of := l.flowOf(flowKey{f.Schema, f.Key})
	hold := Hold{l, of, n}
	if of.waiters.Len() == 0 && !l.blocked && l.admits(of, n) {
		l.take(of, n)
		f.Schema.dispatched(0)
		s.mu.Unlock()
		return hold, nil
	}
	if err := l.refuses(of, begun); err != nil {
		f.Schema.rejected(err)
		l.forgetIdle(of)
		s.mu.Unlock()
		return Hold{}, err
	}
	w := l.enqueue(of, n, begun)
	s.mu.Unlock()
	return hold, s.wait(ctx, hold, w, begun)
}

// wait waits until a request has its seats.
func (s *Seats) wait(ctx context.Context, hold Hold, w *waiter, begun bool) error {
	var over <-chan time.Time
	if !begun {
		timer := time.NewTimer(s.queueWait)
		defer timer.Stop()
		over = timer.C
	}
	var err error
	select {
	case <-w.granted:
		return nil
	case <-over:
		err = ErrTimeout
	case <-ctx.Done():
		err = ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-w.granted: // in the meantime
		if errors.Is(err, ErrTimeout) {
			return nil
		}
		hold.release()
		return err
	default:
	}
	hold.level.dequeue(hold.flow, w)
	hold.flow.schema.gaveUp(err, time.Since(w.since))
	hold.level.forgetIdle(hold.flow)
	s.grant() // those behind it may want less
	return err
}

// Release gives the seats back.
func (h Hold) Release() {
	h.level.seats.mu.Lock()
	defer h.level.seats.mu.Unlock()
	h.release()
}

// release is Release. Seats.mu is held, as in all functions below.
func (h Hold) release() {
	l := h.level
	l.use(-h.n)
	h.flow.held -= h.n
	h.flow.schema.executing--
	h.flow.schema.executingSeats -= h.n
	l.forgetIdle(h.flow)
	l.seats.grant()
}

// take gives seats to a request.
func (l *Level) take(f *flow, n int64) {
	l.use(n)
	f.held += n
	f.schema.executing++
	f.schema.executingSeats += n
}

// refuses returns why a request may not wait, or nil. Requests whose answers have begun
// are not refused, and do not count: the many watches of one user would fill the level's
// queues, and have the requests of all others refused.
func (l *Level) refuses(f *flow, begun bool) error {
	c := l.config
	switch {
	case begun:
		return nil
	case c.QueueLength == 0:
		return ErrConcurrencyLimit
	case l.queued >= c.Queues*c.QueueLength || f.queued >= min(c.HandSize, c.Queues)*c.QueueLength:
		return ErrQueueFull
	}
	return nil
}

func (l *Level) flowOf(key flowKey) *flow {
	f := l.flows[key]
	if f == nil {
		f = &flow{flowKey: key}
		l.flows[key] = f
	}
	return f
}

// maxIdle is how many flows of a level are remembered although they may hold nothing:
// forgetting one costs more than most of its requests need of this package.
const maxIdle = 1024

func (l *Level) forgetIdle(f *flow) {
	if f.held == 0 && f.waiters.Len() == 0 && len(l.flows) > maxIdle {
		delete(l.flows, f.flowKey)
	}
}
