package registry

import (
	"encoding/json"
	"reflect"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/levelwire/levelwire/server/internal/resource"
)

// checkRawJSON refuses an object with raw JSON that programs cannot decode, as 1e400, which no
// float64 holds, in the data of a ControllerRevision. One that has been stored with such a value
// may be written again: it must remain mendable. Few kinds have raw JSON, and others cost
// nothing. old is nil for a new object.
func checkRawJSON(obj, old resource.Object) error {
	if !hasRawJSON(reflect.TypeOf(obj)) {
		return nil
	}
	err := decodeRawJSON(reflect.ValueOf(obj))
	if err == nil || old != nil && decodeRawJSON(reflect.ValueOf(old)) != nil {
		return nil
	}
	return apierrors.NewBadRequest(err.Error())
}

var rawExtension = reflect.TypeFor[runtime.RawExtension]()

// withRawJSON remembers of types whether there is raw JSON in them.
var withRawJSON sync.Map // reflect.Type -> bool

func hasRawJSON(t reflect.Type) bool {
	if known, ok := withRawJSON.Load(t); ok {
		return known.(bool)
	}
	has := findsRawJSON(t, map[reflect.Type]bool{})
	withRawJSON.Store(t, has)
	return has
}

// findsRawJSON looks for raw JSON in a type. seen are those that have been looked at.
func findsRawJSON(t reflect.Type, seen map[reflect.Type]bool) bool {
	if t == rawExtension {
		return true
	}
	if seen[t] {
		return false
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return findsRawJSON(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() && findsRawJSON(f.Type, seen) {
				return true
			}
		}
	}
	return false
}

// decodeRawJSON decodes all raw JSON in a value.
func decodeRawJSON(v reflect.Value) error {
	if !hasRawJSON(v.Type()) {
		return nil
	}
	if raw, ok := v.Interface().(runtime.RawExtension); ok {
		if len(raw.Raw) == 0 {
			return nil
		}
		var decoded any
		return json.Unmarshal(raw.Raw, &decoded)
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			return decodeRawJSON(v.Elem())
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if err := decodeRawJSON(v.Index(i)); err != nil {
				return err
			}
		}
	case reflect.Map:
		for entries := v.MapRange(); entries.Next(); {
			if err := decodeRawJSON(entries.Value()); err != nil {
				return err
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				if err := decodeRawJSON(v.Field(i)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
