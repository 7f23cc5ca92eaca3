package reconcile

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client/informer"
)

// Source is an informer's registration, as far as waiting for it goes.
type Source interface {
	// Synced is closed when the handler has been told of everything that the
	// informer's first list held.
	Synced() <-chan struct{}
}

// RunAfter runs the loop once every source is synced: a controller that acts
// on half a picture creates what is there already. It blocks until ctx ends.
func (l *Loop) RunAfter(ctx context.Context, sources ...Source) error {
	if WaitFor(ctx, sources...) {
		l.Run(ctx)
	}
	return nil
}

// WaitFor waits until every source is synced; false means that ctx ended
// first.
func WaitFor(ctx context.Context, sources ...Source) bool {
	for _, source := range sources {
		select {
		case <-source.Synced():
		case <-ctx.Done():
			return false
		}
	}
	return ctx.Err() == nil
}

// Each makes a handler that calls fn with every object that is added, changed
// or deleted. An object that took the name of another is reported after it.
func Each[T metav1.Object](fn func(obj T)) informer.HandlerFuncs[T] {
	return informer.HandlerFuncs[T]{
		Add: func(obj T, _ bool) { fn(obj) },
		Update: func(old, obj T) {
			if old.GetUID() != obj.GetUID() {
				fn(old)
			}
			fn(obj)
		},
		Delete: func(obj T, _ bool) { fn(obj) },
	}
}

// Sooner returns the earlier of two times to come back, where 0 is never.
func Sooner(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}
