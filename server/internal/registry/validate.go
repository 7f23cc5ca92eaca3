package registry

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/api/validation/path"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/registry/objectmeta"
	"github.com/levelwire/levelwire/server/internal/resource"
)

// validate checks an object that a client sent, after the hooks have seen it.
func (w *pendingWrite) validate(ctx context.Context) error {
	switch w.action {
	case create:
		return w.registry.validateCreate(ctx, w.object)
	case replace:
		return w.registry.validateUpdate(ctx, w.object, w.current.object, w.endpoint)
	case keep, mark, remove: // nothing that a client sent is written
	}
	return nil
}

func (r Registry) validateCreate(ctx context.Context, obj resource.Object) error {
	errs := append(r.checkLabel(ctx, obj, nil), objectmeta.Validate(r.res, obj)...)
	if f := r.res.Strategy.ValidateName; f != nil {
		errs = append(errs, f(obj, true)...)
	}
	if f := r.res.Strategy.Validate; f != nil {
		errs = append(errs, f(obj)...)
	}
	if f := r.res.Strategy.ValidateCreate; f != nil {
		errs = append(errs, f(obj)...)
	}
	return r.invalidObject(obj, errs)
}

func (r Registry) validateUpdate(ctx context.Context, obj, old resource.Object, endpoint Endpoint) error {
	errs := objectmeta.ValidateReplaced(r.res, obj)
	errs = append(errs, validation.ValidateObjectMetaAccessorUpdate(obj, old, objectmeta.Path)...)
	if endpoint.Scope == ScopeMain {
		if f := r.res.Strategy.ValidateName; f != nil {
			errs = append(errs, f(obj, false)...)
		}
		if f := r.res.Strategy.Validate; f != nil {
			errs = append(errs, f(obj)...)
		}
		if f := r.res.Strategy.ValidateUpdate; f != nil {
			errs = append(errs, f(obj, old)...)
		}
	}
	if endpoint.Scope == ScopeStatus {
		errs = append(errs, r.checkLabel(ctx, obj, old)...)
		if f := r.res.Strategy.ValidateStatus; f != nil {
			errs = append(errs, f(obj, old)...)
		}
	}
	if f := r.res.Strategy.ValidateSubresource; endpoint.Scope == ScopeSubresource && f != nil {
		errs = append(errs, f(endpoint.Subresource, obj, old)...)
	}
	return r.invalidObject(obj, errs)
}

// checkLabel complains about what the object's namespace does not allow it by a label.
func (r Registry) checkLabel(ctx context.Context, obj, old resource.Object) field.ErrorList {
	if r.res.Strategy.NeedsLabel == nil {
		return nil
	}
	need := r.res.Strategy.NeedsLabel(obj, old)
	if need == nil {
		return nil
	}
	namespaces, ok := r.set.Lookup("", "v1", "namespaces")
	if !ok {
		return nil
	}
	namespace, err := GetAs[*corev1.Namespace](ctx, namespaces, "", obj.GetNamespace())
	switch {
	case err != nil:
		return field.ErrorList{field.InternalError(need.Field, fmt.Errorf("could not retrieve namespace to verify %s: %w", need.For, err))}
	case namespace.Labels[need.Label] != "true":
		return field.ErrorList{field.Forbidden(need.Field, need.Missing)}
	}
	return nil
}

// invalidObject returns the error that validation comes to, or nil. A name that
// is not a segment of a path is refused whatever the kind's strategy says, so
// that it never becomes a key.
func (r Registry) invalidObject(obj resource.Object, errs field.ErrorList) error {
	if len(errs) == 0 {
		for _, message := range path.ValidatePathSegmentName(obj.GetName(), false) {
			errs = append(errs, field.Invalid(objectmeta.Path.Child("name"), obj.GetName(), message))
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return r.invalid(obj.GetName(), withoutRepetitions(errs))
}

// withoutRepetitions leaves out what several checks have said in the same words: those of
// all objects, of the kind, of what replaces an object.
func withoutRepetitions(errs field.ErrorList) field.ErrorList {
	said := make(map[string]bool, len(errs))
	return slices.DeleteFunc(errs, func(err *field.Error) bool {
		words := err.Error()
		repeated := said[words]
		said[words] = true
		return repeated
	})
}

// canBeKey reports whether a name may become part of a key.
func canBeKey(name string) bool {
	return name != "" && len(path.ValidatePathSegmentName(name, false)) == 0
}
