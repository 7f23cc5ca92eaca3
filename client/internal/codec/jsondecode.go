package codec

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"reflect"
	"time"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// errUnusualJSON ends reading by shape: the document does not fit the type, or
// fits it in a way that no Kubernetes server writes. jsonv2 then decides.
var errUnusualJSON = errors.New("json: unusual document")

// jsonDecoder reads documents that are valid JSON by the shape of a type. It
// gives what jsonv2 gives, and can share what it has seen before: a value that
// is known is neither parsed nor stored again.
type jsonDecoder struct {
	share *sharer
	jsonIndex
	doc     []byte
	pos     int
	node    int // the node that begins next
	scratch []byte
}

// unmarshal decodes a document into a new object. doc is not kept.
func (d *jsonDecoder) unmarshal(doc []byte, into any) error {
	v := reflect.ValueOf(into).Elem()
	shape := jsonShapeOf(v.Type())
	if shape == nil || len(doc) == 0 || doc[0] != '{' {
		return jsonv2.Unmarshal(doc, into, jsonOptions)
	}
	d.index(doc)
	d.doc, d.pos, d.node = doc, 0, 0
	d.share.lastStates.begin(into)
	err := d.object(shape, v)
	d.doc = nil
	if err == nil {
		d.share.lastStates.end()
		return nil
	}
	v.SetZero()
	return jsonv2.Unmarshal(doc, into, jsonOptions)
}

// peek skips white space and returns what follows.
func (d *jsonDecoder) peek() byte {
	for d.doc[d.pos] <= ' ' {
		d.pos++
	}
	return d.doc[d.pos]
}

// begin enters the object or array that begins here.
func (d *jsonDecoder) begin() jsonNode {
	d.pos++
	d.node++
	return d.nodes[d.node-1]
}

// extent returns the value that begins here, without moving.
func (d *jsonDecoder) extent() []byte {
	switch d.doc[d.pos] {
	case '{', '[':
		return d.doc[d.pos:d.nodes[d.node].end]
	case '"':
		return d.doc[d.pos:stringEnd(d.doc, d.pos)]
	}
	rest := d.doc[d.pos:]
	end := 0
	for rest[end] > ' ' && rest[end] != ',' && rest[end] != '}' && rest[end] != ']' {
		end++
	}
	return rest[:end]
}

// skip moves behind the value that begins here.
func (d *jsonDecoder) skip() {
	switch d.doc[d.pos] {
	case '{', '[':
		node := d.nodes[d.node]
		d.pos, d.node = node.end, node.next
	default:
		d.pos += len(d.extent())
	}
}

// token returns the string that begins here, without quotes, and moves behind
// it. The bytes may be used until the next call.
func (d *jsonDecoder) token() []byte {
	raw := d.doc[d.pos:stringEnd(d.doc, d.pos)]
	d.pos += len(raw)
	inner := raw[1 : len(raw)-1]
	if bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) {
		return inner
	}
	// The error is about invalid UTF-8, which has been replaced.
	d.scratch, _ = jsontext.AppendUnquote(d.scratch[:0], raw)
	return d.scratch
}

// object reads an object into a struct.
func (d *jsonDecoder) object(shape *jsonShape, v reflect.Value) error {
	if shape.members == nil || d.peek() != '{' {
		return errUnusualJSON
	}
	for range d.begin().count {
		d.peek()
		member := shape.members[string(d.token())]
		d.colon()
		if member == nil || member.body && d.share.lastStates.unchanged(v, member.index[0], d.extent()) {
			d.skip()
		} else if err := d.value(member, field(v, member.index)); err != nil {
			return err
		}
		d.separator()
	}
	d.end()
	return nil
}

// field is v.FieldByIndex without what that does for pointers.
func field(v reflect.Value, index []int) reflect.Value {
	for _, i := range index {
		v = v.Field(i)
	}
	return v
}

// colon, separator and end move over what is known to be there.
func (d *jsonDecoder) colon() {
	d.peek()
	d.pos++
	d.peek()
}

func (d *jsonDecoder) separator() {
	if d.peek() == ',' {
		d.pos++
	}
}

func (d *jsonDecoder) end() {
	d.peek()
	d.pos++
}

// value reads one value. v is zero, unless a name stood twice.
func (d *jsonDecoder) value(p *jsonValue, v reflect.Value) error {
	switch c := d.peek(); {
	case c == 'n':
		v.SetZero()
		d.skip()
		return nil
	case p.kind == jsonString && c == '"':
		v.SetString(d.share.strings.string(d.token()))
		return nil
	case p.kind == jsonBool && (c == 't' || c == 'f'):
		v.SetBool(c == 't')
		d.skip()
		return nil
	case p.kind == jsonInt:
		return d.int(v)
	case p.kind == jsonObject:
		return d.object(p.shape, v)
	case p.kind == jsonTime && c == '"':
		return d.time(v)
	case p.kind == jsonBytes && c == '"':
		return d.bytes(v)
	case p.kind == jsonCustom:
		raw := d.extent()
		d.skip()
		return v.Addr().Interface().(json.Unmarshaler).UnmarshalJSON(raw)
	case p.kind == jsonPointer, p.kind == jsonArray && c == '[', p.kind == jsonMap && c == '{':
		return d.part(p, v)
	}
	return errUnusualJSON
}

// part reads what can be shared: what a pointer points to, an array, a map.
func (d *jsonDecoder) part(p *jsonValue, v reflect.Value) error {
	if !v.IsNil() {
		return errUnusualJSON // a name that stood twice
	}
	raw := d.extent()
	shared, found, at := d.share.parts.get(p.typ, p.salt, raw)
	if found {
		v.Set(shared)
		d.skip()
		return nil
	}
	var made reflect.Value
	var err error
	switch p.kind {
	case jsonPointer:
		made = reflect.New(p.typ.Elem())
		err = d.value(p.elem, made.Elem())
	case jsonArray:
		made, err = d.array(p)
	default:
		made, err = d.entries(p)
	}
	if err != nil {
		return err
	}
	v.Set(made)
	at.put(p.typ, raw, made)
	return nil
}

func (d *jsonDecoder) array(p *jsonValue) (reflect.Value, error) {
	n := d.begin().count
	made := reflect.MakeSlice(p.typ, n, n)
	for i := range n {
		if err := d.value(p.elem, made.Index(i)); err != nil {
			return made, err
		}
		d.separator()
	}
	d.end()
	return made, nil
}

func (d *jsonDecoder) entries(p *jsonValue) (reflect.Value, error) {
	n := d.begin().count
	made := reflect.MakeMapWithSize(p.typ, n)
	key, value := reflect.New(p.typ.Key()).Elem(), reflect.New(p.typ.Elem()).Elem()
	for range n {
		d.peek()
		key.SetString(d.share.strings.string(d.token()))
		d.colon()
		value.SetZero()
		if err := d.value(p.elem, value); err != nil {
			return made, err
		}
		made.SetMapIndex(key, value)
		d.separator()
	}
	d.end()
	if made.Len() != n {
		return made, errUnusualJSON // a name that stood twice
	}
	return made, nil
}

// maxDigits is how many digits fit into 63 bits, whatever they are.
const maxDigits = 18

func (d *jsonDecoder) int(v reflect.Value) error {
	raw := d.extent()
	digits := bytes.TrimPrefix(raw, []byte("-"))
	if len(digits) == 0 || len(digits) > maxDigits {
		return errUnusualJSON
	}
	var n int64
	for _, c := range digits {
		if c < '0' || c > '9' {
			return errUnusualJSON
		}
		n = 10*n + int64(c-'0')
	}
	if len(digits) < len(raw) {
		n = -n
	}
	if v.OverflowInt(n) {
		return errUnusualJSON
	}
	v.SetInt(n)
	d.pos += len(raw)
	return nil
}

// time does what metav1.Time's own UnmarshalJSON does, without decoding a
// string by way of encoding/json: it was a tenth of the time of a list of pods.
func (d *jsonDecoder) time(v reflect.Value) error {
	t, err := time.Parse(time.RFC3339, string(d.token()))
	if err != nil {
		return errUnusualJSON
	}
	v.Addr().Interface().(*metav1.Time).Time = t.Local()
	return nil
}

func (d *jsonDecoder) bytes(v reflect.Value) error {
	s := d.token()
	decoded := make([]byte, base64.StdEncoding.DecodedLen(len(s)))
	n, err := base64.StdEncoding.Decode(decoded, s)
	if err != nil {
		return errUnusualJSON
	}
	v.SetBytes(decoded[:n])
	return nil
}
