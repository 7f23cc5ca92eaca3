package workqueue

import (
	"context"
	"sync"
	"time"

	"github.com/levelwire/levelwire/internal/ring"
)

// Options configure a [Queue]. The zero value is ready to use.
type Options[K comparable] struct {
	// RateLimiter decides the delay of AddRateLimited. Default:
	// DefaultRateLimiter.
	RateLimiter RateLimiter[K]
}

// Queue hands out keys in the order in which they were first added. All
// methods may be called concurrently. It starts no goroutine; a timer runs
// only while delayed keys wait.
type Queue[K comparable] struct {
	limiter RateLimiter[K]

	mu      sync.Mutex
	entries map[K]entry  // every key that waits or is being worked on
	ready   ring.Ring[K] // the keys that wait, each once
	working int
	delayed delayHeap[K]
	timer   *time.Timer
	counts  Metrics
	closing bool // no more keys are taken

	// wake holds a token while ready keys may have no worker on the way. One
	// token is enough: whoever takes a key passes it on while keys remain.
	wake chan struct{}
	// closed is closed by the first shutdown, halted by the first that does
	// not drain, drained when closing and nothing waits or is worked on.
	closed, halted, drained chan struct{}
}

type entry struct {
	waiting bool // in ready, or to be put there by Done
	working bool
	since   time.Time // when it began to wait; while working: when work began
	again   time.Time // while working: when it was added again
}

// New returns an empty queue. A queue that is dropped without a shutdown leaks
// nothing once its delayed keys are due.
func New[K comparable](opts Options[K]) *Queue[K] {
	if opts.RateLimiter == nil {
		opts.RateLimiter = DefaultRateLimiter[K]()
	}
	return &Queue[K]{
		limiter: opts.RateLimiter,
		entries: make(map[K]entry),
		delayed: delayHeap[K]{index: make(map[K]int)},
		wake:    make(chan struct{}, 1),
		closed:  make(chan struct{}),
		halted:  make(chan struct{}),
		drained: make(chan struct{}),
	}
}

// Add puts key in the queue unless it already waits. If a worker has it, it is
// queued when that worker calls Done. After a shutdown Add does nothing.
func (q *Queue[K]) Add(key K) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.add(key, time.Now())
}

// add needs q.mu.
func (q *Queue[K]) add(key K, now time.Time) {
	if q.closing {
		q.counts.Rejected++
		return
	}
	e := q.entries[key]
	if e.waiting {
		return
	}
	q.counts.Adds++
	e.waiting = true
	if e.working {
		e.again = now
		q.entries[key] = e
		return
	}
	e.since = now
	q.entries[key] = e
	q.ready.Push(key)
	q.signal()
}

// AddRateLimited adds key after the delay its rate limiter asks for.
func (q *Queue[K]) AddRateLimited(key K) {
	q.AddAfter(key, q.limiter.When(key))
}

// Forget tells the rate limiter that key needs no back-off any more. It does
// not take the key out of the queue, and does not replace Done.
func (q *Queue[K]) Forget(key K) { q.limiter.Forget(key) }

// NumRequeues returns how often key was rate limited since the last Forget.
func (q *Queue[K]) NumRequeues(key K) int { return q.limiter.Requeues(key) }

// Get blocks until a key is ready and hands it to the caller, who must call
// Done for it. It returns false when ctx is done, and when the queue is shut
// down and no key waits; the worker should then return.
func (q *Queue[K]) Get(ctx context.Context) (key K, ok bool) {
	for {
		if key, ok, end := q.take(ctx); ok || end {
			return key, ok
		}
		select {
		case <-ctx.Done():
		case <-q.wake:
		case <-q.closed:
		}
	}
}

// take hands out the first key. end says that none will come any more.
func (q *Queue[K]) take(ctx context.Context) (key K, ok, end bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ready.Len() == 0 {
		return key, false, q.closing || ctx.Err() != nil
	}
	if ctx.Err() != nil {
		q.signal() // this caller may have swallowed the token
		return key, false, true
	}
	key = q.ready.Pop()
	if q.ready.Len() > 0 {
		q.signal()
	}
	now := time.Now()
	q.counts.Waited += now.Sub(q.entries[key].since)
	q.entries[key] = entry{working: true, since: now}
	q.working++
	return key, true, false
}

// Done says that the caller of Get has finished with key. A key that was added
// meanwhile is queued again. Done for a key nobody has does nothing.
func (q *Queue[K]) Done(key K) {
	q.mu.Lock()
	defer q.mu.Unlock()
	e, ok := q.entries[key]
	if !ok || !e.working {
		return
	}
	q.working--
	q.counts.Done++
	q.counts.Worked += time.Since(e.since)
	if e.waiting {
		q.entries[key] = entry{waiting: true, since: e.again}
		q.ready.Push(key)
		q.signal()
		return
	}
	delete(q.entries, key)
	q.checkDrained()
}

// Len returns how many keys wait for a worker; delayed keys and keys being
// worked on are not counted.
func (q *Queue[K]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.ready.Len()
}

// signal needs q.mu, or that keys cannot vanish.
func (q *Queue[K]) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}
