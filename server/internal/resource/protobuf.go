package resource

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/server/internal/resource/jsonproto"
)

// protobufMagic begins every protobuf value and body of Kubernetes; after it
// comes a runtime.Unknown message.
const protobufMagic = "k8s\x00"

// ErrNoProtobuf is returned for kinds that have no protobuf form: custom
// resources. Serve them as JSON.
var ErrNoProtobuf = errors.New("this kind has no protobuf form, use JSON")

// protobufMessage is what generated Kubernetes types offer.
type protobufMessage interface {
	Size() int
	MarshalToSizedBuffer(data []byte) (int, error)
	Unmarshal(data []byte) error
	Reset()
}

// IsProtobuf reports whether a value or body is in Kubernetes' protobuf
// envelope.
func IsProtobuf(data []byte) bool {
	return bytes.HasPrefix(data, []byte(protobufMagic))
}

// MarshalProtobuf returns obj in the protobuf envelope, with the given kind.
func MarshalProtobuf(obj runtime.Object, gvk schema.GroupVersionKind) ([]byte, error) {
	raw, err := MarshalProtobufMessage(obj)
	if err != nil {
		return nil, err
	}
	return AppendProtobufEnvelope(nil, gvk, raw), nil
}

// MarshalProtobufMessage returns the bare protobuf message of obj, as it
// stands in the envelope and as an item of a list.
func MarshalProtobufMessage(obj runtime.Object) ([]byte, error) {
	message, ok := obj.(protobufMessage)
	if !ok {
		return nil, fmt.Errorf("%T: %w", obj, ErrNoProtobuf)
	}
	raw := make([]byte, message.Size())
	n, err := message.MarshalToSizedBuffer(raw)
	if err != nil {
		return nil, fmt.Errorf("encode %T as protobuf: %w", obj, err)
	}
	return raw[len(raw)-n:], nil
}

// AppendProtobufEnvelope appends the envelope around a bare message.
func AppendProtobufEnvelope(dst []byte, gvk schema.GroupVersionKind, raw []byte) []byte {
	dst = appendEnvelopeHead(dst, gvk, len(raw))
	dst = append(dst, raw...)
	return appendEnvelopeTail(dst)
}

// AppendProtobufListHead appends what comes before the items of a list in the
// envelope: gvk is the list's kind, items the total length of the items as
// AppendProtobufListItem writes them. After the items comes ProtobufListTail.
func AppendProtobufListHead(dst []byte, gvk schema.GroupVersionKind, meta *metav1.ListMeta, items int) ([]byte, error) {
	metadata, err := meta.Marshal()
	if err != nil {
		return nil, fmt.Errorf("encode list metadata as protobuf: %w", err)
	}
	size := jsonproto.FieldSize(len(metadata)) + items
	dst = appendEnvelopeHead(dst, gvk, size)
	return jsonproto.AppendField(dst, 1, metadata), nil
}

// AppendProtobufListItem appends a bare message as an item of a list. Every
// list kind of Kubernetes has metadata as field 1 and items as field 2.
func AppendProtobufListItem(dst, raw []byte) []byte {
	return jsonproto.AppendField(dst, 2, raw)
}

// ProtobufListTail ends a list in the envelope.
func ProtobufListTail() []byte {
	return appendEnvelopeTail(nil)
}

// AppendProtobufWatchEvent appends one frame of a protobuf watch stream: a
// length of four bytes, big-endian, and a bare WatchEvent, in which only the
// object has an envelope. object is that envelope.
func AppendProtobufWatchEvent(dst []byte, eventType string, object []byte) []byte {
	rawExtension := jsonproto.FieldSize(len(object))
	size := jsonproto.FieldSize(len(eventType)) + jsonproto.FieldSize(rawExtension)
	dst = binary.BigEndian.AppendUint32(dst, uint32(size))
	dst = jsonproto.AppendField(dst, 1, []byte(eventType))
	dst = jsonproto.AppendFieldHead(dst, 2, rawExtension)
	return jsonproto.AppendField(dst, 1, object)
}

// ProtobufFrames puts bare messages of one kind into frames of a protobuf watch
// stream, as AppendProtobufWatchEvent writes them, without collecting the parts:
// the head, the message, the tail. It is immutable.
type ProtobufFrames struct {
	event    []byte // the event's type
	envelope []byte // up to the length of the message
	tail     []byte
}

// NewProtobufFrames returns the frames of events of one type.
func NewProtobufFrames(eventType string, gvk schema.GroupVersionKind) *ProtobufFrames {
	envelope := appendEnvelopeHead(nil, gvk, 0)
	return &ProtobufFrames{
		event:    jsonproto.AppendField(nil, 1, []byte(eventType)),
		envelope: envelope[:len(envelope)-1],
		tail:     appendEnvelopeTail(nil),
	}
}

// AppendHead appends what comes before a message of the given length.
func (f *ProtobufFrames) AppendHead(dst []byte, message int) []byte {
	object := len(f.envelope) + jsonproto.FieldSize(message) - 1 + len(f.tail)
	rawExtension := jsonproto.FieldSize(object)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(f.event)+jsonproto.FieldSize(rawExtension)))
	dst = append(dst, f.event...)
	dst = jsonproto.AppendFieldHead(dst, 2, rawExtension)
	dst = jsonproto.AppendFieldHead(dst, 1, object)
	dst = append(dst, f.envelope...)
	return binary.AppendUvarint(dst, uint64(message))
}

// Tail returns what comes after every message. It is shared and must not be modified.
func (f *ProtobufFrames) Tail() []byte { return f.tail }

// UnwrapProtobuf opens the envelope. raw shares data's memory.
func UnwrapProtobuf(data []byte) (gvk schema.GroupVersionKind, raw []byte, err error) {
	switch { // in the words of Kubernetes
	case len(data) == 0:
		return gvk, nil, &unknownKindError{errors.New("empty data")}
	case !IsProtobuf(data):
		return gvk, nil, &unknownKindError{fmt.Errorf("provided data does not appear to be a protobuf message, expected prefix %v", []byte(protobufMagic))}
	case len(data) == len(protobufMagic):
		return gvk, nil, &unknownKindError{errors.New("empty body")}
	}
	var unknown runtime.Unknown
	if err := unknown.Unmarshal(data[len(protobufMagic):]); err != nil {
		return gvk, nil, &unknownKindError{err}
	}
	if unknown.ContentEncoding != "" || unknown.ContentType != "" && unknown.ContentType != MediaTypeProtobuf {
		return gvk, nil, fmt.Errorf("protobuf envelope holds content of type %q, encoding %q: only plain protobuf is understood", unknown.ContentType, unknown.ContentEncoding)
	}
	gv, err := schema.ParseGroupVersion(unknown.APIVersion)
	if err != nil {
		return gvk, nil, fmt.Errorf("protobuf envelope: %w", err)
	}
	return gv.WithKind(unknown.Kind), unknown.Raw, nil
}

// unmarshalProtobuf decodes a bare message.
func unmarshalProtobuf(raw []byte, into runtime.Object) error {
	message, ok := into.(protobufMessage)
	if !ok {
		return fmt.Errorf("object %T does not implement the protobuf marshalling interface and cannot be encoded to a protobuf message", into)
	}
	message.Reset()
	err := checkProtobufDepth(raw)
	if err == nil {
		err = message.Unmarshal(raw)
	}
	return err
}

// decodeStoredProtobuf decodes a value that a kube-apiserver stored.
func (r *Resource) decodeStoredProtobuf(value []byte) (Object, error) {
	gvk, raw, err := UnwrapProtobuf(value)
	if err != nil {
		return nil, fmt.Errorf("stored value of %s: %w", r.GroupResource(), err)
	}
	if !r.isStoredAs(gvk) {
		return nil, fmt.Errorf("stored value of %s is a %s, not a %s: rewrite it in that version with the server that wrote it", r.GroupResource(), gvk, r.GroupVersionKind())
	}
	obj := r.New()
	if err := unmarshalProtobuf(raw, obj); err != nil {
		return nil, fmt.Errorf("stored value of %s: %w", r.GroupResource(), err)
	}
	return obj, nil
}

// appendEnvelopeHead appends the magic and the Unknown message up to and
// without the raw bytes.
func appendEnvelopeHead(dst []byte, gvk schema.GroupVersionKind, raw int) []byte {
	apiVersion, kind := gvk.GroupVersion().String(), gvk.Kind
	dst = append(dst, protobufMagic...)
	dst = jsonproto.AppendFieldHead(dst, 1, jsonproto.FieldSize(len(apiVersion))+jsonproto.FieldSize(len(kind)))
	dst = jsonproto.AppendField(dst, 1, []byte(apiVersion))
	dst = jsonproto.AppendField(dst, 2, []byte(kind))
	return jsonproto.AppendFieldHead(dst, 2, raw)
}

// appendEnvelopeTail appends the empty contentEncoding and contentType, which
// kube-apiserver sends too.
func appendEnvelopeTail(dst []byte) []byte {
	return append(dst, 3<<3|2, 0, 4<<3|2, 0)
}

// AppendProtobuf appends the bare protobuf message of an object whose JSON is
// given, in the resource's own version. It is what decoding the object and encoding
// it again gives, for a seventh of the time: values go from one encoding to the
// other as they are read, and no object is made. It fails with ErrNoProtobuf if
// the kind has no protobuf form.
func (r *Resource) AppendProtobuf(dst, json []byte) ([]byte, error) {
	plan := r.message.Load()
	if plan == nil {
		plan = jsonproto.PlanOf(reflect.TypeOf(r.New()).Elem())
		r.message.Store(plan)
	}
	out, err := plan.Append(dst, json)
	if !errors.Is(err, jsonproto.ErrUnusual) {
		return out, err
	}
	obj, err := r.DecodeShown(json)
	if err != nil {
		return dst, err
	}
	raw, err := MarshalProtobufMessage(obj)
	return append(dst, raw...), err
}

// AppendPartialProtobuf is AppendProtobuf for a PartialObjectMetadata.
func AppendPartialProtobuf(dst, json []byte) ([]byte, error) {
	out, err := jsonproto.PlanOf(reflect.TypeFor[metav1.PartialObjectMetadata]()).Append(dst, json)
	if !errors.Is(err, jsonproto.ErrUnusual) {
		return out, err
	}
	obj := &metav1.PartialObjectMetadata{}
	if err := unmarshal(json, obj); err != nil {
		return dst, fmt.Errorf("decode metadata: %w", err)
	}
	raw, err := MarshalProtobufMessage(obj)
	return append(dst, raw...), err
}
