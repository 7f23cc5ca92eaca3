package reconcile

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/client/workqueue"
)

// Key names the object to reconcile.
type Key = types.NamespacedName

// KeyOf returns the key of an object.
func KeyOf(obj metav1.Object) Key {
	return Key{Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// Func brings one object to its wanted state. A result above zero asks to be
// called again after that time. A key is never reconciled twice at once.
type Func func(ctx context.Context, key Key) (again time.Duration, err error)

// Loop reconciles keys with a number of workers. Create it with NewLoop.
type Loop struct {
	name    string
	workers int
	fn      Func
	log     *slog.Logger
	queue   *workqueue.Queue[Key]
}

// NewLoop returns a loop that is not running yet; keys may be added already.
func NewLoop(name string, workers int, log *slog.Logger, fn Func) *Loop {
	return &Loop{
		name: name, workers: max(workers, 1), fn: fn,
		log: log.With("controller", name),
		queue: workqueue.New(workqueue.Options[Key]{
			RateLimiter: workqueue.Exponential[Key](firstRetry, longestRetry),
		}),
	}
}

// The back-off of a key that fails. The longest is short enough that a server
// that was away for an hour finds its controllers back at once; there is no
// common token bucket because it would make each key wait for all others.
const (
	firstRetry   = 5 * time.Millisecond
	longestRetry = 30 * time.Second
)

// Add asks for a reconciliation soon.
func (l *Loop) Add(key Key) { l.queue.Add(key) }

// AddAfter asks for a reconciliation after some time.
func (l *Loop) AddAfter(key Key, d time.Duration) { l.queue.AddAfter(key, d) }

// Run works until ctx ends. It blocks.
func (l *Loop) Run(ctx context.Context) {
	var group sync.WaitGroup
	for range l.workers {
		group.Go(func() { l.work(ctx) })
	}
	<-ctx.Done()
	l.queue.ShutDown()
	group.Wait()
}

func (l *Loop) work(ctx context.Context) {
	for {
		key, ok := l.queue.Get(ctx)
		if !ok {
			return
		}
		l.reconcile(ctx, key)
		l.queue.Done(key)
	}
}

func (l *Loop) reconcile(ctx context.Context, key Key) {
	again, err := l.contained(ctx, key)
	switch {
	case ctx.Err() != nil:
	case apierrors.IsConflict(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		// Somebody else was faster, and what they wrote is on its way to us; or
		// the whole namespace goes, and the object with it.
		l.queue.AddRateLimited(key)
	case err != nil:
		l.log.Warn("not reconciled, trying again", "key", key, "tries", l.queue.NumRequeues(key), "error", err)
		l.queue.AddRateLimited(key)
	default:
		l.queue.Forget(key)
		if again > 0 {
			l.queue.AddAfter(key, again)
		}
	}
}

// contained turns a panic over one object into an error of that object, so
// that the others go on being taken care of.
func (l *Loop) contained(ctx context.Context, key Key) (again time.Duration, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	return l.fn(ctx, key)
}
