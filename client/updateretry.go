package client

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client/internal/deepcopy"
	"github.com/levelwire/levelwire/client/internal/deepequal"
)

// The bounds of the calls that read, change and write again after a conflict.
const (
	maxConflictAttempts = 10
	firstConflictDelay  = 10 * time.Millisecond
	maxConflictDelay    = time.Second
)

// UpdateWithRetry reads an object, has change change it, and writes it. If
// another write comes between, it reads and changes again after a jittered delay
// that grows from 10 ms to 1 s, at most ten times in all; then the error is the
// last conflict. If change changes nothing, nothing is written.
//
// change is called with an object of its own each time and must decide by that
// alone. Its error ends the call and is returned. Other errors than conflicts end
// the call, too.
func (r Resource[T]) UpdateWithRetry(ctx context.Context, name string, change func(obj T) error) (T, error) {
	return r.changeWithRetry(ctx, name, change, r.Update)
}

// UpdateStatusWithRetry is [Resource.UpdateWithRetry] for the status: the server
// ignores what change changes beside it.
func (r Resource[T]) UpdateStatusWithRetry(ctx context.Context, name string, change func(obj T) error) (T, error) {
	return r.changeWithRetry(ctx, name, change, r.UpdateStatus)
}

func (r Resource[T]) changeWithRetry(ctx context.Context, name string, change func(T) error,
	write func(context.Context, T, metav1.UpdateOptions) (T, error)) (T, error) {
	var none T
	for attempt := 1; ; attempt++ {
		obj, err := r.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return none, err
		}
		changed, err := changedCopy(obj, change)
		if err != nil {
			return none, err
		}
		if deepequal.Semantic(obj, changed) {
			return obj, nil
		}
		written, err := write(ctx, changed, metav1.UpdateOptions{})
		if err == nil || !apierrors.IsConflict(err) {
			return written, err
		}
		if err := r.awaitConflictRetry(ctx, attempt, err); err != nil {
			return none, err
		}
	}
}

// changedCopy calls change with a copy of obj. The copy must still be obj.
func changedCopy[T Object](obj T, change func(T) error) (T, error) {
	changed := deepcopy.Of(obj)
	if err := change(changed); err != nil {
		return changed, err
	}
	if changed.GetName() != obj.GetName() || changed.GetNamespace() != obj.GetNamespace() {
		return changed, fmt.Errorf("the object %s/%s was renamed to %s/%s by the function that should change it: create another object instead",
			obj.GetNamespace(), obj.GetName(), changed.GetNamespace(), changed.GetName())
	}
	return changed, nil
}

// awaitConflictRetry waits after a conflict; err is what the server answered. It
// returns an error if there is to be no other attempt.
func (r Resource[T]) awaitConflictRetry(ctx context.Context, attempt int, err error) error {
	if attempt >= maxConflictAttempts {
		return fmt.Errorf("gave up after %d attempts: %w", attempt, err)
	}
	if !pause(ctx, conflictDelay(attempt)) {
		return contextError(ctx, err)
	}
	return nil
}

// conflictDelay doubles with each attempt. The jitter, half of it, keeps clients
// apart that met in the same conflict.
func conflictDelay(attempt int) time.Duration {
	d := min(firstConflictDelay<<(attempt-1), maxConflictDelay)
	return d/2 + rand.N(d/2+1)
}
