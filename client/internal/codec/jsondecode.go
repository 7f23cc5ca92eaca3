package codec

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/levelwire/levelwire/internal/jsonscan"
)

// errUnusualJSON ends reading by shape: the document is not valid or ends too
// early, does not fit the type, or fits it in a way that no Kubernetes server
// writes. jsonv2 then decides.
var errUnusualJSON = errors.New("json: unusual document")

// maxNesting bounds the stack. Deeper documents are left to jsonv2, which has a
// bound of its own.
const maxNesting = 500

// jsonDecoder reads documents by the shape of a type, in one pass that also checks
// that they are valid JSON. It gives what jsonv2 gives, and can share what it has
// seen before: a value that is known is neither parsed nor stored again.
type jsonDecoder struct {
	share *sharer
	sites siteTable

	scan    jsonscan.Scanner
	valid   bool // the document is known to be valid
	nesting int
	scratch []byte
}

// unmarshal decodes a document, which is valid JSON, into a new object. doc is not
// kept.
func (d *jsonDecoder) unmarshal(doc []byte, into any) error {
	d.valid = true
	n, err := d.decode(doc, into)
	d.valid = false
	if err == nil && n == len(doc) {
		return nil
	}
	return d.unmarshalUnusual(doc, into)
}

// decode decodes the document with which text begins, and returns where it ends. If
// it fails, the object is empty.
func (d *jsonDecoder) decode(text []byte, into any) (end int, err error) {
	if u, ok := into.(*unstructured.Unstructured); ok {
		u.Object, end, err = d.decodeValues(text)
		return end, err
	}
	v := reflect.ValueOf(into).Elem()
	shape := jsonShapeOf(v.Type())
	if shape == nil {
		return 0, errUnusualJSON
	}
	d.scan, d.nesting = jsonscan.Scanner{Data: text}, 0
	d.sites.begin()
	d.share.lastStates.begin(into)
	if err = d.object(shape, v); err == nil {
		d.share.lastStates.end()
	} else {
		v.SetZero()
	}
	end = d.scan.Pos
	d.scan.Data = nil
	return end, err
}

// unmarshalUnusual decodes what decode could not, or returns what is wrong with it.
func (d *jsonDecoder) unmarshalUnusual(doc []byte, into any) error {
	u, ok := into.(*unstructured.Unstructured)
	if !ok {
		reflect.ValueOf(into).Elem().SetZero()
		return jsonv2.Unmarshal(doc, into, jsonOptions)
	}
	values := &valueDecoder{dec: jsontext.NewDecoder(bytes.NewReader(doc), jsonOptions), shared: d.share.strings}
	object, err := values.object()
	if err != nil {
		return err
	}
	if _, err := values.dec.ReadToken(); !errors.Is(err, io.EOF) {
		return errors.New("more than one JSON document")
	}
	u.Object = object
	return nil
}

// object reads an object into a struct.
func (d *jsonDecoder) object(shape *jsonShape, v reflect.Value) error {
	if d.nesting++; d.nesting > maxNesting || shape.members == nil || !d.scan.Take('{') {
		return errUnusualJSON
	}
	before := d.sites.at(shape.site)
	for first := true; !d.scan.Take('}'); first = false {
		if !first && !d.scan.Take(',') {
			return errUnusualJSON
		}
		member, err := d.member(shape, before)
		if err != nil {
			return err
		}
		if member == nil {
			if _, err := d.skip(); err != nil {
				return err
			}
			continue
		}
		before = d.sites.at(member.site)
		if member.body && d.share.lastStates != nil && d.unchanged(member, v) {
			continue
		}
		if err := d.value(member, field(v, member.index)); err != nil {
			return err
		}
	}
	d.nesting--
	return nil
}

// member reads a name and the colon. It returns nil for a member that the type does
// not have. before is the site of the member before.
func (d *jsonDecoder) member(shape *jsonShape, before *site) (*jsonValue, error) {
	d.scan.Peek()
	if next := before.nextMember(); next != nil && d.follows(next.label) {
		d.scan.Pos += len(next.label)
		return next, nil
	}
	name, err := d.token()
	if err != nil {
		return nil, err
	}
	member := shape.members[string(name)]
	if !d.scan.Take(':') {
		return nil, errUnusualJSON
	}
	if member != nil {
		before.setNext(member)
	}
	return member, nil
}

func (d *jsonDecoder) follows(text []byte) bool {
	rest := d.scan.Data[d.scan.Pos:]
	return len(rest) >= len(text) && string(rest[:len(text)]) == string(text)
}

// unchanged skips the body of an object if it is that of the object's last state,
// which v is given then.
func (d *jsonDecoder) unchanged(member *jsonValue, v reflect.Value) bool {
	d.scan.Peek()
	start := d.scan.Pos
	body, err := d.skip()
	if err == nil && d.share.lastStates.unchanged(v, member.index[0], body) {
		return true
	}
	d.scan.Pos = start
	return false
}

// field is v.FieldByIndex without what that does for pointers.
func field(v reflect.Value, index []int) reflect.Value {
	for _, i := range index {
		v = v.Field(i)
	}
	return v
}

// skip consumes a value and returns its text.
func (d *jsonDecoder) skip() ([]byte, error) {
	if d.valid {
		return d.scan.Skip()
	}
	text, ok := d.scan.StrictSkip()
	if !ok {
		return nil, errUnusualJSON
	}
	return text, nil
}

// token consumes a string and returns it without quotes. The bytes may be used
// until the next call.
func (d *jsonDecoder) token() ([]byte, error) {
	t, ok := d.scan.StrictString()
	if !ok {
		return nil, errUnusualJSON
	}
	if !t.Escaped {
		return t.Raw(), nil
	}
	var err error
	if d.scratch, err = t.Unescape(d.scratch[:0]); err != nil {
		return nil, errUnusualJSON
	}
	return d.scratch, nil
}

// value reads one value. v is zero, unless a name stood twice.
func (d *jsonDecoder) value(p *jsonValue, v reflect.Value) error {
	if d.scan.Peek() == 'n' && d.scan.Literal("null") {
		v.SetZero()
		return nil
	}
	switch p.kind {
	case jsonString:
		return d.string(p, v)
	case jsonBool:
		isTrue := d.scan.Literal("true")
		if !isTrue && !d.scan.Literal("false") {
			return errUnusualJSON
		}
		v.SetBool(isTrue)
		return nil
	case jsonInt:
		n, ok := d.scan.Int(v.Type().Bits())
		if !ok {
			return errUnusualJSON
		}
		v.SetInt(n)
		return nil
	case jsonObject:
		return d.object(p.shape, v)
	case jsonTime:
		return d.time(p, v)
	case jsonBytes:
		return d.bytes(v)
	case jsonCustom:
		text, err := d.skip()
		if err != nil {
			return err
		}
		return v.Addr().Interface().(json.Unmarshaler).UnmarshalJSON(text)
	}
	return d.part(p, v)
}

func (d *jsonDecoder) string(p *jsonValue, v reflect.Value) error {
	at, start := d.sites.at(p.site), d.scan.Pos
	if known := at.find(d.scan.Data[start:]); known != nil {
		d.scan.Pos += len(known.encoded)
		v.SetString(known.text)
		return nil
	}
	token, err := d.token()
	if err != nil {
		return err
	}
	text := d.share.strings.string(token)
	v.SetString(text)
	if len(token) <= longestShared && !at.misses() {
		at.add(d.scan.Data[start:d.scan.Pos], siteValue{text: text})
	}
	return nil
}

// part reads what can be shared: what a pointer points to, an array, a map.
func (d *jsonDecoder) part(p *jsonValue, v reflect.Value) error {
	if !v.IsNil() {
		return errUnusualJSON // a name that stood twice
	}
	at, start := d.sites.at(p.site), d.scan.Pos
	if d.share.parts != nil {
		if known := at.find(d.scan.Data[start:]); known != nil {
			d.scan.Pos += len(known.encoded)
			v.Set(known.part)
			return nil
		}
	}
	var made reflect.Value
	var err error
	switch p.kind {
	case jsonPointer:
		made = reflect.New(p.typ.Elem())
		err = d.value(p.elem, made.Elem())
	case jsonArray:
		made, err = d.array(p, at)
	default:
		made, err = d.entries(p, at)
	}
	if err != nil {
		return err
	}
	v.Set(d.shared(p, at, d.scan.Data[start:d.scan.Pos], made))
	return nil
}

// shared returns the value that was made of the same text before at whatever site,
// or else made.
func (d *jsonDecoder) shared(p *jsonValue, at *site, text []byte, made reflect.Value) reflect.Value {
	if d.share.parts == nil || len(text) > largestPart || at.misses() {
		return made
	}
	known, found, place := d.share.parts.get(p.typ, p.salt, text)
	if found {
		made = known
		at.found()
	} else {
		place.put(p.typ, text, made)
	}
	at.add(text, siteValue{part: made})
	return made
}

func (d *jsonDecoder) array(p *jsonValue, at *site) (reflect.Value, error) {
	made := reflect.MakeSlice(p.typ, at.guess(), at.guess())
	if !d.scan.Take('[') {
		return made, errUnusualJSON
	}
	n := 0
	for ; !d.scan.Take(']'); n++ {
		if n > 0 && !d.scan.Take(',') {
			return made, errUnusualJSON
		}
		if n == made.Len() {
			made = resized(made, 2*n+1)
		}
		if err := d.value(p.elem, made.Index(n)); err != nil {
			return made, err
		}
	}
	if at.setCount(n); n != made.Len() {
		made = resized(made, n)
	}
	return made, nil
}

// resized returns a slice of n elements with those of s.
func resized(s reflect.Value, n int) reflect.Value {
	made := reflect.MakeSlice(s.Type(), n, n)
	reflect.Copy(made, s)
	return made
}

func (d *jsonDecoder) entries(p *jsonValue, at *site) (reflect.Value, error) {
	made := reflect.MakeMapWithSize(p.typ, at.guess())
	if !d.scan.Take('{') {
		return made, errUnusualJSON
	}
	key, value := reflect.New(p.typ.Key()).Elem(), reflect.New(p.typ.Elem()).Elem()
	n := 0
	for ; !d.scan.Take('}'); n++ {
		if n > 0 && !d.scan.Take(',') {
			return made, errUnusualJSON
		}
		name, err := d.token()
		if err != nil || !d.scan.Take(':') {
			return made, errUnusualJSON
		}
		key.SetString(d.share.strings.string(name))
		value.SetZero()
		if err := d.value(p.elem, value); err != nil {
			return made, err
		}
		made.SetMapIndex(key, value)
	}
	if at.setCount(n); made.Len() != n {
		return made, errUnusualJSON // a name that stood twice
	}
	return made, nil
}

// time does what metav1.Time's own UnmarshalJSON does, without decoding a
// string by way of encoding/json: it was a tenth of the time of a list of pods.
func (d *jsonDecoder) time(p *jsonValue, v reflect.Value) error {
	at, start := d.sites.at(p.site), d.scan.Pos
	into := v.Addr().Interface().(*metav1.Time)
	if known := at.find(d.scan.Data[start:]); known != nil {
		d.scan.Pos += len(known.encoded)
		*into = known.time
		return nil
	}
	token, err := d.token()
	if err != nil {
		return err
	}
	t, err := time.Parse(time.RFC3339, string(token))
	if err != nil {
		return errUnusualJSON
	}
	into.Time = t.Local()
	at.add(d.scan.Data[start:d.scan.Pos], siteValue{time: *into})
	return nil
}

func (d *jsonDecoder) bytes(v reflect.Value) error {
	token, err := d.token()
	if err != nil {
		return err
	}
	decoded := make([]byte, base64.StdEncoding.DecodedLen(len(token)))
	n, err := base64.StdEncoding.Decode(decoded, token)
	if err != nil {
		return errUnusualJSON
	}
	v.SetBytes(decoded[:n])
	return nil
}
