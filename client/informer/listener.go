package informer

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// listener stands between the informer's loop and one handler. The loop
// pushes and never waits; run calls the handler.
type listener[T any] struct {
	handler Handler[T]
	opts    HandlerOptions
	log     *slog.Logger

	mu    sync.Mutex
	queue handlerQueue[T]
	wake  chan struct{} // holds a token while there may be something to pop
	err   error

	synced  chan struct{}
	removed chan struct{} // closed by stop
	ended   chan struct{} // closed when run has returned
	once    sync.Once
	started atomic.Bool
	timer   *time.Timer // of resyncs; guarded by the informer's lock

	delivered, coalesced, panics atomic.Int64
}

func newListener[T any](handler Handler[T], opts HandlerOptions, log *slog.Logger) *listener[T] {
	if opts.Name != "" {
		log = log.With("handler", opts.Name)
	}
	l := &listener[T]{
		handler: handler, opts: opts, log: log,
		queue:  newCoalescing[T](),
		wake:   make(chan struct{}, 1),
		synced: make(chan struct{}), removed: make(chan struct{}), ended: make(chan struct{}),
	}
	if opts.KeepEvery > 0 {
		l.queue = &complete[T]{limit: opts.KeepEvery}
	}
	return l
}

// push queues a notification. It never blocks.
func (l *listener[T]) push(key string, n notification[T]) {
	if l.stopped() {
		return
	}
	l.mu.Lock()
	merged, err := l.queue.push(key, n)
	if err != nil && l.err == nil {
		l.err = err
	}
	l.mu.Unlock()
	if err != nil {
		l.log.Error("handler removed", "error", err, "limit", l.opts.KeepEvery)
		l.stop()
		return
	}
	l.coalesced.Add(int64(merged))
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// run calls the handler until ctx ends or the listener is stopped.
func (l *listener[T]) run(ctx context.Context) {
	defer close(l.ended)
	for {
		n, ok := l.pop()
		if !ok {
			select {
			case <-l.wake:
				continue
			case <-l.removed:
				return
			case <-ctx.Done():
				return
			}
		}
		if ctx.Err() != nil {
			return
		}
		if n.kind == mark {
			close(l.synced)
			continue
		}
		l.call(n)
	}
}

// pop takes the next notification, unless the listener has been stopped.
func (l *listener[T]) pop() (n notification[T], ok bool) {
	select {
	case <-l.removed:
		return n, false
	default:
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.queue.pop()
}

// call contains a panic: it is this handler's and this object's misfortune,
// nobody else's.
func (l *listener[T]) call(n notification[T]) {
	defer func() {
		if r := recover(); r != nil {
			l.panics.Add(1)
			l.log.Error("handler panicked", "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
		}
	}()
	switch n.kind {
	case added:
		l.handler.OnAdd(n.obj, n.initial)
	case updated:
		l.handler.OnUpdate(n.old, n.obj)
	case deleted:
		l.handler.OnDelete(n.obj, !n.unknown)
	}
	l.delivered.Add(1)
}

// stop ends the calls. It does not wait.
func (l *listener[T]) stop() {
	l.once.Do(func() { close(l.removed) })
}

func (l *listener[T]) stopped() bool {
	select {
	case <-l.removed:
		return true
	default:
		return false
	}
}

func (l *listener[T]) stats() HandlerStats {
	l.mu.Lock()
	queued := l.queue.len()
	l.mu.Unlock()
	return HandlerStats{Queued: queued, Delivered: l.delivered.Load(), Coalesced: l.coalesced.Load(), Panics: l.panics.Load()}
}

func (l *listener[T]) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}
