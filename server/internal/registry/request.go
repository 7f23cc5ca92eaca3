package registry

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/status"
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

// Request is one write that is about to happen, as admission sees it. The user is in
// the context (auth.UserFrom); what a hook has to say beside its verdict goes through
// package reporter.
type Request struct {
	Operation Operation
	// Resource is the one that the client named, in its version; Resource.Stored()
	// is the one that is written.
	Resource    *resource.Resource
	Subresource string
	Namespace   string
	Name        string
	// Object is the new state, which a hook may change; nil for Delete and
	// Remove. Of a request that is not stored (see AdmitUnstored) it is what
	// the client sent.
	Object resource.Object
	// Old is the state that is replaced or removed. It must not be changed; nil
	// for Create.
	Old    resource.Object
	DryRun bool
	// Admitted says that the write is the server's own, or follows from a request
	// that was admitted in another form (a Binding, an Eviction): webhooks and
	// policies are not asked.
	Admitted bool
	// Reinvoked says that the mutating hooks see the write for the second time,
	// because one after them has changed the object (AskAgain).
	Reinvoked bool

	view     *View
	kind     schema.GroupVersionKind // if not the Resource's
	stated   StatedOptions
	deletion *metav1.DeleteOptions
	write    *pendingWrite // nil if it is not stored
	askAgain bool
	plugins  map[string]any
	finally  []func(context.Context, Outcome)
	commitBy time.Time // zero: the write has as much time as the request
}

// Kind returns the kind of the object that the client sends to the endpoint: that of
// the Resource but for subresources such as scale and eviction.
func (q *Request) Kind() schema.GroupVersionKind {
	switch {
	case q.view != nil:
		return q.view.Kind
	case !q.kind.Empty():
		return q.kind
	}
	return q.Resource.GroupVersionKind()
}

// Patches reports whether the client has sent a patch, which is an Update or a Create.
func (q *Request) Patches() bool { return q.write != nil && q.write.patches() }

// Shown returns Object and Old as objects of the Kind, nil for those that there are
// none of. They must not be changed: see Replace.
func (q *Request) Shown() (obj, old resource.Object, err error) {
	if q.view == nil {
		return q.Object, q.Old, nil
	}
	if q.Object != nil {
		if obj, err = q.view.Of(q.write.registry, q.Object); err != nil {
			return nil, nil, err
		}
	}
	if q.Old != nil {
		if old, err = q.view.Of(q.write.registry, q.Old); err != nil {
			return nil, nil, err
		}
	}
	return obj, old, nil
}

// Replace puts obj, an object of the Kind that the Request takes over, in the place of
// Object. It is for mutating hooks that make a new object. What clients do not decide
// is set in it as in a client's: defaults, uid, timestamps, generation, the fields that
// the endpoint leaves alone, managedFields.
func (q *Request) Replace(ctx context.Context, obj resource.Object) error {
	switch {
	case q.Object == nil:
		return status.BadRequest("a request without an object cannot be changed")
	case q.write != nil:
		return q.write.replaceObject(ctx, obj)
	}
	q.Object = obj
	return nil
}

// Options returns the options of the operation, as webhooks are sent them: a new
// CreateOptions, UpdateOptions or DeleteOptions, whatever verb the client has used.
func (q *Request) Options() runtime.Object {
	gv := metav1.SchemeGroupVersion.String()
	var dryRun []string
	if q.DryRun {
		dryRun = []string{metav1.DryRunAll}
	}
	switch q.Operation {
	case Create:
		return &metav1.CreateOptions{
			TypeMeta: metav1.TypeMeta{APIVersion: gv, Kind: "CreateOptions"},
			DryRun:   dryRun, FieldManager: q.stated.FieldManager, FieldValidation: q.stated.FieldValidation,
		}
	case Update:
		return &metav1.UpdateOptions{
			TypeMeta: metav1.TypeMeta{APIVersion: gv, Kind: "UpdateOptions"},
			DryRun:   dryRun, FieldManager: q.stated.FieldManager, FieldValidation: q.stated.FieldValidation,
		}
	case Delete, Remove:
	}
	opts := &metav1.DeleteOptions{}
	if q.deletion != nil {
		opts = q.deletion.DeepCopy()
	}
	opts.TypeMeta = metav1.TypeMeta{APIVersion: gv, Kind: "DeleteOptions"}
	return opts
}

// AskAgain makes the mutating plugins see the Request a second time, Reinvoked, when
// they all have seen it: a plugin has changed the object, which others may have to
// complete.
func (q *Request) AskAgain() {
	if !q.Reinvoked {
		q.askAgain = true
	}
}

// TakeAgain reports whether a plugin has called AskAgain. The Request is Reinvoked then.
func (q *Request) TakeAgain() bool {
	if !q.askAgain {
		return false
	}
	q.askAgain, q.Reinvoked = false, true
	return true
}

// Keep keeps a value of a plugin until the Request's end, for Kept.
func (q *Request) Keep(plugin string, value any) {
	if q.plugins == nil {
		q.plugins = map[string]any{}
	}
	q.plugins[plugin] = value
}

// Kept returns the value that the plugin has kept, or nil.
func (q *Request) Kept(plugin string) any { return q.plugins[plugin] }

// Finally registers fn to be called once it is known how the write ended. The
// functions are called in the opposite order of registration. Their context
// outlives the request.
func (q *Request) Finally(fn func(ctx context.Context, outcome Outcome)) {
	q.finally = append(q.finally, fn)
}

// CommitBy ends the write at a time, if the store has not acknowledged it by then: what
// the hook has claimed for the write may be given to others afterwards.
func (q *Request) CommitBy(t time.Time) {
	if q.commitBy.IsZero() || t.Before(q.commitBy) {
		q.commitBy = t
	}
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

// Forbidden returns the refusal of the write by admission: a 403 that names the object, or
// what its name is to be generated from.
func (q *Request) Forbidden(err error) *apierrors.StatusError {
	name := q.Name
	if name == "" && q.Object != nil {
		name = q.Object.GetGenerateName()
	}
	return apierrors.NewForbidden(q.Resource.GroupResource(), name, err)
}
