// Package deepcopy copies objects of the API, also those of types that only embed
// one.
package deepcopy

import (
	"encoding/json"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
)

// Of returns a copy that shares nothing with obj. A type that embeds an API type and
// has no DeepCopyObject of its own would copy what it embeds only: it is copied by
// its JSON. Of panics for a type that has no JSON either.
func Of[T runtime.Object](obj T) T {
	if copied, ok := obj.DeepCopyObject().(T); ok {
		return copied
	}
	typ := reflect.TypeFor[T]()
	if typ.Kind() == reflect.Pointer {
		copied := reflect.New(typ.Elem())
		data, err := json.Marshal(obj)
		if err == nil {
			err = json.Unmarshal(data, copied.Interface())
		}
		if err == nil {
			return copied.Interface().(T)
		}
	}
	panic(fmt.Sprintf("%T cannot be copied: give it a DeepCopyObject that returns %T", obj, obj))
}
