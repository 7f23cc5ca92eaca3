package codec

import (
	"bytes"
	"errors"
	"fmt"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// jsonEvents reads a stream of JSON documents, each
// {"type":"ADDED","object":{...}}. The object is decoded straight from the
// stream's tokens; only a server that writes the type last costs a copy.
type jsonEvents[T Item] struct {
	codec *Codec[T]
	src   *Source
	dec   *jsonReader
}

// jsonEvent is what has been read of one event.
type jsonEvent[T Item] struct {
	typ     watch.EventType
	object  T
	status  *metav1.Status
	decoded bool
	pending jsontext.Value // the object, while the type is not known
}

func (e *jsonEvents[T]) next() (Event[T], *metav1.Status, error) {
	var none Event[T]
	e.src.StartFrame()
	if e.dec.PeekKind() == 0 {
		_, err := e.dec.ReadToken()
		if err == nil {
			err = errors.New("no event")
		}
		return none, nil, err // io.EOF only between documents
	}
	e.src.beginEvent()
	var ev jsonEvent[T]
	if err := e.read(&ev); err != nil {
		return none, nil, unexpected(err)
	}
	if ev.status != nil {
		return none, ev.status, nil
	}
	return Event[T]{Type: ev.typ, Object: ev.object}, nil, nil
}

// read reads one document. It makes no string of a
// name, as this is the hottest loop of a client.
func (e *jsonEvents[T]) read(ev *jsonEvent[T]) error {
	dec := e.dec
	if dec.PeekKind() != '{' {
		return notAnObject(dec.Decoder)
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() == '"' {
		name, err := dec.ReadValue()
		if err != nil {
			return err
		}
		switch string(name) {
		case `"type"`:
			err = e.readType(ev)
		case `"object"`:
			err = e.readObject(ev)
		default:
			err = dec.SkipValue()
		}
		if err != nil {
			return err
		}
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	return e.complete(ev)
}

func (e *jsonEvents[T]) readType(ev *jsonEvent[T]) error {
	v, err := e.dec.ReadValue()
	if err != nil {
		return err
	}
	ev.typ, err = eventTypeOf(bytes.Trim(v, `"`))
	return err
}

func (e *jsonEvents[T]) readObject(ev *jsonEvent[T]) error {
	var err error
	switch ev.typ {
	case "":
		var v jsontext.Value
		if v, err = e.dec.ReadValue(); err == nil {
			ev.pending = v.Clone()
		}
		return err
	case watch.Error:
		ev.status = &metav1.Status{}
		err = jsonv2.UnmarshalDecode(e.dec.Decoder, ev.status)
	case watch.Bookmark: // so that an idle watch has no tables
		ev.object, err = e.codec.decodeBookmark(e.dec)
	default:
		ev.object, err = e.codec.decodeItem(e.dec)
	}
	ev.decoded = err == nil
	return err
}

// complete decodes an object that came before its type, and refuses an event
// that has no type or no object.
func (e *jsonEvents[T]) complete(ev *jsonEvent[T]) error {
	if ev.typ == "" {
		return errors.New("the event has no type")
	}
	if ev.pending != nil {
		inner := &jsonEvents[T]{codec: e.codec, dec: newJSONReader(bytes.NewReader(ev.pending), e.dec.objects.share)}
		ev.pending = nil
		return inner.readObject(ev)
	}
	if !ev.decoded {
		return errors.New("the event has no object")
	}
	return nil
}

// eventTypeOf gives back one of the constants, so that no string is made.
func eventTypeOf(b []byte) (watch.EventType, error) {
	switch string(b) {
	case string(watch.Added):
		return watch.Added, nil
	case string(watch.Modified):
		return watch.Modified, nil
	case string(watch.Deleted):
		return watch.Deleted, nil
	case string(watch.Bookmark):
		return watch.Bookmark, nil
	case string(watch.Error):
		return watch.Error, nil
	}
	return "", fmt.Errorf("event type %.40q is not known", b)
}
