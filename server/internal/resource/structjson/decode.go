package structjson

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"time"
	"unsafe"

	quantity "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/levelwire/levelwire/internal/jsonscan"
)

// errUnusualJSON ends decoding by a structCodec: the document is not valid, does not fit the
// type, names something unknown or something twice, or is written in a way that
// is seldom. The general decoders judge it then.
var errUnusualJSON = errors.New("unusual JSON")

// maxReadDepth bounds recursion; what is deeper is left to the general decoders.
const maxReadDepth = 64

// structDecoder decodes one document by the structCodec of a type, in one pass, and checks
// on the way that it is valid. It either gives what encoding/json would give, or
// gives up; it does not say what is wrong. It takes less than half of the
// time of decoders that must, and as all strings are parts of one, a tenth of
// the allocations.
type structDecoder struct {
	scan  jsonscan.Scanner // over a text that never changes: the object's strings are parts of it
	depth int
}

// Decode decodes a document into a zero object, and returns false, leaving
// the object zero, if it must be decoded otherwise. The object shares no memory with data.
func Decode(data []byte, into runtime.Object) bool { return decode(data, into, bytes.Clone) }

// DecodeInPlace is Decode without a copy of data, which must never change from then on:
// the object's strings are parts of it.
func DecodeInPlace(data []byte, into runtime.Object) bool {
	return decode(data, into, func(data []byte) []byte { return data })
}

func decode(data []byte, into runtime.Object, own func([]byte) []byte) bool {
	if _, custom := into.(*unstructured.Unstructured); custom {
		return false
	}
	v := reflect.ValueOf(into)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return false
	}
	v = v.Elem()
	s := structCodecOf(v.Type())
	if s == nil || !v.IsZero() {
		return false
	}
	d := structDecoder{scan: jsonscan.Scanner{Data: own(data)}}
	if d.object(s, v.Addr().UnsafePointer()) == nil && d.scan.AtEnd() {
		return true
	}
	v.SetZero()
	return false
}

// string consumes a string and returns its value, which shares the document's memory.
func (d *structDecoder) string() (string, error) {
	quoted, ok := d.scan.StrictString()
	if !ok {
		return "", errUnusualJSON
	}
	return quoted.Value()
}

// usual is the error of something that must be as ok says.
func usual(ok bool) error {
	if !ok {
		return errUnusualJSON
	}
	return nil
}

// object reads an object into a struct.
func (d *structDecoder) object(s *structCodec, at unsafe.Pointer) error {
	if d.depth++; d.depth > maxReadDepth {
		return errUnusualJSON
	}
	if !d.scan.Take('{') {
		return errUnusualJSON
	}
	var seen uint64
	next := 0 // the member that is likely to come: they mostly do in order
	for first := true; !d.scan.Take('}'); first = false {
		if !first && !d.scan.Take(',') {
			return errUnusualJSON
		}
		name, err := d.string()
		if err != nil || !d.scan.Take(':') {
			return errUnusualJSON
		}
		i := s.find(name, next)
		if i < 0 || seen&(1<<i) != 0 {
			return errUnusualJSON
		}
		seen |= 1 << i
		next = i + 1
		m := &s.members[i]
		if err := d.value(&m.value, unsafe.Add(at, m.offset)); err != nil {
			return err
		}
	}
	d.depth--
	return nil
}

// find returns the member of a name, -1 if there is none, and looks at those
// from next on first.
func (s *structCodec) find(name string, next int) int {
	const near = 4
	for i := next; i < len(s.members) && i < next+near; i++ {
		if s.members[i].name == name {
			return i
		}
	}
	if i, ok := s.byName[name]; ok {
		return i
	}
	return -1
}

// value reads one value to where at points, which is zero.
func (d *structDecoder) value(p *valueCodec, at unsafe.Pointer) (err error) {
	c := d.scan.Peek()
	if c == 'n' && p.kind != codecCustom && p.kind != codecQuantity {
		return usual(d.scan.Literal("null")) // it is zero, and stays so
	}
	switch p.kind {
	case codecString:
		*(*string)(at), err = d.string()
		return err
	case codecBool:
		if c == 't' {
			*(*bool)(at) = true
			return usual(d.scan.Literal("true"))
		}
		return usual(d.scan.Literal("false"))
	case codecInt32:
		n, ok := d.scan.Int(32)
		*(*int32)(at) = int32(n) //nolint:gosec // It has 32 bits.
		return usual(ok)
	case codecInt64:
		n, ok := d.scan.Int(64)
		*(*int64)(at) = n
		return usual(ok)
	case codecStruct:
		return d.object(p.object, at)
	case codecPointer:
		made := reflect.New(p.typ.Elem()).UnsafePointer()
		*(*unsafe.Pointer)(at) = made
		return d.value(p.elem, made)
	case codecSlice:
		return d.array(p, reflect.NewAt(p.typ, at).Elem())
	case codecStringMap:
		return d.texts((*map[string]string)(at))
	case codecMap:
		return d.entries(p, reflect.NewAt(p.typ, at).Elem())
	case codecBytes:
		return d.bytes((*[]byte)(at))
	case codecTime:
		return d.time((*metav1.Time)(at))
	case codecQuantity:
		return d.custom((*quantity.Quantity)(at))
	default:
		return d.custom(reflect.NewAt(p.typ, at).Interface().(json.Unmarshaler))
	}
}

// fewElements is for how many bytes of elements there is room at first.
const fewElements = 256

// array reads the elements of a list. It makes room for a few at first: the
// number is not known.
func (d *structDecoder) array(p *valueCodec, v reflect.Value) error {
	if !d.scan.Take('[') {
		return errUnusualJSON
	}
	if d.depth++; d.depth > maxReadDepth {
		return errUnusualJSON
	}
	n, room := 0, fewElements/int(max(1, p.elem.size)) //nolint:gosec // A size is small.
	for ; !d.scan.Take(']'); n++ {
		if n > 0 && !d.scan.Take(',') {
			return errUnusualJSON
		}
		if n == v.Cap() {
			v.Grow(max(1, n, room))
			room = 0
		}
		v.SetLen(n + 1)
		if err := d.value(p.elem, unsafe.Add(v.UnsafePointer(), uintptr(n)*p.elem.size)); err != nil {
			return err
		}
	}
	if n == 0 {
		v.Set(reflect.MakeSlice(p.typ, 0, 0))
	}
	d.depth--
	return nil
}

// entries reads a map.
func (d *structDecoder) entries(p *valueCodec, v reflect.Value) error {
	if !d.scan.Take('{') {
		return errUnusualJSON
	}
	if d.depth++; d.depth > maxReadDepth {
		return errUnusualJSON
	}
	made := reflect.MakeMap(p.typ)
	key, elem := reflect.New(p.typ.Key()).Elem(), reflect.New(p.typ.Elem()).Elem()
	n := 0
	for ; !d.scan.Take('}'); n++ {
		if n > 0 && !d.scan.Take(',') {
			return errUnusualJSON
		}
		name, err := d.string()
		if err != nil || !d.scan.Take(':') {
			return errUnusualJSON
		}
		key.SetString(name)
		elem.SetZero()
		if err := d.value(p.elem, elem.Addr().UnsafePointer()); err != nil {
			return err
		}
		made.SetMapIndex(key, elem)
	}
	if made.Len() != n {
		return errUnusualJSON // a name that stands twice
	}
	v.Set(made)
	d.depth--
	return nil
}

// texts reads a map of strings, as labels are.
func (d *structDecoder) texts(into *map[string]string) error {
	if !d.scan.Take('{') {
		return errUnusualJSON
	}
	made, n := map[string]string{}, 0
	for ; !d.scan.Take('}'); n++ {
		if n > 0 && !d.scan.Take(',') {
			return errUnusualJSON
		}
		name, err := d.string()
		if err != nil || !d.scan.Take(':') {
			return errUnusualJSON
		}
		var value string
		if d.scan.Peek() == 'n' {
			err = usual(d.scan.Literal("null"))
		} else {
			value, err = d.string()
		}
		if err != nil {
			return err
		}
		made[name] = value
	}
	if len(made) != n {
		return errUnusualJSON
	}
	*into = made
	return nil
}

// time does what metav1.Time's own UnmarshalJSON does.
func (d *structDecoder) time(into *metav1.Time) error {
	text, err := d.string()
	if err != nil {
		return err
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return errUnusualJSON
	}
	into.Time = t.Local()
	return nil
}

func (d *structDecoder) bytes(into *[]byte) error {
	text, err := d.string()
	if err != nil || strings.ContainsAny(text, "\r\n") {
		return errUnusualJSON
	}
	decoded, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return errUnusualJSON
	}
	*into = decoded
	return nil
}

// custom lets the type itself read a value.
func (d *structDecoder) custom(into json.Unmarshaler) error {
	raw, valid := d.scan.StrictSkip()
	if !valid || into.UnmarshalJSON(raw) != nil {
		return errUnusualJSON
	}
	return nil
}
