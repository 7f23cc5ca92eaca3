// Package jsonproto turns the JSON of an object into its protobuf message as it is
// read, without making the object: a Plan, which is read off the Go type once,
// says which member becomes which field. It is for JSON that our own encoder
// wrote; for anything else it returns ErrUnusual, and the caller has to decode.
package jsonproto

import (
	"encoding/binary"
	"errors"
	"reflect"
	"slices"
	"sync"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/levelwire/levelwire/internal/jsonscan"
	"github.com/levelwire/levelwire/server/internal/resource/structjson"
)

// ErrUnusual is returned for JSON that only the decoder judges: other than our
// encoder writes it, or wrong.
var ErrUnusual = errors.New("JSON has to be decoded")

// Append appends the message that an object's JSON stands for.
func (p *Plan) Append(dst, json []byte) ([]byte, error) {
	if p.decoded != nil || !utf8.Valid(json) {
		return dst, ErrUnusual
	}
	t := transcoders.Get().(*transcoder)
	defer func() {
		t.scan = jsonscan.Scanner{}
		if cap(t.out) <= 1<<20 {
			transcoders.Put(t)
		}
	}()
	t.scan, t.out, t.spans = jsonscan.Scanner{Data: json}, t.out[:0], t.spans[:0]
	if err := t.message(p, nil); err != nil {
		return dst, err
	}
	if !t.scan.AtEnd() {
		return dst, ErrUnusual
	}
	return append(dst, t.out...), nil
}

// transcoder reads one JSON text and writes a protobuf message. Values are
// written as they come and put in the order of tags when their message ends.
type transcoder struct {
	scan  jsonscan.Scanner
	out   []byte
	spans []span
	order []byte // scratch of message
	text  []byte // scratch of strings that are escaped
}

// span is where a field has been written. Nothing has been if end is 0.
type span struct{ start, end int }

var transcoders = sync.Pool{New: func() any { return new(transcoder) }}

// object calls member with the name of every member of an object; member must
// read the value. The name is valid until then.
func (t *transcoder) object(member func(name []byte) error) error {
	if !t.scan.Take('{') {
		return ErrUnusual
	}
	if t.scan.Take('}') {
		return nil
	}
	for {
		name, err := t.string()
		if err != nil || !t.scan.Take(':') {
			return ErrUnusual
		}
		if err := member(name); err != nil {
			return err
		}
		if t.scan.Take('}') {
			return nil
		}
		if !t.scan.Take(',') {
			return ErrUnusual
		}
	}
}

// message reads an object and writes head and the message with its length; a
// nil head is that of the outermost message, which has neither.
func (t *transcoder) message(p *Plan, head []byte) error {
	if p.decoded != nil {
		return t.decoded(p.decoded, head)
	}
	start, slots := len(t.out), len(t.spans)
	t.spans = slices.Grow(t.spans, p.slots)[:slots+p.slots]
	clear(t.spans[slots:])
	next := 0
	err := t.object(func(name []byte) error {
		m := p.member(name, &next)
		if m == nil {
			_, err := t.skip()
			return err
		}
		if t.spans[slots+m.slot].end != 0 {
			return ErrUnusual // twice
		}
		if t.scan.Literal("null") {
			return nil
		}
		from := len(t.out)
		if err := t.value(&m.value, m.head); err != nil {
			return err
		}
		t.spans[slots+m.slot] = span{from, len(t.out)}
		return nil
	})
	if err != nil {
		return err
	}
	t.order = t.order[:0]
	t.arrange(p, t.spans[slots:])
	t.out, t.spans = t.out[:start], t.spans[:slots]
	if head != nil {
		t.lengthDelimited(head, len(t.order))
	}
	t.out = append(t.out, t.order...)
	return nil
}

// member finds a member by its name. Our encoder writes them in the order of
// the type, so the search goes on where the last one ended.
func (p *Plan) member(name []byte, next *int) *memberPlan {
	for i := *next; i < len(p.members); i++ {
		if p.members[i].name == string(name) {
			*next = i + 1
			return &p.members[i]
		}
	}
	for i := range min(*next, len(p.members)) {
		if p.members[i].name == string(name) {
			*next = i + 1
			return &p.members[i]
		}
	}
	return nil
}

// size is how long the message of an embedded struct becomes.
func (p *Plan) size(spans []span) int {
	total := 0
	for i := range p.fields {
		f := &p.fields[i]
		switch {
		case f.group != nil:
			size := f.group.size(spans)
			total += len(f.head) + FieldSize(size) - 1
		case spans[f.slot].end != 0:
			total += spans[f.slot].end - spans[f.slot].start
		default:
			total += len(f.absent)
		}
	}
	return total
}

// arrange appends the fields to order, in the order of their tags.
func (t *transcoder) arrange(p *Plan, spans []span) {
	for i := range p.fields {
		f := &p.fields[i]
		switch {
		case f.group != nil:
			t.order = binary.AppendUvarint(append(t.order, f.head...), uint64(f.group.size(spans)))
			t.arrange(f.group, spans)
		case spans[f.slot].end != 0:
			t.order = append(t.order, t.out[spans[f.slot].start:spans[f.slot].end]...)
		default:
			t.order = append(t.order, f.absent...)
		}
	}
}

// decoded is message for a type that only its own methods understand.
func (t *transcoder) decoded(typ reflect.Type, head []byte) error {
	raw, err := t.skip()
	if err != nil {
		return err
	}
	obj := reflect.New(typ)
	if jsonv2.Unmarshal(raw, obj.Interface(), structjson.Options) != nil {
		return ErrUnusual
	}
	message := obj.Interface().(message)
	size := message.Size()
	t.lengthDelimited(head, size)
	from := len(t.out)
	t.out = slices.Grow(t.out, size)[:from+size]
	n, err := message.MarshalToSizedBuffer(t.out[from:])
	if err != nil || n != size {
		return ErrUnusual
	}
	return nil
}

// lengthDelimited writes a tag and a length.
func (t *transcoder) lengthDelimited(head []byte, length int) {
	t.out = binary.AppendUvarint(append(t.out, head...), uint64(length))
}
