package registry

import (
	"context"
	"time"

	"github.com/levelwire/levelwire/server/internal/resource"
)

// Operation is what a Request is about to do.
type Operation uint8

// The operations.
const (
	Create Operation = iota + 1
	Update
	// Delete is a client's request to delete, whether the object is removed at
	// once or only when its finalizers and its grace period are over.
	Delete
	// Remove takes the object out of the store. It cannot be refused.
	Remove
)

// Outcome is how an admitted write ended.
type Outcome uint8

// The outcomes.
const (
	// Refused: nothing was written.
	Refused Outcome = iota
	// Committed: the store has acknowledged the write.
	Committed
	// Unknown: the store did not say. Claims made for the write must be kept.
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
	// Old is the state that is replaced or removed. It must not be changed; nil
	// for Create.
	Old    resource.Object
	DryRun bool

	finally []func(context.Context, Outcome)
}

// Finally registers fn to be called once it is known how the write ended. The
// functions are called in the opposite order of registration. Their context
// outlives the request.
func (q *Request) Finally(fn func(ctx context.Context, outcome Outcome)) {
	q.finally = append(q.finally, fn)
}

// Admission is a hook that every write passes: it may change the object, claim
// what the object needs, or refuse the write with a *apierrors.StatusError. A
// write that is decided again is admitted again. Hooks are called concurrently.
// The Request belongs to the write, and must not be kept beyond its outcome.
type Admission func(ctx context.Context, q *Request) error

// admit asks the hooks, and validates what they have left of the object. An
// update that leaves a deleted object without a reason to stay becomes its
// removal; an apply that changes nothing becomes keep.
func (w *pendingWrite) admit(ctx context.Context) error {
	if w.action == keep {
		return nil
	}
	if w.action == create && !canBeKey(w.object.GetName()) {
		// The hooks use names in the keys of what they claim.
		if err := w.validate(); err != nil {
			return err
		}
	}
	if err := w.askHooks(ctx); err != nil {
		return err
	}
	if err := w.validate(); err != nil {
		w.request.finish(ctx, Refused)
		return err
	}
	switch {
	case w.action != replace:
	case finished(w.object, w.current.object):
		w.action = remove
	case w.endpoint.Ownership == OwnershipStated && equalIgnoringTimestamps(w.object, w.current.object):
		w.request.finish(ctx, Refused)
		w.action, w.object = keep, nil
	}
	if w.action == remove && w.operation != Remove {
		w.request.finish(ctx, Refused)
		w.operation = Remove
		return w.askHooks(ctx)
	}
	return nil
}

// askHooks calls the hooks in their order, up to the first that refuses.
func (w *pendingWrite) askHooks(ctx context.Context) error {
	w.request = Request{
		Operation: w.operation, Resource: w.registry.res, Namespace: w.namespace, Name: w.name,
		Old: w.current.object, DryRun: w.dryRun,
	}
	switch w.operation {
	case Create:
		w.request.Object = w.object
	case Update:
		w.request.Object, w.request.Subresource = w.object, w.endpoint.Subresource
	case Delete, Remove: // the hooks see what goes
	}
	for _, hook := range w.registry.set.config.Admission {
		if err := hook(ctx, &w.request); err != nil {
			w.request.finish(ctx, Refused)
			return err
		}
	}
	return nil
}

// finishTimeout bounds what the hooks do after a write.
const finishTimeout = 10 * time.Second

// finish calls the functions that the hooks have registered with Finally.
func (q *Request) finish(ctx context.Context, outcome Outcome) {
	if len(q.finally) == 0 {
		return
	}
	// Claims are given back also if the client has gone away.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTimeout)
	defer cancel()
	for i := len(q.finally) - 1; i >= 0; i-- {
		q.finally[i](ctx, outcome)
	}
	q.finally = nil
}
