package resource

import (
	"encoding/json"
	"reflect"
	"strings"
	"sync"
	"unsafe"

	jsonv2 "github.com/go-json-experiment/json"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// shape is how a struct of the API is laid out in JSON: its members in the order
// in which they are written. Reading and writing go by the offsets of the fields,
// because half of the time of doing the same with reflect.Value is spent on its
// checks. What they do with them rests on the types that shapeOf has seen.
type shape struct {
	members []shapeMember
	byName  map[string]int
}

// shapeMember is one member of an object.
type shapeMember struct {
	shapeValue
	name      string
	quoted    string  // `"name":`
	offset    uintptr // of the field
	omitEmpty bool
	omitZero  func(unsafe.Pointer) bool // nil: written even if it is zero
}

// shapeValue is how a value is read and written.
type shapeValue struct {
	kind   shapeKind
	typ    reflect.Type
	size   uintptr     // of typ
	object *shape      // of a struct
	elem   *shapeValue // of a pointer, an array or a map
}

type shapeKind uint8

const (
	shapeString shapeKind = iota
	shapeBytes
	shapeBool
	shapeInt32
	shapeInt64
	shapeObject
	shapePointer
	shapeArray
	shapeMap
	shapeTexts // map[string]string
	shapeTime
	shapeQuantity
	shapeCustom // by the type's own MarshalJSON and UnmarshalJSON
)

// maxMembers is how many members of one object the reader can tell apart.
const maxMembers = 64

var (
	shapes          sync.Map // reflect.Type -> *shape, nil for types that have none
	shapesBeingMade sync.Mutex
)

// shapeOf returns the shape of a struct's type, which is made once, or nil if
// there is anything in it that reading and writing by shape do not know.
func shapeOf(typ reflect.Type) *shape {
	if s, ok := shapes.Load(typ); ok {
		return s.(*shape)
	}
	shapesBeingMade.Lock()
	defer shapesBeingMade.Unlock()
	made := map[reflect.Type]*shape{}
	s := makeShape(typ, made)
	if s == nil {
		// The others may refer to one that could not be made.
		shapes.Store(typ, s)
		return nil
	}
	for t, s := range made {
		shapes.Store(t, s)
	}
	return s
}

func makeShape(typ reflect.Type, made map[reflect.Type]*shape) *shape {
	if s, ok := shapes.Load(typ); ok {
		return s.(*shape)
	}
	if s, ok := made[typ]; ok {
		return s
	}
	s := &shape{byName: map[string]int{}}
	made[typ] = s
	if !s.add(typ, 0, made) || len(s.members) > maxMembers {
		return nil
	}
	return s
}

// add adds the fields of typ, which lies at offset, and of what is embedded in it.
func (s *shape) add(typ reflect.Type, offset uintptr, made map[reflect.Type]*shape) bool {
	for i := range typ.NumField() {
		field := typ.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		at := offset + field.Offset
		if name == "-" && options == "" {
			continue
		}
		if field.Anonymous && name == "" && field.Type.Kind() == reflect.Struct && !hasOwnJSON(field.Type) {
			if !s.add(field.Type, at, made) {
				return false
			}
			continue
		}
		_, twice := s.byName[name]
		if field.Type.Kind() == reflect.Pointer && strings.Contains(options, "omitzero") {
			return false // whose IsZero decides is not worth telling apart
		}
		if !field.IsExported() || name == "" || twice || strings.ContainsAny(name, `"\<>&`) {
			return false
		}
		m := shapeMember{name: name, quoted: `"` + name + `":`, offset: at}
		if !m.shapeValue.of(field.Type, made) || !m.options(options) {
			return false
		}
		s.byName[name] = len(s.members)
		s.members = append(s.members, m)
	}
	return true
}

// options reads those of a field's tag.
func (m *shapeMember) options(options string) bool {
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "", "inline":
		case "omitempty":
			m.omitEmpty = true
		case "omitzero":
			m.omitZero = zeroTest(m.typ)
		default:
			return false
		}
	}
	return true
}

// zeroTest returns what omitzero asks of a value.
func zeroTest(typ reflect.Type) func(unsafe.Pointer) bool {
	type zeroer interface{ IsZero() bool }
	switch {
	case typ == reflect.TypeFor[metav1.Time]():
		return func(p unsafe.Pointer) bool { return (*metav1.Time)(p).IsZero() }
	case reflect.PointerTo(typ).Implements(reflect.TypeFor[zeroer]()):
		return func(p unsafe.Pointer) bool { return reflect.NewAt(typ, p).Interface().(zeroer).IsZero() }
	}
	return func(p unsafe.Pointer) bool { return reflect.NewAt(typ, p).Elem().IsZero() }
}

// interfacesOfJSON are the ways in which a type can have its own JSON.
var interfacesOfJSON = []reflect.Type{
	reflect.TypeFor[json.Marshaler](), reflect.TypeFor[json.Unmarshaler](),
	reflect.TypeFor[jsonv2.MarshalerTo](), reflect.TypeFor[jsonv2.UnmarshalerFrom](),
	reflect.TypeFor[interface{ MarshalText() ([]byte, error) }](), reflect.TypeFor[interface{ UnmarshalText([]byte) error }](),
}

func hasOwnJSON(typ reflect.Type) bool {
	for _, i := range interfacesOfJSON {
		if reflect.PointerTo(typ).Implements(i) {
			return true
		}
	}
	return false
}

// of finds out how values of a type are read and written.
func (v *shapeValue) of(typ reflect.Type, made map[reflect.Type]*shape) bool {
	v.typ, v.size = typ, typ.Size()
	switch typ {
	case reflect.TypeFor[metav1.Time]():
		v.kind = shapeTime
		return true
	case reflect.TypeFor[quantity.Quantity]():
		v.kind = shapeQuantity
		return true
	case reflect.TypeFor[map[string]string]():
		v.kind = shapeTexts
		return true
	}
	if typ.Kind() != reflect.Pointer && hasOwnJSON(typ) {
		v.kind = shapeCustom
		return typ.Implements(reflect.TypeFor[json.Marshaler]()) && reflect.PointerTo(typ).Implements(reflect.TypeFor[json.Unmarshaler]())
	}
	switch typ.Kind() {
	case reflect.String:
		v.kind = shapeString
	case reflect.Bool:
		v.kind = shapeBool
	case reflect.Int32:
		v.kind = shapeInt32
	case reflect.Int64:
		v.kind = shapeInt64
	case reflect.Struct:
		v.kind, v.object = shapeObject, makeShape(typ, made)
		return v.object != nil
	case reflect.Slice:
		if v.kind = shapeArray; typ.Elem().Kind() == reflect.Uint8 {
			v.kind = shapeBytes
			return typ.Elem() == reflect.TypeFor[byte]()
		}
	case reflect.Pointer:
		v.kind = shapePointer
	case reflect.Map:
		if v.kind = shapeMap; typ.Key().Kind() != reflect.String || hasOwnJSON(typ.Key()) {
			return false
		}
	default:
		return false
	}
	if v.kind != shapeArray && v.kind != shapePointer && v.kind != shapeMap {
		return true
	}
	v.elem = &shapeValue{}
	return v.elem.of(typ.Elem(), made)
}
