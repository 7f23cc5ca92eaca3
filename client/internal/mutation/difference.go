package mutation

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Difference returns the path of a field that differs in two values of one type,
// as kubectl's JSONPath names it: "spec.containers[0].image", "metadata.labels.app".
// It is exact: nil and empty differ. It returns false if nothing differs.
func Difference(a, b any) (path string, differ bool) {
	if ua, ok := a.(*unstructured.Unstructured); ok {
		if ub, ok := b.(*unstructured.Unstructured); ok && ua != nil && ub != nil {
			a, b = ua.Object, ub.Object
		}
	}
	path, differ = difference(reflect.ValueOf(a), reflect.ValueOf(b))
	return strings.TrimPrefix(path, "."), differ
}

// difference builds the path from its end, so that equal values cost no strings.
func difference(a, b reflect.Value) (path string, differ bool) {
	if a.IsValid() != b.IsValid() {
		return "", true
	}
	if !a.IsValid() {
		return "", false
	}
	if a.Type() != b.Type() {
		return "", true
	}
	switch a.Kind() {
	case reflect.Pointer, reflect.Interface:
		if a.IsNil() || b.IsNil() {
			return "", a.IsNil() != b.IsNil()
		}
		if a.Kind() == reflect.Pointer && a.Pointer() == b.Pointer() {
			return "", false
		}
		return difference(a.Elem(), b.Elem())
	case reflect.Slice:
		return differenceOfSlices(a, b)
	case reflect.Map:
		return differenceOfMaps(a, b)
	case reflect.Struct:
		return differenceOfStructs(a, b)
	default:
		return "", !a.Equal(b)
	}
}

func differenceOfSlices(a, b reflect.Value) (path string, differ bool) {
	if a.IsNil() != b.IsNil() || a.Len() != b.Len() {
		return "", true
	}
	if a.Type().Elem().Kind() == reflect.Uint8 {
		return "", !bytes.Equal(a.Bytes(), b.Bytes())
	}
	for i := range a.Len() {
		if path, differ := difference(a.Index(i), b.Index(i)); differ {
			return fmt.Sprintf("[%d]%s", i, path), true
		}
	}
	return "", false
}

func differenceOfMaps(a, b reflect.Value) (path string, differ bool) {
	if a.IsNil() != b.IsNil() {
		return "", true
	}
	for entry := a.MapRange(); entry.Next(); {
		if path, differ := difference(entry.Value(), b.MapIndex(entry.Key())); differ {
			return keyPath(entry.Key()) + path, true
		}
	}
	for entry := b.MapRange(); entry.Next(); {
		if !a.MapIndex(entry.Key()).IsValid() {
			return keyPath(entry.Key()), true
		}
	}
	return "", false
}

func keyPath(key reflect.Value) string {
	if name := fmt.Sprint(key); !strings.ContainsAny(name, "./[]\"") {
		return "." + name
	}
	return fmt.Sprintf("[%q]", fmt.Sprint(key))
}

// differenceOfStructs compares times and quantities, whose fields are not
// exported, by what they mean: a quantity remembers how it was printed.
func differenceOfStructs(a, b reflect.Value) (path string, differ bool) {
	switch at := a.Interface().(type) {
	case time.Time:
		bt := b.Interface().(time.Time)
		return "", !at.Equal(bt)
	case resource.Quantity:
		bt := b.Interface().(resource.Quantity)
		return "", at.Cmp(bt) != 0
	}
	for i := range a.NumField() {
		field := a.Type().Field(i)
		if !field.IsExported() {
			continue
		}
		if path, differ := difference(a.Field(i), b.Field(i)); differ {
			return fieldPath(field) + path, true
		}
	}
	return "", false
}

// fieldPath is the name that a field has in JSON; "" for one that is inline.
func fieldPath(field reflect.StructField) string {
	tag, hasTag := field.Tag.Lookup("json")
	name, _, _ := strings.Cut(tag, ",")
	switch {
	case name == "" && field.Anonymous, hasTag && name == "" && strings.Contains(tag, "inline"):
		return ""
	case name == "" || name == "-":
		return "." + field.Name
	default:
		return "." + name
	}
}
