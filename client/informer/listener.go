package informer

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/levelwire/levelwire/internal/ring"
)

// listener stands between the informer's loop and one handler. The loop pushes
// and never waits; a goroutine that runs while notifications wait calls the
// handler, so an idle handler costs no goroutine.
type listener[T any] struct {
	handler Handler[T]
	opts    HandlerOptions
	log     *slog.Logger
	// spawn runs a function in a goroutine that the informer waits for.
	spawn func(func())
	timer *time.Timer // of resyncs; guarded by the informer's lock

	// calling is called before each call, and called after each one that returned; nil:
	// nothing is.
	calling, called func(notification[T])

	synced chan struct{} // closed by the goroutine, at the mark
	ended  chan struct{} // closed when no call runs and none will

	mu      sync.Mutex
	initial []T // the cache's objects when the handler was added; delivered before the queue
	queue   handlerQueue[T]
	// marks are those of the calls of flush, as they are in the queue; lastMark is the last
	// of them, if nothing is behind it in the queue.
	marks    ring.Ring[chan struct{}]
	lastMark chan struct{}
	active   bool // the goroutine runs, or is about to
	stopped  bool
	err      error
	since    time.Time // when active became true
	counts   HandlerStats
}

func newListener[T any](handler Handler[T], opts HandlerOptions, log *slog.Logger, spawn func(func())) *listener[T] {
	if opts.Name != "" {
		log = log.With("handler", opts.Name)
	}
	l := &listener[T]{
		handler: handler, opts: opts, log: log, spawn: spawn,
		queue:  newCoalescing[T](),
		synced: make(chan struct{}), ended: make(chan struct{}),
	}
	if opts.MaxUnmergedEvents > 0 {
		l.queue = &complete[T]{limit: opts.MaxUnmergedEvents}
	}
	return l
}

// begin passes the objects of the cache when the handler is added: one slice,
// delivered object by object. mark says that the first list is complete with
// them.
func (l *listener[T]) begin(objs []T, mark bool) {
	l.mu.Lock()
	l.initial = objs
	start := len(objs) > 0 && l.activate()
	l.mu.Unlock()
	if start {
		l.spawn(l.run)
	}
	if mark {
		l.push("", notification[T]{kind: marker})
	}
}

// push queues a notification and never blocks. It returns false when the
// listener wants no more.
func (l *listener[T]) push(key string, n notification[T]) bool {
	l.mu.Lock()
	if l.stopped {
		l.mu.Unlock()
		return false
	}
	merged, err := l.queue.push(key, n)
	if err != nil {
		l.mu.Unlock()
		l.fail(err)
		return false
	}
	l.counts.Coalesced += int64(merged)
	if l.lastMark != nil { // rarely: to write a pointer for each event costs more than to compare
		l.lastMark = nil
	}
	start := l.activate()
	l.mu.Unlock()
	if start {
		l.spawn(l.run)
	}
	return true
}

// flush queues a mark, and returns what is closed when its turn comes. Calls share a mark
// while nothing is queued behind it, so that there are never more than other notifications.
func (l *listener[T]) flush() <-chan struct{} {
	l.mu.Lock()
	if l.stopped || l.lastMark != nil {
		defer l.mu.Unlock()
		return l.lastMark
	}
	mark := make(chan struct{})
	_, _ = l.queue.push("", notification[T]{kind: flushed}) // there is always room for a mark
	l.marks.Push(mark)
	l.lastMark = mark
	start := l.activate()
	l.mu.Unlock()
	if start {
		l.spawn(l.run)
	}
	return mark
}

// activate reports whether the caller has to start the goroutine. It needs
// l.mu.
func (l *listener[T]) activate() bool {
	if l.active || l.stopped {
		return false
	}
	l.active, l.since = true, time.Now()
	return true
}

// run calls the handler until no notification waits.
func (l *listener[T]) run() {
	finished := false
	defer func() {
		if !finished {
			// The handler ended the goroutine (runtime.Goexit, as FailNow of
			// a test does), which is a panic in other words.
			l.panicked("it called runtime.Goexit", nil)
			l.spawn(l.run)
		}
	}()
	var n notification[T] // one for all calls: to copy it for each costs as much as a quick handler
	for delivered := false; ; {
		if !l.next(&n, delivered) {
			finished = true
			return
		}
		switch n.kind {
		case marker:
			close(l.synced)
			delivered = false
		case flushed:
			l.reachedMark()
			delivered = false
		default:
			delivered = l.call(&n)
		}
	}
}

func (l *listener[T]) reachedMark() {
	l.mu.Lock()
	defer l.mu.Unlock()
	mark := l.marks.Pop()
	if l.lastMark == mark {
		l.lastMark = nil
	}
	close(mark)
}

// next counts the call before, and stores the next notification in n. If it returns
// false the goroutine has to end.
func (l *listener[T]) next(n *notification[T], delivered bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if delivered {
		l.counts.Delivered++
	}
	if l.stopped {
		l.rest()
		close(l.ended)
		return false
	}
	if len(l.initial) > 0 {
		*n = notification[T]{kind: added, obj: l.initial[0], initial: true}
		var none T
		l.initial[0] = none
		l.initial = l.initial[1:]
		return true
	}
	if l.initial != nil {
		l.initial = nil
	}
	if !l.queue.pop(n) {
		l.rest()
		return false
	}
	return true
}

// rest is called when the goroutine ends. It needs l.mu. The clock is read
// here and not for each call, which would cost as much as a quick call does.
func (l *listener[T]) rest() {
	l.active = false
	l.counts.Busy += time.Since(l.since)
}

// call reports whether the handler returned. A panic is contained: other
// handlers and other objects are not affected.
func (l *listener[T]) call(n *notification[T]) (returned bool) {
	defer func() {
		if r := recover(); r != nil {
			l.panicked(r, debug.Stack())
		}
	}()
	if l.calling != nil {
		l.calling(*n)
	}
	switch n.kind {
	case added:
		l.handler.OnAdd(n.obj, n.initial)
	case updated:
		l.handler.OnUpdate(n.old, n.obj)
	case deleted:
		l.handler.OnDelete(n.obj, n.finalStateUnknown)
	}
	if l.called != nil {
		l.called(*n)
	}
	return true
}

func (l *listener[T]) panicked(with any, stack []byte) {
	l.mu.Lock()
	l.counts.Panics++
	l.mu.Unlock()
	l.log.Error("handler panicked", "panic", fmt.Sprint(with), "stack", string(stack))
}

// end stops the calls: none begins afterwards. It does not wait for the one
// that is perhaps running; ended is closed when that has returned.
func (l *listener[T]) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.stopped {
		l.endLocked()
	}
}

// fail ends the calls because of err.
func (l *listener[T]) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped {
		return
	}
	l.err = err
	l.endLocked()
	l.log.Error("the handler is not called any more", "error", err, "limit", l.opts.MaxUnmergedEvents)
}

// endLocked needs l.mu, and must be called once.
func (l *listener[T]) endLocked() {
	l.stopped = true
	l.initial, l.queue = nil, &complete[T]{} // let the objects go
	if !l.active {
		close(l.ended)
	}
}

func (l *listener[T]) stats() HandlerStats {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.counts
	s.Name, s.Err = l.opts.Name, l.err
	s.Queued = l.queue.len() + len(l.initial)
	if l.active {
		s.Lag = time.Since(l.since)
		s.Busy += s.Lag
	}
	return s
}

func (l *listener[T]) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}
