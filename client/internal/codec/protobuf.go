package codec

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// protoUnmarshaler and protoMarshaler are the methods that API types have in their
// generated code. Unmarshal copies what it keeps, so its caller may reuse the
// buffer.
type (
	protoUnmarshaler interface{ Unmarshal(data []byte) error }
	protoMarshaler   interface{ Marshal() ([]byte, error) }
)

// CanUnmarshalProtobuf returns whether an object can be decoded from protobuf.
func CanUnmarshalProtobuf(obj any) bool {
	_, ok := obj.(protoUnmarshaler)
	return ok
}

// protobufMagic starts every encoded object.
var protobufMagic = []byte("k8s\x00")

// Numbers of fields: runtime.Unknown's, which is the envelope, and those that
// every list and event has.
const (
	unknownTypeMeta = 1
	unknownRaw      = 2
	listMeta        = 1
	listItems       = 2
	eventType       = 1
	eventObject     = 2
	extensionRaw    = 1

	typeMetaAPIVersion = 1
	typeMetaKind       = 2
)

const (
	wireVarint = 0
	wire64     = 1
	wireBytes  = 2
	wire32     = 5
)

var errTruncated = errors.New("protobuf: truncated message")

// protoField is one field of a message.
type protoField struct {
	number int
	wire   int
	data   []byte // of a length-delimited field; aliases the message
}

// nextField takes a field off the front of a message.
func nextField(msg []byte) (f protoField, rest []byte, err error) {
	tag, n := binary.Uvarint(msg)
	if n <= 0 || tag>>3 == 0 || tag>>3 > 1<<29 {
		return f, nil, errTruncated
	}
	f.number, f.wire = int(tag>>3), int(tag&7)
	msg = msg[n:]
	switch f.wire {
	case wireVarint:
		if _, n = binary.Uvarint(msg); n <= 0 {
			return f, nil, errTruncated
		}
		return f, msg[n:], nil
	case wire64, wire32:
		size := 8
		if f.wire == wire32 {
			size = 4
		}
		if len(msg) < size {
			return f, nil, errTruncated
		}
		return f, msg[size:], nil
	case wireBytes:
		size, n := binary.Uvarint(msg)
		if n <= 0 || size > uint64(len(msg)-n) {
			return f, nil, errTruncated
		}
		f.data = msg[n : n+int(size)]
		return f, msg[n+int(size):], nil
	}
	return f, nil, fmt.Errorf("protobuf: wire type %d is not supported", f.wire)
}

// findBytes returns the last length-delimited field of that number, nil if
// there is none.
func findBytes(msg []byte, number int) ([]byte, error) {
	var found []byte
	for len(msg) > 0 {
		f, rest, err := nextField(msg)
		if err != nil {
			return nil, err
		}
		if f.number == number && f.wire == wireBytes {
			found = f.data
		}
		msg = rest
	}
	return found, nil
}

// typeMeta is what an envelope says of its message. It aliases the envelope.
type typeMeta struct{ apiVersion, kind []byte }

// openEnvelope returns the message within `k8s\0` and runtime.Unknown, and the
// type that the envelope names.
func openEnvelope(data []byte) (raw []byte, of typeMeta, err error) {
	body, ok := bytes.CutPrefix(data, protobufMagic)
	if !ok {
		return nil, of, errors.New("protobuf: the object does not start with k8s\\0")
	}
	encoded, err := findBytes(body, unknownTypeMeta)
	if err != nil {
		return nil, of, err
	}
	if of, err = readTypeMeta(encoded); err != nil {
		return nil, of, err
	}
	raw, err = findBytes(body, unknownRaw)
	return raw, of, err
}

func readTypeMeta(message []byte) (of typeMeta, err error) {
	if of.apiVersion, err = findBytes(message, typeMetaAPIVersion); err != nil {
		return of, err
	}
	of.kind, err = findBytes(message, typeMetaKind)
	return of, err
}

// gvk is empty, but for the kind, if the apiVersion is none.
func (t typeMeta) gvk() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(string(t.apiVersion), string(t.kind))
}

// unmarshalProtobuf reads one object with its envelope.
func unmarshalProtobuf(data []byte, into any) error {
	m, ok := into.(protoUnmarshaler)
	if !ok {
		return fmt.Errorf("%T cannot be decoded from protobuf", into)
	}
	raw, _, err := openEnvelope(data)
	if err != nil {
		return err
	}
	return m.Unmarshal(raw)
}

// marshalProtobuf writes one object with its envelope.
func marshalProtobuf(m protoMarshaler, gvk schema.GroupVersionKind) ([]byte, error) {
	raw, err := m.Marshal()
	if err != nil {
		return nil, err
	}
	apiVersion, kind := gvk.ToAPIVersionAndKind()
	meta, err := (&runtime.TypeMeta{APIVersion: apiVersion, Kind: kind}).Marshal()
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, len(protobufMagic)+len(meta)+len(raw)+2*(1+binary.MaxVarintLen64))
	out = append(out, protobufMagic...)
	out = appendBytesField(out, unknownTypeMeta, meta)
	return appendBytesField(out, unknownRaw, raw), nil
}

func appendBytesField(out []byte, number int, data []byte) []byte {
	out = binary.AppendUvarint(out, uint64(number)<<3|wireBytes)
	out = binary.AppendUvarint(out, uint64(len(data)))
	return append(out, data...)
}
