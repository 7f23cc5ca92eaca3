package runqueue

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"
)

// slice is for how long a handler computes until Yield lets others run.
const slice = time.Millisecond

type state uint8

const (
	idle    state = iota // not started, or ended
	running              // it computes, and counts
	lapsed               // it has computed for long, or waits for something without Block
	blocked              // between Block and Unblock
	waiting              // for its turn
)

// Task is the handler of one request. The zero value, and nil, are exempt: nothing holds
// them up. Its methods may be called concurrently, by goroutines that work for the request.
type Task struct {
	queue *Queue // nil: exempt

	// When it began to compute, or has let others run; and the last Block: both as by now.
	turned, paused atomic.Int64

	// queue.mu guards all of these.
	state      state
	user       *user
	seen       bool          // by Queue.tick, since it runs
	ended      bool          // by End, although another goroutine waits
	granted    chan struct{} // closed when it has waited
	prev, next *Task         // in Queue.running; next also among the waiters of its user
}

// Start waits until the handler may compute. It does so without regard to the request's
// context: turns come soon, and a thousand requests that a client takes back at once would
// all end before anything else had its turn. A task that has ended, and for which no goroutine
// waits, may start again.
func (t *Task) Start(q *Queue, level Level, userName string) {
	t.queue = q
	t.turned.Store(now())
	q.mu.Lock()
	t.user = q.userOf(level, userName)
	t.user.tasks++
	q.acquire(t)
}

// Block says that the handler begins to wait for something else than a processor.
func (t *Task) Block() {
	if t == nil || t.queue == nil {
		return
	}
	t.paused.Store(now())
	q := t.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	switch t.state {
	case running:
		q.stop(t)
		t.state = blocked
		q.grant()
	case lapsed:
		t.state = blocked
	case idle, blocked, waiting:
	}
}

// Unblock says that what Block announced is over. It waits until the handler may compute.
func (t *Task) Unblock() {
	if t == nil || t.queue == nil {
		return
	}
	if at := now(); at-t.paused.Load() >= int64(slice) { // others have run meanwhile
		t.turned.Store(at)
	}
	q := t.queue
	q.mu.Lock()
	if t.state != blocked || t.ended {
		q.mu.Unlock()
		return
	}
	q.acquire(t)
}

// Yield lets others run if the handler has computed for a millisecond since it last has: Go
// interrupts it only after ten. What may compute for long calls it often, such as for each
// piece of a long answer. A task that has yielded keeps counting; one that counts no more waits
// until it may compute again.
func (t *Task) Yield() {
	if t == nil || t.queue == nil {
		return
	}
	at := now()
	if at-t.turned.Load() < int64(slice) {
		return
	}
	t.turned.Store(at)
	q := t.queue
	q.mu.Lock()
	t.seen = false
	if t.state == lapsed && !t.ended {
		q.acquire(t)
	} else {
		q.mu.Unlock()
	}
	runtime.Gosched()
}

var began = time.Now()

// now is a time in nanoseconds of which only differences mean something.
func now() int64 { return int64(time.Since(began)) }

// End says that the handler does nothing more that takes long. The task is exempt from then
// on.
func (t *Task) End() {
	if t == nil || t.queue == nil {
		return
	}
	q := t.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	switch t.state {
	case idle:
	case waiting: // for another goroutine that works for the request
		t.ended = true
	case running, lapsed, blocked:
		q.end(t)
	}
}

// acquire has a task run, at once or after it has waited. q.mu is held, and released.
func (q *Queue) acquire(t *Task) {
	if t.user.waiters.Len() == 0 && q.admits(t.user) {
		q.run(t)
		q.mu.Unlock()
		return
	}
	granted := q.enqueue(t)
	q.mu.Unlock()
	q.await(t, granted)
}

// await waits until a task has had its turn. When it returns, another goroutine that works for
// the request may wait for the next one.
func (q *Queue) await(t *Task, granted <-chan struct{}) {
	<-granted
	// The goroutine that gave this one its turn has it run next, in the rest of its own
	// time slice. A row of handlers that hand over to each other like that would keep all
	// others from the processor for 10 ms, until Go interrupts it.
	runtime.Gosched()
	q.mu.Lock()
	defer q.mu.Unlock()
	if t.ended && t.state != waiting {
		q.end(t)
	}
}

// end has a task be exempt from now on. q.mu is held.
func (q *Queue) end(t *Task) {
	if t.state == running {
		q.stop(t)
		q.grant()
	}
	t.state, t.ended = idle, false
	t.user.tasks--
	q.forget(t.user)
}

type contextKey struct{}

// Key is the key under which a request's context has its *Task.
var Key any = contextKey{}

// FromContext returns the task of a request; nil, which is exempt, without one.
func FromContext(ctx context.Context) *Task {
	t, _ := ctx.Value(Key).(*Task)
	return t
}
