package registry

import (
	"context"
	"fmt"

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
		return w.validateUpdate(ctx)
	case keep, mark, remove: // nothing that a client sent is written
	}
	return nil
}

func (r Registry) validateCreate(ctx context.Context, obj resource.Object) error {
	errs := r.checkLabel(ctx, obj, nil)
	if f := r.res.Strategy.ValidateFirst; f != nil {
		errs = append(errs, f(obj)...)
	}
	if !r.res.Strategy.MetadataIfValid {
		errs = append(errs, r.validateNewMetadata(obj)...)
	}
	if f := r.res.Strategy.Validate; f != nil {
		errs = append(errs, f(obj)...)
	}
	if f := r.res.Strategy.ValidateCreate; f != nil {
		errs = append(errs, f(obj)...)
	}
	if r.res.Strategy.MetadataIfValid && len(errs) == 0 {
		errs = r.validateNewMetadata(obj)
	}
	return r.invalidObject(obj, errs)
}

func (r Registry) validateNewMetadata(obj resource.Object) field.ErrorList {
	var errs field.ErrorList
	if f := r.res.Strategy.ValidateName; f != nil {
		errs = f(obj, true)
	}
	return append(errs, objectmeta.Validate(r.res, obj)...)
}

func (w *pendingWrite) validateUpdate(ctx context.Context) error {
	r, obj, old, endpoint := w.registry, w.object, w.current.object, w.endpoint
	errs := objectmeta.ValidateReplaced(r.res, obj)
	errs = append(errs, validation.ValidateObjectMetaAccessorUpdate(obj, old, objectmeta.Path)...)
	namesFirst := endpoint.Scope == ScopeMain && r.res.Strategy.NamesBeforeFinalizers
	if !namesFirst {
		errs = append(errs, objectmeta.ValidateFinalizers(r.res, obj)...)
	}
	if endpoint.Scope == ScopeMain {
		if f := r.res.Strategy.ValidateUnchanged; f != nil {
			errs = append(errs, f(obj, old)...)
		}
		if f := r.res.Strategy.ValidateName; f != nil {
			errs = append(errs, f(obj, false)...)
		}
		if namesFirst {
			errs = append(errs, objectmeta.ValidateFinalizers(r.res, obj)...)
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
		for _, check := range r.set.config.StatusChecks {
			errs = append(errs, check(ctx, &w.request)...)
		}
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
		errs = validatePathSegments(obj)
	}
	if len(errs) == 0 {
		return nil
	}
	return r.invalid(obj.GetName(), errs)
}

// validatePathSegments complains about a name, or the start of a generated one, that cannot be
// part of a path.
func validatePathSegments(obj resource.Object) field.ErrorList {
	var errs field.ErrorList
	for _, part := range []struct {
		field, value string
		prefix       bool
	}{{"generateName", obj.GetGenerateName(), true}, {"name", obj.GetName(), false}} {
		for _, message := range path.ValidatePathSegmentName(part.value, part.prefix) {
			errs = append(errs, field.Invalid(objectmeta.Path.Child(part.field), part.value, message))
		}
	}
	return errs
}

// canBeKey reports whether a name may become part of a key.
func canBeKey(name string) bool {
	return name != "" && len(path.ValidatePathSegmentName(name, false)) == 0
}
