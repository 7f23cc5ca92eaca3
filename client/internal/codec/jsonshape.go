package codec

import (
	"encoding/json"
	"reflect"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// jsonShape is how a struct of the API is laid out in JSON. It is nil for types
// with anything that jsonDecoder does not know.
type jsonShape struct{ members map[string]*jsonValue }

// jsonValue is how a value is read, and where it belongs.
type jsonValue struct {
	index []int // of the field; empty for elements
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
	if ok {
		return s
	}
	s.members = map[string]*jsonValue{}
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
	for i := range typ.NumField() {
		field := typ.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		at := append(append([]int(nil), index...), i)
		switch {
		case name == "-" && options == "":
			continue
		case field.Anonymous && name == "" && field.Type.Kind() == reflect.Struct && !hasOwnJSON(field.Type):
			if !s.add(field.Type, at, made) {
				return false
			}
			continue
		case !field.IsExported() || name == "" || s.members[name] != nil || !plain(options):
			return false
		}
		v, ok := makeJSONValue(field.Type, made)
		if !ok {
			return false
		}
		v.index, v.body = at, len(index) == 0 && i == body
		s.members[name] = v
	}
	return true
}

// plain returns whether the options of a tag leave the way to read a value as it
// is.
func plain(options string) bool {
	for option := range strings.SplitSeq(options, ",") {
		if option != "" && option != "omitempty" && option != "omitzero" {
			return false
		}
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
	v := &jsonValue{typ: typ, salt: typeSalt(typ)}
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
