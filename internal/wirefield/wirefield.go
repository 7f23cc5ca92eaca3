// Package wirefield reads the tags of a struct: which fields are members of its
// JSON object and of its protobuf message, under which names and numbers, and
// when they are left out. The rules are those of encoding/json and of gogo's
// generated protobuf code. Every part that derives something from a Go type (a
// codec, a schema, the ownership of fields) reads the type here.
package wirefield

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Field is a field of a struct that is on the wire.
type Field struct {
	// Go is the field as reflection describes it. Its Index and Offset are
	// relative to the struct that was read.
	Go reflect.StructField
	// Name is the name of the JSON member. A field without a name in its tag
	// has that of the Go field, and Tagged is false.
	Name   string
	Tagged bool
	// Embedded is true for an embedded struct, or pointer to one, without a name: its members
	// are members of the object that it is embedded in.
	Embedded  bool
	OmitEmpty bool
	OmitZero  bool
	// Others are options of the JSON tag beside omitempty, omitzero and
	// inline.
	Others []string
	// Number is the number of the protobuf field; 0: it has none. Packed is true
	// for a list of numbers in the packed encoding.
	Number int
	Packed bool
}

// Of returns the fields of a struct type that are on the wire, in the order in
// which they are declared. Embedded structs are fields of their own; see
// Members.
func Of(t reflect.Type) []Field {
	fields := make([]Field, 0, t.NumField())
	for i := range t.NumField() {
		field := t.Field(i)
		tag := field.Tag.Get("json")
		if tag == "-" || !field.IsExported() && !field.Anonymous {
			continue
		}
		fields = append(fields, read(field, tag))
	}
	return fields
}

// Members returns the fields of a struct type that are members of its JSON
// object. The fields of an embedded struct take its place. An embedded pointer,
// and an embedded struct that has its own JSON, are returned as they are.
func Members(t reflect.Type) []Field {
	var members []Field
	for _, f := range Of(t) {
		if !f.Embedded || f.Go.Type.Kind() == reflect.Pointer || HasOwnJSON(f.Go.Type) {
			members = append(members, f)
			continue
		}
		for _, inner := range Members(f.Go.Type) {
			inner.Go.Index = slices.Concat(f.Go.Index, inner.Go.Index)
			inner.Go.Offset += f.Go.Offset
			members = append(members, inner)
		}
	}
	return members
}

// methods are the ways in which a type can have its own JSON.
var methods = []reflect.Type{
	reflect.TypeFor[json.Marshaler](), reflect.TypeFor[json.Unmarshaler](),
	reflect.TypeFor[encoding.TextMarshaler](), reflect.TypeFor[encoding.TextUnmarshaler](),
}

// HasOwnJSON reports whether methods of a type decide what its JSON is.
func HasOwnJSON(t reflect.Type) bool {
	for _, i := range methods {
		if reflect.PointerTo(t).Implements(i) {
			return true
		}
	}
	return false
}

func read(field reflect.StructField, tag string) Field {
	name, options, _ := strings.Cut(tag, ",")
	f := Field{Go: field, Name: name, Tagged: name != ""}
	if name == "" {
		f.Name = field.Name
		f.Embedded = field.Anonymous && isStruct(field.Type)
	}
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "", "inline":
		case "omitempty":
			f.OmitEmpty = true
		case "omitzero":
			f.OmitZero = true
		default:
			f.Others = append(f.Others, option)
		}
	}
	f.Number, f.Packed = Protobuf(field)
	return f
}

// Protobuf returns the number that a field's tag gives it in the protobuf
// message of its struct, and whether it is a packed list of numbers. The number
// is 0 for a field that is not in the message. A field can be in the message and
// not in the JSON object: the raw bytes of a FieldsV1 are.
func Protobuf(field reflect.StructField) (number int, packed bool) {
	// "bytes,3,rep,name=items": the wire type, the number, and more.
	parts := strings.Split(field.Tag.Get("protobuf"), ",")
	if len(parts) < 2 {
		return 0, false
	}
	number, err := strconv.Atoi(parts[1])
	if err != nil {
		return 0, false
	}
	return number, slices.Contains(parts, "packed")
}

func isStruct(t reflect.Type) bool {
	return t.Kind() == reflect.Struct || t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct
}
