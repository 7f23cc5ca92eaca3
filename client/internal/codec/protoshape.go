package codec

import (
	"reflect"
	"unsafe"

	"github.com/levelwire/levelwire/internal/wirefield"
)

// protoShape is how a struct of the API is laid out in protobuf, as the types
// of its fields and the numbers in their tags say; whether a field is optional
// or repeated is often wrong there. It is nil for types that only their
// generated code can read.
type protoShape struct {
	at      locator        // of the struct
	members []*protoMember // by number; nil: not known
}

// member returns nil for a number that is not known.
func (s *protoShape) member(number int) *protoMember {
	if number < len(s.members) {
		return s.members[number]
	}
	return nil
}

// protoMember is one field of a struct.
type protoMember struct {
	number int
	index  int     // in the struct
	offset uintptr // in the struct
	form   memberForm
	typ    reflect.Type // of the field
	at     locator      // of typ
	salt   uint64       // of typ, for hashes
	elem   protoValue   // of the field, what it points to, or what it has many of
	key    protoValue   // of a map
	body   bool         // see bodyOf
}

// locator makes values of reflect for one type out of pointers. It does what
// reflect.NewAt does, which has to look for the type of the pointer each time.
type locator struct{ null any } // a nil pointer to the type

func locatorOf(typ reflect.Type) locator {
	return locator{reflect.Zero(reflect.PointerTo(typ)).Interface()}
}

// pointer returns p as an interface. An interface is two words, the type and the
// pointer.
func (l locator) pointer(p unsafe.Pointer) any {
	made := l.null
	(*[2]unsafe.Pointer)(unsafe.Pointer(&made))[1] = p
	return made
}

// value returns the value at p, which can be set.
func (l locator) value(p unsafe.Pointer) reflect.Value { return reflect.ValueOf(l.pointer(p)).Elem() }

type memberForm uint8

const (
	single memberForm = iota
	pointer
	repeated
	mapped
)

// protoValue is how one value is read.
type protoValue struct {
	kind  valueKind
	wire  int
	typ   reflect.Type
	size  uintptr     // of typ
	at    locator     // of typ
	shape *protoShape // of a message
}

type valueKind uint8

const (
	valueString valueKind = iota
	valueBytes
	valueBool
	valueInt32
	valueInt64
	valueMessage
	valueGenerated // by the type's own Unmarshal
)

var (
	shapes          shapeTable[protoShape]
	unmarshalerType = reflect.TypeFor[protoUnmarshaler]()
)

// shapeOf returns the shape of a struct's type; nil if it has none.
func shapeOf(typ reflect.Type) *protoShape { return shapes.of(typ, makeShape) }

func makeShape(typ reflect.Type, made map[reflect.Type]*protoShape) *protoShape {
	if typ.Kind() != reflect.Struct {
		return nil
	}
	s, ok := shapes.begin(typ, made)
	if ok {
		return s
	}
	s.at = locatorOf(typ)
	body := bodyOf(typ)
	for i := range typ.NumField() {
		m, ok := makeMember(typ.Field(i), i, made)
		if !ok {
			made[typ] = nil
			return nil
		}
		if m == nil {
			continue
		}
		for len(s.members) <= m.number {
			s.members = append(s.members, nil)
		}
		m.body = i == body
		s.members[m.number] = m
	}
	if len(s.members) == 0 {
		made[typ] = nil
		return nil
	}
	return s
}

// makeMember returns nil for a field that is not in protobuf, and false for one
// that this decoder does not know how to read.
func makeMember(f reflect.StructField, index int, made map[reflect.Type]*protoShape) (*protoMember, bool) {
	number, _ := wirefield.Protobuf(f)
	if number == 0 {
		// The kind, which the Go type says. Any other field may be filled by
		// code that was written for the type.
		return nil, f.Name == "TypeMeta"
	}
	if number < 0 || number > 1000 {
		return nil, false
	}
	m := &protoMember{number: number, index: index, offset: f.Offset, typ: f.Type, at: locatorOf(f.Type), salt: typeSalt(f.Type)}
	elem := f.Type
	switch custom := reflect.PointerTo(f.Type).Implements(unmarshalerType); {
	case custom, f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() == reflect.Uint8:
	case f.Type.Kind() == reflect.Pointer:
		m.form, elem = pointer, f.Type.Elem()
	case f.Type.Kind() == reflect.Slice:
		m.form, elem = repeated, f.Type.Elem()
	case f.Type.Kind() == reflect.Map:
		m.form, elem = mapped, f.Type.Elem()
		var ok bool
		if m.key, ok = makeValue(f.Type.Key(), made); !ok {
			return nil, false
		}
	}
	var ok bool
	m.elem, ok = makeValue(elem, made)
	return m, ok
}

func makeValue(typ reflect.Type, made map[reflect.Type]*protoShape) (protoValue, bool) {
	v := protoValue{wire: wireBytes, typ: typ, size: typ.Size(), at: locatorOf(typ)}
	if reflect.PointerTo(typ).Implements(unmarshalerType) {
		v.kind = valueGenerated
		if typ.Kind() == reflect.Struct {
			if v.shape = makeShape(typ, made); v.shape != nil {
				v.kind = valueMessage
			}
		}
		return v, true
	}
	switch typ.Kind() {
	case reflect.String:
		v.kind = valueString
	case reflect.Bool:
		v.kind, v.wire = valueBool, wireVarint
	case reflect.Int32:
		v.kind, v.wire = valueInt32, wireVarint
	case reflect.Int64:
		v.kind, v.wire = valueInt64, wireVarint
	case reflect.Slice:
		v.kind = valueBytes
		return v, typ.Elem().Kind() == reflect.Uint8
	default:
		return v, false
	}
	return v, true
}
