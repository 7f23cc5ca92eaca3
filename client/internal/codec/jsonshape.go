package codec

import (
	"encoding/json"
	"reflect"
	"slices"

	jsonv2 "github.com/go-json-experiment/json"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/internal/wirefield"
)

// jsonShape is how a struct of the API is laid out in JSON. It is nil for types
// with anything that jsonDecoder does not know.
type jsonShape struct {
	members map[string]*jsonValue
	site    int // of what comes first in the object
}

// jsonValue is how a value is read, and where it belongs.
type jsonValue struct {
	index []int  // of the field; empty for elements
	site  int    // where in a document it stands, see siteTable
	label []byte // of a member: its name as it is written, with the colon
	kind  jsonKind
	typ   reflect.Type
	salt  uint64     // of typ, for hashes
	shape *jsonShape // of an object
	elem  *jsonValue // of a pointer, an array or a map
	body  bool       // see bodyOf
}

type jsonKind uint8

const (
	jsonString jsonKind = iota
	jsonBytes
	jsonBool
	jsonInt
	jsonObject
	jsonPointer
	jsonArray
	jsonMap
	jsonTime
	jsonCustom // by the type's own UnmarshalJSON
)

var jsonShapes shapeTable[jsonShape]

// jsonShapeOf returns the shape of a struct's type; nil if it has none.
func jsonShapeOf(typ reflect.Type) *jsonShape { return jsonShapes.of(typ, makeJSONShape) }

func makeJSONShape(typ reflect.Type, made map[reflect.Type]*jsonShape) *jsonShape {
	if typ.Kind() != reflect.Struct {
		return nil
	}
	s, ok := jsonShapes.begin(typ, made)
	if ok || hasOwnJSON(typ) { // a type that decodes itself has no members: object leaves it to jsonv2
		return s
	}
	s.members, s.site = map[string]*jsonValue{}, newSite()
	if !s.add(typ, nil, made) {
		// Types can contain each other, so another shape may point to s by
		// now: s must not be used from there either.
		s.members = nil
		made[typ] = nil
		return nil
	}
	return s
}

// add adds the fields of typ, which lies at index, and those of structs embedded
// in it. It returns false if it meets a field that jsonDecoder cannot read.
func (s *jsonShape) add(typ reflect.Type, index []int, made map[reflect.Type]*jsonShape) bool {
	body := bodyOf(typ)
	for _, field := range wirefield.Of(typ) {
		at := slices.Concat(index, field.Go.Index)
		if field.Embedded && field.Go.Type.Kind() == reflect.Struct && !hasOwnJSON(field.Go.Type) {
			if !s.add(field.Go.Type, at, made) {
				return false
			}
			continue
		}
		// An option beside omitempty and omitzero changes how the value is read.
		if !field.Go.IsExported() || !field.Tagged || s.members[field.Name] != nil || len(field.Others) > 0 {
			return false
		}
		v, ok := makeJSONValue(field.Go.Type, made)
		if !ok {
			return false
		}
		v.index, v.body = at, len(index) == 0 && field.Go.Index[0] == body
		v.label = []byte(`"` + field.Name + `":`)
		s.members[field.Name] = v
	}
	return true
}

var (
	jsonUnmarshaler   = reflect.TypeFor[json.Unmarshaler]()
	jsonUnmarshalerV2 = reflect.TypeFor[jsonv2.UnmarshalerFrom]()
	textUnmarshaler   = reflect.TypeFor[interface{ UnmarshalText([]byte) error }]()
	timeType          = reflect.TypeFor[metav1.Time]()
)

func hasOwnJSON(typ reflect.Type) bool {
	p := reflect.PointerTo(typ)
	return p.Implements(jsonUnmarshaler) || p.Implements(jsonUnmarshalerV2) || p.Implements(textUnmarshaler)
}

func makeJSONValue(typ reflect.Type, made map[reflect.Type]*jsonShape) (*jsonValue, bool) {
	v := &jsonValue{typ: typ, salt: typeSalt(typ), site: newSite()}
	if typ == timeType {
		v.kind = jsonTime
		return v, true
	}
	if hasOwnJSON(typ) {
		v.kind = jsonCustom
		return v, reflect.PointerTo(typ).Implements(jsonUnmarshaler)
	}
	switch typ.Kind() {
	case reflect.String:
		v.kind = jsonString
	case reflect.Bool:
		v.kind = jsonBool
	case reflect.Int32, reflect.Int64:
		v.kind = jsonInt
	case reflect.Struct:
		v.kind, v.shape = jsonObject, makeJSONShape(typ, made)
		return v, v.shape != nil
	case reflect.Slice:
		if v.kind = jsonArray; typ.Elem().Kind() == reflect.Uint8 {
			v.kind = jsonBytes
			return v, true
		}
	case reflect.Pointer:
		v.kind = jsonPointer
	case reflect.Map:
		if v.kind = jsonMap; typ.Key().Kind() != reflect.String || hasOwnJSON(typ.Key()) {
			return v, false
		}
	default:
		return v, false
	}
	ok := true
	if v.kind == jsonArray || v.kind == jsonPointer || v.kind == jsonMap {
		v.elem, ok = makeJSONValue(typ.Elem(), made)
	}
	return v, ok
}
