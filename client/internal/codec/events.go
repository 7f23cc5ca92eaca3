package codec

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// EventStream reads the events of one watch. It is for one goroutine at a time.
type EventStream[T Item] struct {
	src        *Source
	reader     eventReader[T]
	lastStates *lastStates
}

// eventReader reads the events of one encoding; what it returns is what
// [EventStream.Next] does.
type eventReader[T Item] interface {
	next() (Event[T], *metav1.Status, error)
}

// NewEventStream returns a stream of the events in src, which is the answer to a
// watch.
func (c *Codec[T]) NewEventStream(enc Encoding, src *Source) (*EventStream[T], error) {
	share := c.newWatchSharer()
	s := &EventStream[T]{src: src, lastStates: share.lastStates}
	switch enc {
	case EncodingJSON:
		s.reader = &jsonEvents[T]{codec: c, src: src, dec: newJSONReader(src, share)}
	case EncodingProtobuf:
		s.reader = &protobufEvents[T]{codec: c, src: src, share: share}
	default:
		return nil, errUnknownEncoding
	}
	return s, nil
}

// Next reads the next event. Without an error, one of the event and the
// Status is set: the server sends a Status before it ends the stream. io.EOF
// comes between events only.
func (s *EventStream[T]) Next() (Event[T], *metav1.Status, error) {
	s.src.endEvent()
	ev, status, err := s.reader.next()
	if err == nil && status == nil && ev.Type == watch.Deleted {
		s.lastStates.forget(ev.Object.GetUID())
	}
	return ev, status, err
}
