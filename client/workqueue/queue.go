package workqueue

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Options configure a [Queue]. The zero value is ready to use.
type Options[K comparable] struct {
	// RateLimiter decides the delay of AddRateLimited. If it panics, the key waits
	// DefaultBaseDelay, and twice as long each further time, up to 30 s. Default:
	// DefaultRateLimiter.
	RateLimiter RateLimiter[K]
	// FairShare keeps low priorities from starving: of every FairShare keys
	// that are handed out while several priorities wait, one is of the priority
	// whose first key has waited longest. Default: DefaultFairShare; negative: a
	// lower priority waits for as long as a higher one does.
	FairShare int
	// Logger receives the panics of RateLimiter. Default: slog.Default().
	Logger *slog.Logger
}

// DefaultFairShare is Options.FairShare if that is 0.
const DefaultFairShare = 16

// AddOptions say how a key is added. The zero value is what Add does.
type AddOptions struct {
	// Priority orders keys: higher before lower, and within one priority the key
	// that has had it for longest. The cost of Add and Get grows with the number
	// of different priorities that wait, not with the number of keys.
	Priority int
	// After is how long the key is delayed first; not at all if not positive.
	After time.Duration
}

// Queue hands out keys by priority, and within one in the order in which they
// were added. All methods may be called concurrently. It starts no goroutine; a
// timer runs only while delayed keys wait. Time is the monotonic clock's:
// setting the wall clock back delays no key.
type Queue[K comparable] struct {
	limiter *containedLimiter[K]
	share   int

	mu      sync.Mutex
	items   map[K]*item[K] // every key that waits, is delayed or is worked on
	peak    int            // the most items since the map was made
	free    spares[K]
	ready   levels[K]
	turn    int     // keys handed out while several priorities waited
	working list[K] // the key worked on for longest is the first
	busy    int     // the length of working
	delayed delayHeap[K]
	timer   *time.Timer
	counts  Stats
	closing bool // no more keys are taken

	// wake holds a token while ready keys may have no worker on the way. One
	// token is enough: a worker that takes a key passes it on while keys remain.
	wake chan struct{}
	// closed is closed by the first shutdown, halted by the first that does
	// not drain, drained when closing and nothing waits or is worked on.
	closed, halted, drained chan struct{}
}

// New returns an empty queue. A queue that is dropped without a shutdown leaks
// nothing once its delayed keys are due.
func New[K comparable](opts Options[K]) *Queue[K] {
	if opts.RateLimiter == nil {
		opts.RateLimiter = DefaultRateLimiter[K]()
	}
	if opts.FairShare == 0 {
		opts.FairShare = DefaultFairShare
	}
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	return &Queue[K]{
		limiter: containLimiter(opts.RateLimiter, opts.Logger),
		share:   opts.FairShare,
		items:   make(map[K]*item[K]),
		wake:    make(chan struct{}, 1),
		closed:  make(chan struct{}),
		halted:  make(chan struct{}),
		drained: make(chan struct{}),
	}
}

// Add puts key in the queue, with priority 0, unless it already waits. If a
// worker has it, it is queued when that worker calls Done. After a shutdown
// Add does nothing.
func (q *Queue[K]) Add(key K) { q.AddWith(key, AddOptions{}) }

// AddWith is Add with a priority or a delay. A key that waits already goes to
// the end of the higher of both priorities; its priority never falls while it
// waits. A key that is delayed twice is added once, at the earlier time and
// with the higher priority. That a key is delayed does not keep it from being
// added meanwhile, and it is added again when it is due.
func (q *Queue[K]) AddWith(key K, opts AddOptions) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.enter(key, opts)
}

// enter needs q.mu.
func (q *Queue[K]) enter(key K, opts AddOptions) {
	if q.closing {
		q.counts.Rejected++
		return
	}
	now := time.Now()
	if opts.After > 0 {
		q.delay(key, opts, now)
		return
	}
	q.add(q.item(key), opts.Priority, now)
}

// add needs q.mu, and that the queue is not closing.
func (q *Queue[K]) add(i *item[K], priority int, now time.Time) {
	switch {
	case i.waiting && i.working:
		i.nextPriority = max(i.nextPriority, priority)
		return
	case i.waiting:
		if priority > i.priority {
			q.ready.remove(i)
			i.priority = priority
			q.ready.push(i)
		}
		return
	}
	q.counts.Adds++
	i.waiting = true
	if i.working {
		i.again, i.nextPriority = now, priority
		return
	}
	i.since, i.priority = now, priority
	q.ready.push(i)
	q.signal()
}

// AddRateLimited adds key after the delay its rate limiter asks for. If a
// worker has the key, it keeps the priority that it was taken with: a key that
// fails again and again stays as important as it was.
func (q *Queue[K]) AddRateLimited(key K) {
	q.AddAfter(key, q.limiter.When(key))
}

// Forget ends the key's history in the rate limiter, so its next failure starts
// at the shortest back-off. It does not take the key out of the queue, and does
// not replace Done.
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
	if q.ready.n == 0 {
		return key, false, q.closing || ctx.Err() != nil
	}
	if ctx.Err() != nil {
		q.signal() // this caller may have swallowed the token
		return key, false, true
	}
	i := q.pick()
	q.ready.remove(i)
	if q.ready.n > 0 {
		q.signal()
	}
	now := time.Now()
	waited := now.Sub(i.since)
	q.counts.Taken++
	q.counts.Waited += waited
	q.counts.WaitedWithin[bucketOf(waited)]++
	i.waiting, i.working, i.since = false, true, now
	q.working.push(i)
	q.busy++
	return i.key, true, false
}

// pick returns the next key. At least one must be ready.
func (q *Queue[K]) pick() *item[K] {
	if q.share > 0 && len(q.ready.all) > 1 {
		if q.turn++; q.turn >= q.share {
			q.turn = 0
			return q.ready.oldest()
		}
	}
	return q.ready.all[0].first
}

// Done says that the caller of Get has finished with key. A key that was added
// meanwhile is queued again. Done for a key that no worker has does nothing.
func (q *Queue[K]) Done(key K) {
	q.mu.Lock()
	defer q.mu.Unlock()
	i, ok := q.items[key]
	if !ok || !i.working {
		return
	}
	worked := time.Since(i.since)
	q.counts.Done++
	q.counts.Worked += worked
	q.counts.WorkedWithin[bucketOf(worked)]++
	q.working.remove(i)
	q.busy--
	i.working = false
	if i.waiting {
		i.since, i.priority = i.again, i.nextPriority
		q.ready.push(i)
		q.signal()
		return
	}
	q.release(i)
	q.checkDrained()
}

// Len returns how many keys wait for a worker; delayed keys and keys being
// worked on are not counted.
func (q *Queue[K]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.ready.n
}

// signal needs q.mu, or that keys cannot vanish.
func (q *Queue[K]) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}
