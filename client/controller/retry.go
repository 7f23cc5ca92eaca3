package controller

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/workqueue"
)

const (
	// retryBase and retryMax are how long a change waits whose MapFunc or Predicate has
	// panicked: twice as long each time.
	retryBase = 100 * time.Millisecond
	retryMax  = 5 * time.Minute
	// maxRetries is how many changes of a source wait. Others are looked at when their object
	// changes again.
	maxRetries = 10_000
)

// retries looks again at changes whose MapFunc or Predicate has panicked: without that, their
// keys would wait until the objects change.
type retries[T client.Object] struct {
	log      *slog.Logger
	again    func(Change[T], bool)
	attempts workqueue.RateLimiter[Key] // by the changed object

	mu      sync.Mutex
	stopped bool
	waiting map[*time.Timer]struct{}
	running sync.WaitGroup // added to while mu is held and stopped is not set
}

func newRetries[T client.Object](log *slog.Logger) *retries[T] {
	return &retries[T]{log: log, attempts: workqueue.Exponential[Key](retryBase, retryMax), waiting: map[*time.Timer]struct{}{}}
}

// after has the change looked at again later.
func (r *retries[T]) after(change Change[T], low bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped || len(r.waiting) >= maxRetries {
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(r.attempts.When(KeyOf(change.Object)), func() {
		r.mu.Lock()
		delete(r.waiting, timer)
		if r.stopped {
			r.mu.Unlock()
			return
		}
		r.running.Add(1)
		r.mu.Unlock()
		defer r.running.Done()
		r.try(change, low)
	})
	r.waiting[timer] = struct{}{}
}

// try contains a panic, as the informer does at the first call.
func (r *retries[T]) try(change Change[T], low bool) {
	defer func() {
		if reason := recover(); reason != nil {
			r.log.Error("a MapFunc or Predicate panicked again", "object", KeyOf(change.Object), "panic", fmt.Sprint(reason), "stack", string(debug.Stack()))
		}
	}()
	r.again(change, low)
	r.attempts.Forget(KeyOf(change.Object))
}

// stop returns when no retry runs or follows.
func (r *retries[T]) stop() {
	r.mu.Lock()
	r.stopped = true
	for timer := range r.waiting {
		timer.Stop()
	}
	clear(r.waiting)
	r.mu.Unlock()
	r.running.Wait()
}
