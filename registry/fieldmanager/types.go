package fieldmanager

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/levelwire/levelwire/resource"
)

// builtin knows the lists and maps of every kind of k8s.io/api. Making it takes
// some 50 ms, once in a process, which is why nothing but the long way asks for it.
var builtin = sync.OnceValue(func() managedfields.TypeConverter {
	return fallback{applyconfigurations.NewTypeConverter(scheme.Scheme), managedfields.NewDeducedTypeConverter()}
})

// fallback treats kinds that are not in the scheme as if their lists had no
// keys and each of their maps were open.
type fallback struct {
	known, deduced managedfields.TypeConverter
}

// ObjectToTyped returns obj with the type that its kind has.
func (f fallback) ObjectToTyped(obj runtime.Object, opts ...typed.ValidationOptions) (*typed.TypedValue, error) {
	if scheme.Scheme.Recognizes(obj.GetObjectKind().GroupVersionKind()) {
		return f.known.ObjectToTyped(obj, opts...)
	}
	return f.deduced.ObjectToTyped(obj, opts...)
}

// TypedToObject returns an unstructured object, whatever the type.
func (f fallback) TypedToObject(value *typed.TypedValue) (runtime.Object, error) {
	return f.deduced.TypedToObject(value)
}

func typesOf(res *resource.Resource) (managedfields.TypeConverter, error) {
	if res.TypeConverter == nil {
		return builtin(), nil
	}
	types, err := res.TypeConverter()
	if err != nil {
		return nil, fmt.Errorf("the schema of %s: %w", res.GroupVersionKind(), err)
	}
	return types, nil
}
