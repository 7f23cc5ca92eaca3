package registry

import (
	"context"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/api/validation/path"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource"
)

var metadataPath = field.NewPath("metadata")

// prepareCreate sets what clients do not own in a new object and fills in
// what they left out. What the client sent, and its defaults, are the client's
// fields; what the kind adds is nobody's.
func (r Registry) prepareCreate(ctx context.Context, obj resource.Object, own ownership) {
	obj.SetDeletionTimestamp(nil)
	obj.SetDeletionGracePeriodSeconds(nil)
	obj.SetSelfLink("")
	obj.SetUID(r.set.config.NewUID())
	obj.SetCreationTimestamp(r.set.now())
	obj.SetGeneration(1)
	if r.res.Strategy.NoGeneration {
		obj.SetGeneration(0)
	}
	if r.res.Status && !r.res.Strategy.CreateWithStatus {
		clearStatus(obj)
	}
	call(r.res.Strategy.Default, obj)
	own.track(ctx, r, nil, obj)
	call(r.res.Strategy.PrepareForCreate, obj)
}

func (r Registry) validateCreate(obj resource.Object) error {
	errs := r.validateMetadata(obj)
	if f := r.res.Strategy.Validate; f != nil {
		errs = append(errs, f(obj)...)
	}
	if f := r.res.Strategy.ValidateCreate; f != nil {
		errs = append(errs, f(obj)...)
	}
	return r.refuse(obj, errs)
}

// refuse makes an error of what validation found. Whatever a kind thinks of
// names, one that is not a segment of a path never becomes a key.
func (r Registry) refuse(obj resource.Object, errs field.ErrorList) error {
	if len(errs) == 0 {
		for _, message := range path.ValidatePathSegmentName(obj.GetName(), false) {
			errs = append(errs, field.Invalid(metadataPath.Child("name"), obj.GetName(), message))
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return r.invalid(obj.GetName(), errs)
}

// anyName leaves the judgement of names to the kind's strategy.
func anyName(string, bool) []string { return nil }

// prepareUpdate takes from the old object what an update cannot change. of is
// the part of the object that the endpoint changes, own what becomes of the
// ownership of its fields.
func (r Registry) prepareUpdate(ctx context.Context, obj, old resource.Object, of part, own ownership) {
	obj.SetSelfLink("")
	obj.SetCreationTimestamp(old.GetCreationTimestamp())
	obj.SetDeletionTimestamp(old.GetDeletionTimestamp())
	obj.SetDeletionGracePeriodSeconds(old.GetDeletionGracePeriodSeconds())
	obj.SetGeneration(old.GetGeneration())
	if obj.GetUID() == "" {
		obj.SetUID(old.GetUID())
	}
	switch of {
	case partMain:
		if r.res.Status {
			copyStatus(obj, old)
		}
		call(r.res.Strategy.Default, obj)
		own.track(ctx, r, old, obj)
		call2(r.res.Strategy.PrepareForUpdate, obj, old)
	case partStatus:
		keepAllButStatus(obj, old)
		call(r.res.Strategy.Default, obj)
		own.track(ctx, r, old, obj)
		call2(r.res.Strategy.PrepareForStatusUpdate, obj, old)
	case partChosen:
		call(r.res.Strategy.Default, obj)
		own.track(ctx, r, old, obj)
	default:
		own.track(ctx, r, old, obj)
	}
	// Binding a pod, which sets its spec, is not a change of what is wanted.
	if of != partStatus && of != partAssigned && !r.res.Strategy.NoGeneration && !r.sameSpec(obj, old) {
		obj.SetGeneration(old.GetGeneration() + 1)
	}
}

func call(f func(resource.Object), obj resource.Object) {
	if f != nil {
		f(obj)
	}
}

func call2(f func(obj, old resource.Object), obj, old resource.Object) {
	if f != nil {
		f(obj, old)
	}
}

func (r Registry) validateUpdate(obj, old resource.Object, of part, subresource string) error {
	errs := validation.ValidateObjectMetaAccessorUpdate(obj, old, metadataPath)
	errs = append(errs, r.validateMetadata(obj)...)
	if of == partMain {
		if f := r.res.Strategy.Validate; f != nil {
			errs = append(errs, f(obj)...)
		}
		if f := r.res.Strategy.ValidateUpdate; f != nil {
			errs = append(errs, f(obj, old)...)
		}
	}
	if f := r.res.Strategy.ValidateStatus; of == partStatus && f != nil {
		errs = append(errs, f(obj, old)...)
	}
	if f := r.res.Strategy.ValidateSubresource; of == partChosen && f != nil {
		errs = append(errs, f(subresource, obj, old)...)
	}
	return r.refuse(obj, errs)
}
