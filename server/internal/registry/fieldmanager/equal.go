package fieldmanager

import (
	"bytes"
	"reflect"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// equal says whether two values that are there have the same JSON form.
func (d *differ) equal(s *typeInfo, before, after reflect.Value) bool {
	a, b := content(before), content(after)
	if !a.IsValid() || !b.IsValid() {
		return a.IsValid() == b.IsValid()
	}
	switch s.kind {
	case scalarKind:
		return equalScalars(a, b)
	case structKind:
		for i := range s.fields {
			f := &s.fields[i]
			x, y := f.of(a), f.of(b)
			if x.IsValid() != y.IsValid() || x.IsValid() && !d.equal(f.info, x, y) {
				return false
			}
		}
		return true
	case mapKind:
		return d.equalMaps(s, a, b)
	case anyKind:
		if !reflect.DeepEqual(a.Interface(), b.Interface()) {
			d.unsure = true
		}
		return true
	}
	if a.Len() != b.Len() {
		return false
	}
	for i := range a.Len() {
		if !d.equal(s.elem, a.Index(i), b.Index(i)) {
			return false
		}
	}
	return true
}

func (d *differ) equalMaps(s *typeInfo, a, b reflect.Value) bool {
	if a.Len() != b.Len() {
		return false
	}
	for entries := a.MapRange(); entries.Next(); {
		other := b.MapIndex(entries.Key())
		if !other.IsValid() || !d.equal(s.elem, entries.Value(), other) {
			return false
		}
	}
	return true
}

func equalScalars(a, b reflect.Value) bool {
	switch a.Kind() {
	case reflect.String:
		return a.String() == b.String()
	case reflect.Bool:
		return a.Bool() == b.Bool()
	case reflect.Float32, reflect.Float64:
		return a.Float() == b.Float()
	case reflect.Slice:
		return bytes.Equal(a.Bytes(), b.Bytes())
	case reflect.Struct:
		return equalStructs(a, b)
	}
	return a.Equal(b)
}

// equalStructs compares the types whose JSON form is a scalar: by that form, in
// which times have seconds and quantities one way to be written.
func equalStructs(a, b reflect.Value) bool {
	switch x := pointer(a).(type) {
	case *metav1.Time:
		y := pointer(b).(*metav1.Time)
		return x.IsZero() == y.IsZero() && (x.IsZero() || x.Unix() == y.Unix())
	case *metav1.MicroTime:
		y := pointer(b).(*metav1.MicroTime)
		return x.IsZero() == y.IsZero() && (x.IsZero() || x.UnixMicro() == y.UnixMicro())
	case *resource.Quantity:
		y := pointer(b).(*resource.Quantity)
		return *x == *y || x.String() == y.String()
	}
	return reflect.DeepEqual(a.Interface(), b.Interface())
}

// pointer returns a pointer to a value, or to a copy where it has no address.
func pointer(v reflect.Value) any {
	if v.CanAddr() {
		return v.Addr().Interface()
	}
	p := reflect.New(v.Type())
	p.Elem().Set(v)
	return p.Interface()
}
