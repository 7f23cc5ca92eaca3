package fieldmanager

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/levelwire/levelwire/server/internal/resource"
)

// versions are the versions of one kind: the endpoint's own, and those of the
// other versions (or groups) that its objects are served in. Managers own fields
// in the version that they wrote in.
type versions struct {
	// ctx bounds conversions by webhook. It is the write's: a versions value is
	// made for one write, and the library's interfaces have no argument for it.
	ctx   context.Context
	own   *resource.Resource
	other func(schema.GroupVersion) *resource.Resource
}

// in returns the resource that shows the objects in a version, or nil.
func (v versions) in(gv schema.GroupVersion) *resource.Resource {
	if gv == v.own.GroupVersion() {
		return v.own
	}
	if v.other == nil {
		return nil
	}
	return v.other(gv)
}

// ConvertToVersion returns the object in a version: with its Go
// type if the kind has one. An object that has that version already is returned
// itself. A version that is not served (any more) is an error that
// runtime.IsNotRegisteredError knows.
func (v versions) ConvertToVersion(in runtime.Object, target runtime.GroupVersioner) (runtime.Object, error) {
	gvk := in.GetObjectKind().GroupVersionKind()
	wanted, ok := target.(schema.GroupVersion)
	if !ok {
		return nil, fmt.Errorf("convert %s: %v is not one version", gvk, target)
	}
	from, to := v.in(gvk.GroupVersion()), v.in(wanted)
	if from == nil {
		return nil, runtime.NewNotRegisteredErrForKind("levelwire", gvk)
	}
	if to == nil {
		return nil, runtime.NewNotRegisteredErrForKind("levelwire", wanted.WithKind(gvk.Kind))
	}
	obj, err := toGoType(in, from)
	if err != nil || from == to {
		return obj, err
	}
	if from.Storage != nil {
		if obj, err = from.ToStorage(v.ctx, obj); err != nil {
			return nil, fmt.Errorf("convert %s to its stored form: %w", gvk, err)
		}
	}
	if to.Storage != nil {
		if runtime.Object(obj) == in { // which was in its stored form, and is still needed as it is
			obj = obj.DeepCopyObject().(resource.Object)
		}
		if obj, err = to.FromStorage(v.ctx, obj); err != nil {
			return nil, fmt.Errorf("convert %s to %s: %w", gvk, wanted, err)
		}
	}
	obj.GetObjectKind().SetGroupVersionKind(to.GroupVersionKind())
	return obj, nil
}

// toGoType gives the result of a merge its Go type.
func toGoType(in runtime.Object, res *resource.Resource) (resource.Object, error) {
	u, open := in.(*unstructured.Unstructured)
	empty := res.New()
	if _, custom := empty.(*unstructured.Unstructured); !open || custom {
		obj, ok := in.(resource.Object)
		if !ok {
			return nil, fmt.Errorf("%T has no metadata", in)
		}
		return obj, nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, empty); err != nil {
		return nil, fmt.Errorf("unable to convert unstructured object to %v: %w", u.GroupVersionKind(), err)
	}
	return empty, nil
}

// Default fills in what a manager left out.
func (v versions) Default(obj runtime.Object) {
	if typed, ok := obj.(resource.Object); ok && v.own.Strategy.Default != nil {
		v.own.Strategy.Default(typed)
	}
}

// New returns an object without content.
func (v versions) New(schema.GroupVersionKind) (runtime.Object, error) {
	return empty(v.own), nil
}

func empty(res *resource.Resource) resource.Object {
	obj := res.New()
	obj.GetObjectKind().SetGroupVersionKind(res.GroupVersionKind())
	return obj
}

// Convert is not what merging does with objects.
func (versions) Convert(_, _, _ any) error { return errNotConverted }

// ConvertFieldLabel is not what merging does with objects.
func (versions) ConvertFieldLabel(schema.GroupVersionKind, string, string) (label, value string, err error) {
	return "", "", errNotConverted
}

var errNotConverted = fmt.Errorf("only whole objects are converted")

// everyVersion finds the types of each version where it is served, once: what is
// compared must be of the same schema. It is not safe for concurrent use.
type everyVersion struct {
	versions
	found map[*resource.Resource]managedfields.TypeConverter
	// refused is why an object was not converted that is too large. The library puts its text into
	// another error.
	refused error
}

// ObjectToTyped returns obj with the type that its version has.
func (e *everyVersion) ObjectToTyped(obj runtime.Object, opts ...typed.ValidationOptions) (*typed.TypedValue, error) {
	res := e.in(obj.GetObjectKind().GroupVersionKind().GroupVersion())
	if res == nil {
		return nil, runtime.NewNotRegisteredErrForKind("levelwire", obj.GetObjectKind().GroupVersionKind())
	}
	types, ok := e.found[res]
	if !ok {
		var err error
		if types, err = TypeConverter(res); err != nil {
			return nil, err
		}
		e.found[res] = types
	}
	if err := checkCost(types, res, obj); err != nil {
		e.refused = err
		return nil, err
	}
	return types.ObjectToTyped(obj, opts...)
}

// TypedToObject returns an unstructured object.
func (*everyVersion) TypedToObject(value *typed.TypedValue) (runtime.Object, error) {
	return managedfields.NewDeducedTypeConverter().TypedToObject(value)
}
