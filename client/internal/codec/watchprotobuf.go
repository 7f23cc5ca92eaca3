package codec

import (
	"encoding/binary"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// protobufEvents reads frames: four bytes with the length, big-endian, and a
// bare WatchEvent whose object has the envelope. One buffer serves all frames.
type protobufEvents[T Item] struct {
	codec *Codec[T]
	src   *Source
	share *sharer
	buf   []byte
}

func (e *protobufEvents[T]) next() (Event[T], *metav1.Status, error) {
	var none Event[T]
	e.src.StartFrame()
	var head [4]byte
	var err error
	if head[0], err = e.src.ReadByte(); err != nil {
		return none, nil, err // io.EOF only if there was nothing at all
	}
	e.src.beginEvent()
	if _, err := io.ReadFull(e.src, head[1:]); err != nil {
		return none, nil, unexpected(err)
	}
	size := binary.BigEndian.Uint32(head[:])
	if limit := e.src.limit; limit >= 0 && int64(size) > limit-int64(len(head)) {
		return none, nil, e.src.tooLarge()
	}
	if e.buf, err = readSized(e.src, e.buf, int(size)); err != nil {
		return none, nil, err
	}
	return e.decode(e.buf)
}

// decode reads one WatchEvent, of which nothing is kept.
func (e *protobufEvents[T]) decode(frame []byte) (Event[T], *metav1.Status, error) {
	var none Event[T]
	typ, err := findBytes(frame, eventType)
	if err != nil {
		return none, nil, err
	}
	extension, err := findBytes(frame, eventObject)
	if err != nil {
		return none, nil, err
	}
	object, err := findBytes(extension, extensionRaw)
	if err != nil {
		return none, nil, err
	}
	ev := Event[T]{}
	if ev.Type, err = eventTypeOf(typ); err != nil {
		return none, nil, err
	}
	raw, of, err := openEnvelope(object)
	if err != nil {
		return none, nil, fmt.Errorf("%s event: %w", ev.Type, err)
	}
	if ev.Type == watch.Error {
		if string(of.kind) != "Status" {
			return none, nil, fmt.Errorf("%s event with a %q in place of a Status", ev.Type, of.kind)
		}
		status := &metav1.Status{}
		return none, status, unexpected(status.Unmarshal(raw))
	}
	if err := e.codec.checkTypeMeta(of); err != nil {
		return none, nil, fmt.Errorf("%s event: %w", ev.Type, err)
	}
	ev.Object = e.codec.newT()
	m, ok := any(ev.Object).(protoUnmarshaler)
	if !ok {
		return none, nil, fmt.Errorf("%T cannot be decoded from protobuf", ev.Object)
	}
	decode := e.share.unmarshalShared
	if ev.Type == watch.Bookmark { // so that an idle watch has no tables
		decode = func(message []byte, into protoUnmarshaler) error { return into.Unmarshal(message) }
	}
	if err := decode(raw, m); err != nil {
		return none, nil, fmt.Errorf("%s event: %w", ev.Type, unexpected(err))
	}
	return ev, nil, e.codec.finish(ev.Object)
}
