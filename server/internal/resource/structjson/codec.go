// Package structjson decodes and encodes the JSON of objects with a Go type, as
// encoding/json does and in a third to a half of its time: along a structCodec,
// which is read off the type once. Decode reads ordinary documents only, Append
// writes an object in the order of members in which it is stored.
package structjson

import (
	"encoding/json"
	"reflect"
	"strings"
	"sync"
	"unsafe"

	jsonv2 "github.com/go-json-experiment/json"
	jsonv1 "github.com/go-json-experiment/json/v1"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/internal/wirefield"
)

// structCodec decodes and encodes the JSON of one struct type: its members, in the
// order in which they are written. Decoder and encoder access fields by their
// offsets, because reflect.Value spends half of the time on checks. That is safe as
// long as kind, type and offset of a member are what structCodecOf read off the type.
//
// It is worth its unsafe code for creates, which decode a body and encode an
// object: it saves 15 to 19 % of the processor time of creating an ordinary pod or
// deployment through the HTTP handler over a store in memory, compared with the best
// of the libraries (go-json-experiment/json to read, encoding/json or that to write).
// docs/contributors/write-cost.md has the numbers and says how to repeat them.
type structCodec struct {
	members []memberCodec
	byName  map[string]int
}

// memberCodec decodes and encodes one member of an object.
type memberCodec struct {
	value     valueCodec
	name      string
	quoted    string  // `"name":`
	offset    uintptr // of the field
	omitEmpty bool
	omitZero  func(unsafe.Pointer) bool // nil: written even if it is zero
}

// valueCodec decodes and encodes one value.
type valueCodec struct {
	kind   codecKind
	typ    reflect.Type
	size   uintptr      // of typ
	object *structCodec // of a struct
	elem   *valueCodec  // of a pointer, an array or a map
}

type codecKind uint8

const (
	codecString codecKind = iota
	codecBytes
	codecBool
	codecInt32
	codecInt64
	codecStruct
	codecPointer
	codecSlice
	codecMap
	codecStringMap // map[string]string
	codecTime
	codecQuantity
	codecCustom // by the type's own MarshalJSON and UnmarshalJSON
)

// maxMembers is how many members of an object the decoder can keep account of.
const maxMembers = 64

var (
	structCodecs       sync.Map // reflect.Type -> *structCodec, nil for types that have none
	makingStructCodecs sync.Mutex
)

// structCodecOf returns the codec of a struct type, which is made once, or nil if
// the type contains anything that the codec does not know.
func structCodecOf(typ reflect.Type) *structCodec {
	if s, ok := structCodecs.Load(typ); ok {
		return s.(*structCodec)
	}
	makingStructCodecs.Lock()
	defer makingStructCodecs.Unlock()
	made := map[reflect.Type]*structCodec{}
	s := makeStructCodec(typ, made)
	if s == nil {
		// The others may refer to one that could not be made.
		structCodecs.Store(typ, s)
		return nil
	}
	for t, s := range made {
		structCodecs.Store(t, s)
	}
	return s
}

func makeStructCodec(typ reflect.Type, made map[reflect.Type]*structCodec) *structCodec {
	if s, ok := structCodecs.Load(typ); ok {
		return s.(*structCodec)
	}
	if s, ok := made[typ]; ok {
		return s
	}
	s := &structCodec{byName: map[string]int{}}
	made[typ] = s
	if !s.add(typ, made) || len(s.members) > maxMembers {
		return nil
	}
	return s
}

// add adds the members of typ. It returns false if there is one that the codec does
// not know.
func (s *structCodec) add(typ reflect.Type, made map[reflect.Type]*structCodec) bool {
	for _, field := range wirefield.Members(typ) {
		_, twice := s.byName[field.Name]
		if field.OmitZero && field.Go.Type.Kind() == reflect.Pointer {
			return false // omitzero asks the pointer or the value, which is not worth telling apart
		}
		if !field.Tagged || twice || len(field.Others) > 0 || strings.ContainsAny(field.Name, `"\<>&`) {
			return false
		}
		m := memberCodec{name: field.Name, quoted: `"` + field.Name + `":`, offset: field.Go.Offset, omitEmpty: field.OmitEmpty}
		if !m.value.of(field.Go.Type, made) {
			return false
		}
		if field.OmitZero {
			m.omitZero = zeroTest(m.value.typ)
		}
		s.byName[field.Name] = len(s.members)
		s.members = append(s.members, m)
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

func hasOwnJSON(typ reflect.Type) bool {
	p := reflect.PointerTo(typ)
	return wirefield.HasOwnJSON(typ) || p.Implements(reflect.TypeFor[jsonv2.MarshalerTo]()) || p.Implements(reflect.TypeFor[jsonv2.UnmarshalerFrom]())
}

// of reads off a type how its values are decoded and encoded.
func (v *valueCodec) of(typ reflect.Type, made map[reflect.Type]*structCodec) bool {
	v.typ, v.size = typ, typ.Size()
	switch typ {
	case reflect.TypeFor[metav1.Time]():
		v.kind = codecTime
		return true
	case reflect.TypeFor[quantity.Quantity]():
		v.kind = codecQuantity
		return true
	case reflect.TypeFor[map[string]string]():
		v.kind = codecStringMap
		return true
	}
	if typ.Kind() != reflect.Pointer && hasOwnJSON(typ) {
		v.kind = codecCustom
		return typ.Implements(reflect.TypeFor[json.Marshaler]()) && reflect.PointerTo(typ).Implements(reflect.TypeFor[json.Unmarshaler]())
	}
	switch typ.Kind() {
	case reflect.String:
		v.kind = codecString
	case reflect.Bool:
		v.kind = codecBool
	case reflect.Int32:
		v.kind = codecInt32
	case reflect.Int64:
		v.kind = codecInt64
	case reflect.Struct:
		v.kind, v.object = codecStruct, makeStructCodec(typ, made)
		return v.object != nil
	case reflect.Slice:
		if v.kind = codecSlice; typ.Elem().Kind() == reflect.Uint8 {
			v.kind = codecBytes
			return typ.Elem() == reflect.TypeFor[byte]()
		}
	case reflect.Pointer:
		v.kind = codecPointer
	case reflect.Map:
		if v.kind = codecMap; typ.Key().Kind() != reflect.String || hasOwnJSON(typ.Key()) {
			return false
		}
	default:
		return false
	}
	if v.kind != codecSlice && v.kind != codecPointer && v.kind != codecMap {
		return true
	}
	v.elem = &valueCodec{}
	return v.elem.of(typ.Elem(), made)
}

// Options are how go-json-experiment/json decodes stored objects that Decode does
// not: as encoding/json would, but member names are matched exactly. It takes a
// third to a half of the time of the decoder for bodies, which also has to find
// what is wrong with them.
var Options = jsonv2.JoinOptions(jsonv1.DefaultOptionsV1(), jsonv2.MatchCaseInsensitiveNames(false))
