package registry

import (
	"context"
	"errors"
	"time"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/storage"
)

// Operation is what a Request is about to do.
type Operation uint8

// The operations.
const (
	Create Operation = iota + 1
	Update
	// Delete is a request to delete, whether the object goes at once or only
	// when its finalizers and its grace period are over.
	Delete
	// Remove takes the object out of the store. It is not to be refused.
	Remove
)

// Outcome is how a write that was admitted ended.
type Outcome uint8

// The outcomes.
const (
	// Refused: nothing was written.
	Refused Outcome = iota
	// Committed: the write was acknowledged.
	Committed
	// Unknown: the store did not say. What was claimed must be kept.
	Unknown
)

// Request is one write that is about to happen, as admission sees it.
type Request struct {
	Operation   Operation
	Resource    *resource.Resource
	Subresource string
	Namespace   string
	Name        string
	// Object is the new state, which a hook may change; nil for Delete and
	// Remove.
	Object resource.Object
	// Old is the state that is replaced or removed, not to be changed; nil
	// for Create.
	Old    resource.Object
	DryRun bool

	finally []func(context.Context, Outcome)
}

// Finally has fn called once it is known how the write ended, in the opposite
// order of the calls to Finally. The context outlives the request.
func (q *Request) Finally(fn func(ctx context.Context, outcome Outcome)) {
	q.finally = append(q.finally, fn)
}

// Admission has a say in a write: it may change the object, claim what the
// object needs, or refuse with a *apierrors.StatusError. A write that is
// retried is admitted anew each time. It is called concurrently.
type Admission func(ctx context.Context, q *Request) error

func (s *Set) admit(ctx context.Context, q *Request) error {
	for _, hook := range s.config.Admission {
		if err := hook(ctx, q); err != nil {
			q.finish(ctx, Refused)
			return err
		}
	}
	return nil
}

// finishTimeout bounds what hooks do after the write.
const finishTimeout = 10 * time.Second

func (q *Request) finish(ctx context.Context, outcome Outcome) {
	if q == nil || len(q.finally) == 0 {
		return
	}
	// A client that went away must not keep claims from being given back.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTimeout)
	defer cancel()
	for i := len(q.finally) - 1; i >= 0; i-- {
		q.finally[i](ctx, outcome)
	}
	q.finally = nil
}

// outcomeOf says what an error of the store means for the write.
func outcomeOf(err error) Outcome {
	switch {
	case err == nil:
		return Committed
	case errors.Is(err, storage.ErrConflict), errors.Is(err, storage.ErrTooLarge):
		return Refused
	}
	return Unknown
}
