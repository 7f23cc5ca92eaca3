package structjson

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"
	"unsafe"

	"github.com/go-json-experiment/json/jsontext"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
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
	doc   string
	pos   int
	depth int
}

// Decode decodes a document into a zero object, and returns false, leaving
// the object zero, if it must be decoded otherwise.
func Decode(data []byte, into runtime.Object) bool {
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
	r := structDecoder{doc: string(data)}
	err := r.object(s, v.Addr().UnsafePointer())
	if err == nil {
		r.space()
		if r.pos == len(r.doc) {
			return true
		}
	}
	v.SetZero()
	return false
}

// space skips white space and returns what follows, 0 at the end.
func (r *structDecoder) space() byte {
	for r.pos < len(r.doc) {
		switch c := r.doc[r.pos]; c {
		case ' ', '\n', '\t', '\r':
			r.pos++
		default:
			return c
		}
	}
	return 0
}

// take consumes c if it comes next, after white space.
func (r *structDecoder) take(c byte) bool {
	if r.space() != c {
		return false
	}
	r.pos++
	return true
}

// literal consumes a word. That no letter follows shows when the next thing is
// expected.
func (r *structDecoder) literal(word string) error {
	if !strings.HasPrefix(r.doc[r.pos:], word) {
		return errUnusualJSON
	}
	r.pos += len(word)
	return nil
}

// token consumes a string and returns its value.
func (r *structDecoder) token() (string, error) {
	if !r.take('"') {
		return "", errUnusualJSON
	}
	start, ascii := r.pos, true
	for i := start; i < len(r.doc); i++ {
		switch c := r.doc[i]; {
		case c == '"':
			r.pos = i + 1
			value := r.doc[start:i]
			if !ascii && !utf8.ValidString(value) {
				return "", errUnusualJSON
			}
			return value, nil
		case c == '\\':
			return r.escaped(start - 1)
		case c < ' ':
			return "", errUnusualJSON
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	return "", errUnusualJSON
}

// escaped consumes the string that begins at the quote at start.
func (r *structDecoder) escaped(start int) (string, error) {
	for i := start + 1; i < len(r.doc); i++ {
		switch r.doc[i] {
		case '\\':
			i++
		case '"':
			r.pos = i + 1
			value, err := jsontext.AppendUnquote([]byte(nil), r.doc[start:r.pos])
			if err != nil {
				return "", errUnusualJSON
			}
			return string(value), nil
		}
	}
	return "", errUnusualJSON
}

// object reads an object into a struct.
func (r *structDecoder) object(s *structCodec, at unsafe.Pointer) error {
	if r.depth++; r.depth > maxReadDepth {
		return errUnusualJSON
	}
	if !r.take('{') {
		return errUnusualJSON
	}
	var seen uint64
	next := 0 // the member that is likely to come: they mostly do in order
	for first := true; !r.take('}'); first = false {
		if !first && !r.take(',') {
			return errUnusualJSON
		}
		name, err := r.token()
		if err != nil || !r.take(':') {
			return errUnusualJSON
		}
		i := s.find(name, next)
		if i < 0 || seen&(1<<i) != 0 {
			return errUnusualJSON
		}
		seen |= 1 << i
		next = i + 1
		m := &s.members[i]
		if err := r.value(&m.value, unsafe.Add(at, m.offset)); err != nil {
			return err
		}
	}
	r.depth--
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
func (r *structDecoder) value(p *valueCodec, at unsafe.Pointer) (err error) {
	c := r.space()
	if c == 'n' && p.kind != codecCustom && p.kind != codecQuantity {
		return r.literal("null") // it is zero, and stays so
	}
	switch p.kind {
	case codecString:
		*(*string)(at), err = r.token()
		return err
	case codecBool:
		if c == 't' {
			*(*bool)(at) = true
			return r.literal("true")
		}
		return r.literal("false")
	case codecInt32:
		n, err := r.int(math.MinInt32, math.MaxInt32)
		*(*int32)(at) = int32(n) //nolint:gosec // It is within the limits.
		return err
	case codecInt64:
		*(*int64)(at), err = r.int(math.MinInt64, math.MaxInt64)
		return err
	case codecStruct:
		return r.object(p.object, at)
	case codecPointer:
		made := reflect.New(p.typ.Elem()).UnsafePointer()
		*(*unsafe.Pointer)(at) = made
		return r.value(p.elem, made)
	case codecSlice:
		return r.array(p, reflect.NewAt(p.typ, at).Elem())
	case codecStringMap:
		return r.texts((*map[string]string)(at))
	case codecMap:
		return r.entries(p, reflect.NewAt(p.typ, at).Elem())
	case codecBytes:
		return r.bytes((*[]byte)(at))
	case codecTime:
		return r.time((*metav1.Time)(at))
	case codecQuantity:
		return r.custom((*quantity.Quantity)(at))
	default:
		return r.custom(reflect.NewAt(p.typ, at).Interface().(json.Unmarshaler))
	}
}

// array reads the elements of a list. It makes room for a few at first: the
// number is not known.
func (r *structDecoder) array(p *valueCodec, v reflect.Value) error {
	if !r.take('[') {
		return errUnusualJSON
	}
	if r.depth++; r.depth > maxReadDepth {
		return errUnusualJSON
	}
	n := 0
	for ; !r.take(']'); n++ {
		if n > 0 && !r.take(',') {
			return errUnusualJSON
		}
		if n == v.Cap() {
			v.Grow(max(1, n))
		}
		v.SetLen(n + 1)
		if err := r.value(p.elem, unsafe.Add(v.UnsafePointer(), uintptr(n)*p.elem.size)); err != nil {
			return err
		}
	}
	if n == 0 {
		v.Set(reflect.MakeSlice(p.typ, 0, 0))
	}
	r.depth--
	return nil
}

// entries reads a map.
func (r *structDecoder) entries(p *valueCodec, v reflect.Value) error {
	if !r.take('{') {
		return errUnusualJSON
	}
	if r.depth++; r.depth > maxReadDepth {
		return errUnusualJSON
	}
	made := reflect.MakeMap(p.typ)
	key, elem := reflect.New(p.typ.Key()).Elem(), reflect.New(p.typ.Elem()).Elem()
	n := 0
	for ; !r.take('}'); n++ {
		if n > 0 && !r.take(',') {
			return errUnusualJSON
		}
		name, err := r.token()
		if err != nil || !r.take(':') {
			return errUnusualJSON
		}
		key.SetString(name)
		elem.SetZero()
		if err := r.value(p.elem, elem.Addr().UnsafePointer()); err != nil {
			return err
		}
		made.SetMapIndex(key, elem)
	}
	if made.Len() != n {
		return errUnusualJSON // a name that stands twice
	}
	v.Set(made)
	r.depth--
	return nil
}

// texts reads a map of strings, as labels are.
func (r *structDecoder) texts(into *map[string]string) error {
	if !r.take('{') {
		return errUnusualJSON
	}
	made, n := map[string]string{}, 0
	for ; !r.take('}'); n++ {
		if n > 0 && !r.take(',') {
			return errUnusualJSON
		}
		name, err := r.token()
		if err != nil || !r.take(':') {
			return errUnusualJSON
		}
		var value string
		if r.space() == 'n' {
			err = r.literal("null")
		} else {
			value, err = r.token()
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

// maxDigits is how many digits fit into 63 bits, whatever they are.
const maxDigits = 18

// int reads an integer that is written as one.
func (r *structDecoder) int(least, most int64) (int64, error) {
	start := r.pos
	if start < len(r.doc) && r.doc[start] == '-' {
		r.pos++
	}
	digits := r.pos
	var n int64
	for ; r.pos < len(r.doc) && r.pos-digits <= maxDigits; r.pos++ {
		c := r.doc[r.pos]
		if c < '0' || c > '9' {
			break
		}
		n = 10*n + int64(c-'0')
	}
	length := r.pos - digits
	if length == 0 || length > maxDigits || length > 1 && r.doc[digits] == '0' {
		return 0, errUnusualJSON
	}
	if digits > start {
		n = -n
	}
	if n < least || n > most {
		return 0, errUnusualJSON
	}
	return n, nil // a fraction or an exponent is not what may follow
}

// time does what metav1.Time's own UnmarshalJSON does.
func (r *structDecoder) time(into *metav1.Time) error {
	text, err := r.token()
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

func (r *structDecoder) bytes(into *[]byte) error {
	text, err := r.token()
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
func (r *structDecoder) custom(into json.Unmarshaler) error {
	start := r.pos
	end, ok := extent(r.doc, start)
	if !ok {
		return errUnusualJSON
	}
	raw := jsontext.Value(r.doc[start:end])
	if !raw.IsValid() {
		return errUnusualJSON
	}
	r.pos = end
	if into.UnmarshalJSON(raw) != nil {
		return errUnusualJSON
	}
	return nil
}

// extent returns where the value that begins at start ends, if it is valid.
func extent(doc string, start int) (end int, ok bool) {
	depth := 0
	for i := start; i < len(doc); i++ {
		switch doc[i] {
		case '"':
			for i++; i < len(doc) && doc[i] != '"'; i++ {
				if doc[i] == '\\' {
					i++
				}
			}
			if depth == 0 {
				return i + 1, i < len(doc)
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i, i > start
			}
			if depth--; depth == 0 {
				return i + 1, true
			}
		case ',', ' ', '\n', '\t', '\r':
			if depth == 0 {
				return i, i > start
			}
		}
	}
	return len(doc), depth == 0 && len(doc) > start
}
