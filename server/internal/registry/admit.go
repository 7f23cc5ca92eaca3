package registry

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/status"
)

// Admission is a hook that every write passes. A mutating hook (Config.Admission) may
// change the object, claim what the object needs, or refuse the write with a
// *apierrors.StatusError. A validating hook (Config.Validation) sees the object as it
// will be written, and must not change it. A write that is decided again is admitted
// again. Hooks are called concurrently. The Request belongs to the write, and must not
// be kept beyond its outcome.
type Admission func(ctx context.Context, q *Request) error

// Check is a part of validation that needs more than the object, such as the user's rights: what it complains about
// stands in the same 422 as what the kind's strategy does. It must not change the object, and is called concurrently.
type Check func(ctx context.Context, q *Request) field.ErrorList

// admit asks the mutating hooks, validates what they have left of the object, and asks
// the validating hooks. An update that leaves a deleted object without a reason to stay
// becomes its removal; an apply that changes nothing becomes keep.
func (w *pendingWrite) admit(ctx context.Context) error {
	if w.action == keep {
		return nil
	}
	if w.action == create && !canBeKey(w.object.GetName()) {
		// The hooks use names in the keys of what they claim.
		call(w.registry.res.Strategy.CompleteNew, w.object)
		if err := w.validate(ctx); err != nil {
			return err
		}
	}
	if err := w.askHooks(ctx); err != nil {
		w.request.finish(ctx, Refused)
		return err
	}
	switch {
	case w.action != replace:
	case finished(w.object, w.current.object):
		w.sentWarnings, w.action = w.warnings(), remove
	case w.endpoint.Ownership == OwnershipStated && equalIgnoringTimestamps(w.object, w.current.object):
		w.request.finish(ctx, Refused)
		w.sentWarnings, w.action, w.object = w.warnings(), keep, nil
	}
	if w.action == remove && w.operation != Remove {
		w.request.finish(ctx, Refused)
		w.operation = Remove
		if err := w.askHooks(ctx); err != nil {
			w.request.finish(ctx, Refused)
			return err
		}
	}
	return nil
}

// askHooks takes the write through the phases of admission: the mutating hooks in their
// order, validation of the object, the right to create one by an update, the validating hooks
// in their order, up to the first that refuses.
func (w *pendingWrite) askHooks(ctx context.Context) error {
	w.request = Request{
		Operation: w.operation, Resource: w.registry.res, Namespace: w.namespace, Name: w.name,
		Old: w.current.object, DryRun: w.dryRun, Admitted: w.admitted,
		stated: w.stated, deletion: w.deleteOptions, write: w,
	}
	switch w.operation {
	case Create:
		w.request.Object = w.object
	case Update:
		w.request.Object, w.request.Subresource, w.request.view = w.object, w.endpoint.Subresource, w.endpoint.View
	case Delete, Remove: // the hooks see what goes
	}
	for _, hook := range w.registry.set.config.Admission {
		if err := hook(ctx, &w.request); err != nil {
			return err
		}
	}
	w.mergeOwners(true)
	if w.action == replace {
		w.countGeneration()
	}
	if w.operation == Create {
		call(w.registry.res.Strategy.CompleteNew, w.object)
	}
	if f := w.registry.res.Strategy.CompleteSubresource; f != nil && w.endpoint.Scope == ScopeSubresource {
		f(w.endpoint.Subresource, w.object)
	}
	if err := w.validate(ctx); err != nil {
		return err
	}
	w.valid = true
	if w.operation == Create && w.authorizeCreate != nil {
		if err := w.authorizeCreate(ctx); err != nil {
			return err
		}
	}
	for _, hook := range w.registry.set.config.Validation {
		if err := hook(ctx, &w.request); err != nil {
			return err
		}
	}
	return nil
}

// replaceObject is Request.Replace. The name of an object that is being created may
// change; what else identifies it may not.
func (w *pendingWrite) replaceObject(ctx context.Context, obj resource.Object) error {
	if view := w.endpoint.View; view != nil {
		whole := w.object.DeepCopyObject().(resource.Object)
		if err := view.Apply(w.registry, whole, obj); err != nil {
			return err
		}
		obj = whole
	}
	name := obj.GetName()
	switch {
	case name == w.name:
	case !w.mustNotExist || !canBeKey(name):
		return status.BadRequest("admission may not change the name of the object from %q to %q", w.name, name)
	}
	if ns := obj.GetNamespace(); ns != w.object.GetNamespace() {
		return status.BadRequest("admission may not change the namespace of the object from %q to %q", w.object.GetNamespace(), ns)
	}
	obj.SetResourceVersion(w.object.GetResourceVersion())
	if w.action == replace && w.endpoint.Scope == ScopeSubresource { // the rest falls away, as of what a client sends
		merged, err := w.mergeSubresource(obj)
		if err != nil {
			return err
		}
		obj = merged
	}
	before := w.object
	w.object = obj
	w.name, w.request.Name, w.request.Object = name, name, obj
	w.prepareAgain(ctx, before)
	return nil
}

// Unstored is the creation of an object that is not stored under its own name: of a
// subresource such as a token or an eviction, or of a review.
type Unstored struct {
	Subresource     string // "" if the registry's resource itself is not stored
	Kind            schema.GroupVersionKind
	Namespace, Name string
	Object          resource.Object
	Options         WriteOptions
}

// AdmitUnstored asks the hooks about a request whose object is not stored, and returns
// the object as they have left it. The hooks must not claim anything for it. They see the
// namespace of the request in the object, also if the client has left it out.
func (r Registry) AdmitUnstored(ctx context.Context, u Unstored) (resource.Object, error) {
	if u.Object.GetNamespace() == "" {
		u.Object.SetNamespace(u.Namespace)
	}
	q := Request{
		Operation: Create, Resource: r.res, Subresource: u.Subresource, Namespace: u.Namespace, Name: u.Name,
		Object: u.Object, DryRun: u.Options.DryRun, Admitted: u.Options.Admitted, kind: u.Kind, stated: u.Options.Stated,
	}
	for _, phase := range [][]Admission{r.set.config.Admission, r.set.config.Validation} {
		for _, hook := range phase {
			if err := hook(ctx, &q); err != nil {
				return nil, err
			}
		}
	}
	return q.Object, nil
}
