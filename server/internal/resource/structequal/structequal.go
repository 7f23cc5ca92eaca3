// Package structequal finds out quickly that two values of a Go type are the same.
// An update compares an object with its predecessor several times, and most of the
// object is the same each time: the library's semantic comparison, which reflects
// on each value, took a quarter of the processor time of an update of a pod.
package structequal

import (
	"bytes"
	"reflect"
	"sync"
	"time"
	"unsafe"

	"k8s.io/apimachinery/pkg/api/equality"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Semantic is equality.Semantic.DeepEqual of what a and b point to, which it asks only if
// they are not identical.
func Semantic[T any](a, b *T) bool {
	return identicalPointers(a, b) || equality.Semantic.DeepEqual(a, b)
}

// SemanticValues is Semantic of two values of one type.
func SemanticValues(a, b reflect.Value) bool {
	return Identical(a, b) || equality.Semantic.DeepEqual(a.Interface(), b.Interface())
}

func identicalPointers[T any](a, b *T) bool {
	return a != nil && b != nil && planOf(reflect.TypeFor[T]()).same(unsafe.Pointer(a), unsafe.Pointer(b))
}

// Identical reports whether two values are surely the same: equal for
// equality.Semantic.DeepEqual, and with the same JSON form. That it returns false says
// nothing: values that have no address, and types with parts that it does not know, are
// never identical. The values are of the same type.
func Identical(a, b reflect.Value) bool {
	if !a.CanAddr() || !b.CanAddr() || a.Type() != b.Type() {
		return false
	}
	return planOf(a.Type()).same(a.Addr().UnsafePointer(), b.Addr().UnsafePointer())
}

// plan is how two values of a type are compared: part by part, at offsets that were
// read off the type. A plan is immutable once it is published, and may refer to itself,
// as types do.
type plan struct {
	parts []part
}

// part is a part of a value that is compared as a whole. The parts of structs within
// structs are parts of the outermost.
type part struct {
	kind   partKind
	offset uintptr
	size   uintptr // of an element of a slice
	elem   *plan   // of a pointer or a slice
}

type partKind uint8

const (
	partNever   partKind = iota // never known to be the same
	partUnknown                 // a map or an interface: the same if both are nil
	part8
	part16
	part32
	part64
	partFloat32
	partFloat64
	partString
	partBytes
	partPointer
	partSlice
	partStringMap
	partBytesMap
	partQuantityMap
	partTime
	partQuantity
)

var (
	plans  sync.Map // reflect.Type -> *plan; bounded by the types in the binary
	making sync.Mutex
)

func planOf(t reflect.Type) *plan {
	if p, ok := plans.Load(t); ok {
		return p.(*plan)
	}
	making.Lock()
	defer making.Unlock()
	made := map[reflect.Type]*plan{}
	p := makePlan(t, made)
	for t, p := range made {
		plans.Store(t, p)
	}
	return p
}

func makePlan(t reflect.Type, made map[reflect.Type]*plan) *plan {
	if p, ok := plans.Load(t); ok {
		return p.(*plan)
	}
	if p, ok := made[t]; ok {
		return p
	}
	p := &plan{}
	made[t] = p
	p.add(t, 0, made)
	return p
}

type quantities = map[string]quantity.Quantity

// add adds the parts of a type whose value begins at the offset.
func (p *plan) add(t reflect.Type, offset uintptr, made map[reflect.Type]*plan) {
	one := part{kind: scalarKinds[t.Kind()], offset: offset}
	switch {
	case t == reflect.TypeFor[quantity.Quantity]():
		one.kind = partQuantity
	case t == reflect.TypeFor[metav1.Time](), t == reflect.TypeFor[metav1.MicroTime]():
		one.kind = partTime // the only field of both
	case one.kind != partNever:
	case t.Kind() == reflect.Struct:
		p.addFields(t, offset, made)
		return
	case t.Kind() == reflect.Pointer:
		one.kind, one.elem = partPointer, makePlan(t.Elem(), made)
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		one.kind = partBytes
	case t.Kind() == reflect.Slice:
		one.kind, one.size, one.elem = partSlice, t.Elem().Size(), makePlan(t.Elem(), made)
	case t.Kind() == reflect.Map:
		one.kind = mapKind(t)
	case t.Kind() == reflect.Interface:
		one.kind = partUnknown
	}
	p.parts = append(p.parts, one)
}

// addFields adds the fields of a struct. The library's comparison does not go into
// fields that are not exported: it knows the type, or it panics.
func (p *plan) addFields(t reflect.Type, offset uintptr, made map[reflect.Type]*plan) {
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() {
			p.parts = append(p.parts, part{kind: partNever})
			continue
		}
		p.add(f.Type, offset+f.Offset, made)
	}
}

var scalarKinds = map[reflect.Kind]partKind{
	reflect.Bool: part8, reflect.Int8: part8, reflect.Uint8: part8, reflect.Int16: part16, reflect.Uint16: part16,
	reflect.Int32: part32, reflect.Uint32: part32, reflect.Int64: part64, reflect.Uint64: part64,
	reflect.Int: intKind(), reflect.Uint: intKind(), reflect.Float32: partFloat32, reflect.Float64: partFloat64, reflect.String: partString,
}

func intKind() partKind {
	if unsafe.Sizeof(int(0)) == 4 {
		return part32
	}
	return part64
}

// mapKind knows the maps that objects have. A pointer to a map may be taken for one to
// another whose keys and elements have the same underlying types, which differ in name
// only: both hash and compare alike.
func mapKind(t reflect.Type) partKind {
	if t.Key().Kind() != reflect.String {
		return partUnknown
	}
	switch elem := t.Elem(); {
	case elem.Kind() == reflect.String:
		return partStringMap
	case elem == reflect.TypeFor[[]byte]():
		return partBytesMap
	case elem == reflect.TypeFor[quantity.Quantity]():
		return partQuantityMap
	}
	return partUnknown
}

// same compares the values at two addresses.
func (p *plan) same(a, b unsafe.Pointer) bool {
	if a == b {
		return true
	}
	for i := range p.parts {
		q := &p.parts[i]
		if !q.same(unsafe.Add(a, q.offset), unsafe.Add(b, q.offset)) {
			return false
		}
	}
	return true
}

func (p *part) same(a, b unsafe.Pointer) bool {
	switch p.kind {
	case partString:
		return *(*string)(a) == *(*string)(b)
	case partPointer:
		x, y := *(*unsafe.Pointer)(a), *(*unsafe.Pointer)(b)
		return x == y || x != nil && y != nil && p.elem.same(x, y)
	case partSlice:
		return p.sameSlices(*(*header)(a), *(*header)(b))
	case part8:
		return *(*uint8)(a) == *(*uint8)(b)
	case part16:
		return *(*uint16)(a) == *(*uint16)(b)
	case part32:
		return *(*uint32)(a) == *(*uint32)(b)
	case part64:
		return *(*uint64)(a) == *(*uint64)(b)
	case partFloat32:
		return *(*float32)(a) == *(*float32)(b)
	case partFloat64:
		return *(*float64)(a) == *(*float64)(b)
	case partBytes:
		return sameBytes(*(*[]byte)(a), *(*[]byte)(b))
	case partTime:
		return (*time.Time)(a).Equal(*(*time.Time)(b))
	case partQuantity:
		return *(*quantity.Quantity)(a) == *(*quantity.Quantity)(b)
	}
	return p.sameMaps(a, b)
}

// header is what a slice is in memory.
type header struct {
	data     unsafe.Pointer
	len, cap int
}

func (p *part) sameSlices(a, b header) bool {
	if a.len != b.len || (a.data == nil) != (b.data == nil) {
		return false
	}
	if a.data == b.data {
		return true
	}
	for i := range uintptr(a.len) {
		if !p.elem.same(unsafe.Add(a.data, i*p.size), unsafe.Add(b.data, i*p.size)) {
			return false
		}
	}
	return true
}

func sameBytes(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

func (p *part) sameMaps(a, b unsafe.Pointer) bool {
	switch p.kind {
	case partStringMap:
		return sameMaps(*(*map[string]string)(a), *(*map[string]string)(b), func(x, y string) bool { return x == y })
	case partBytesMap:
		return sameMaps(*(*map[string][]byte)(a), *(*map[string][]byte)(b), sameBytes)
	case partQuantityMap:
		return sameMaps(*(*quantities)(a), *(*quantities)(b), func(x, y quantity.Quantity) bool { return x == y })
	case partUnknown: // whose first word is nil if it is
		return *(*unsafe.Pointer)(a) == nil && *(*unsafe.Pointer)(b) == nil
	}
	return false
}

func sameMaps[V any](a, b map[string]V, same func(x, y V) bool) bool {
	if len(a) != len(b) || (a == nil) != (b == nil) {
		return false
	}
	for key, x := range a {
		if y, ok := b[key]; !ok || !same(x, y) {
			return false
		}
	}
	return true
}
