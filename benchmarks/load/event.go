package load

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// Splitter cuts the body of a watch into events, over the boundaries of frames
// and reads. An event that lies whole in a piece is not copied. The zero value
// cuts JSON.
type Splitter struct {
	// Protobuf: each event follows its length in four bytes, and is not ended
	// by a newline as in JSON.
	Protobuf bool

	part []byte // an event's beginning
}

// maxEvent bounds an event, so that a stream that is not one of events is
// found out.
const maxEvent = 16 << 20

var errEvent = errors.New("this is no stream of watch events")

// Cut calls each with every event that piece completes, without its newline or
// length. The event is valid during the call.
func (s *Splitter) Cut(piece []byte, each func(event []byte) error) error {
	for len(piece) > 0 {
		var err error
		if len(s.part) > 0 {
			piece, err = s.complete(piece, each)
		} else if n := s.length(piece); n > 0 {
			err = each(s.content(piece[:n]))
			piece = piece[n:]
		} else {
			s.part = append(s.part, piece...)
			return s.bounded(len(s.part))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// complete adds to the part what belongs to its event.
func (s *Splitter) complete(piece []byte, each func([]byte) error) (rest []byte, err error) {
	n := len(piece)
	if !s.Protobuf {
		if i := bytes.IndexByte(piece, '\n'); i >= 0 {
			n = i + 1
		}
	} else if len(s.part) < 4 {
		n = min(4-len(s.part), n)
	} else {
		whole := 4 + int(binary.BigEndian.Uint32(s.part))
		if err := s.bounded(whole); err != nil {
			return nil, err
		}
		n = min(whole-len(s.part), n)
	}
	s.part = append(s.part, piece[:n]...)
	if s.length(s.part) > 0 {
		err = each(s.content(s.part))
		s.part = s.part[:0]
	} else {
		err = s.bounded(len(s.part))
	}
	return piece[n:], err
}

// length is that of the event at the start of b with what surrounds it; 0: it
// is not complete.
func (s *Splitter) length(b []byte) int {
	if !s.Protobuf {
		return bytes.IndexByte(b, '\n') + 1
	}
	if len(b) < 4 {
		return 0
	}
	if n := 4 + int(binary.BigEndian.Uint32(b)); n <= len(b) {
		return n
	}
	return 0
}

func (s *Splitter) content(b []byte) []byte {
	if s.Protobuf {
		return b[4:]
	}
	return b[:len(b)-1]
}

func (s *Splitter) bounded(n int) error {
	if n > maxEvent {
		return fmt.Errorf("%w: one of %d bytes", errEvent, n)
	}
	return nil
}

// sentKey is the annotation that says when an update was to be sent: its
// nanoseconds since 1970, in always as many digits. Its name sorts before those
// that others would add, so that it is found soon.
const (
	sentKey    = "a.load/sent"
	sentDigits = 19
)

// event is what a watcher looks at.
type event struct {
	bookmark bool
	failure  bool // an ERROR
	version  uint64
	// sent is zero if the event does not say. A deletion does not, and neither does the mark
	// that precedes it (which only JSON is looked at for): they show the object as the write
	// before left it, and so carry when that one was sent.
	sent time.Time
}

// read finds it in a JSON event by looking for it, which takes a tenth of what
// decoding takes: names and labels of the objects are our own.
func readJSON(b []byte) (event, error) {
	var e event
	var err error
	head := b[:min(len(b), 32)]
	e.failure = bytes.Contains(head, []byte(`"type":"ERROR"`))
	if e.failure {
		return e, nil
	}
	e.bookmark = bytes.Contains(head, []byte(`"type":"BOOKMARK"`))
	value := after(b, `"resourceVersion":"`)
	if end := bytes.IndexByte(value, '"'); end > 0 {
		e.version, err = strconv.ParseUint(string(value[:end]), 10, 64)
	} else {
		err = errEvent
	}
	if err != nil {
		return e, fmt.Errorf("%w: no version in %.200q", errEvent, b)
	}
	before, stamp, _ := bytes.Cut(value, []byte(`"`+sentKey+`":"`))
	if !bytes.Contains(head, []byte(`"type":"DELETED"`)) && !bytes.Contains(before, []byte(`"deletionTimestamp":`)) {
		e.sent = sent(stamp)
	}
	return e, nil
}

func after(b []byte, mark string) []byte {
	if i := bytes.Index(b, []byte(mark)); i >= 0 {
		return b[i+len(mark):]
	}
	return nil
}

func sent(value []byte) time.Time {
	if len(value) < sentDigits {
		return time.Time{}
	}
	ns, err := strconv.ParseInt(string(value[:sentDigits]), 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(0, ns)
}

// readProtobuf finds the same in a WatchEvent: its object is a runtime.Unknown
// behind four bytes of magic, whose content begins with the ObjectMeta.
func readProtobuf(b []byte) (event, error) {
	var e event
	kind, err := field(b, 1)
	if err != nil {
		return e, err
	}
	e.bookmark, e.failure = string(kind) == "BOOKMARK", string(kind) == "ERROR"
	if e.failure {
		return e, nil
	}
	raw, err := field(b, 2, 1)
	if err != nil {
		return e, err
	}
	if len(raw) < 4 {
		return e, fmt.Errorf("%w: an object without magic", errEvent)
	}
	meta, err := field(raw[4:], 2, 1)
	if err != nil {
		return e, err
	}
	version, err := field(meta, 6)
	if err != nil {
		return e, err
	}
	if e.version, err = strconv.ParseUint(string(version), 10, 64); err != nil {
		return e, fmt.Errorf("%w: version %q", errEvent, version)
	}
	if value := after(meta, sentKey); len(value) > 2 && string(kind) != "DELETED" {
		e.sent = sent(value[2:]) // behind tag and length of the map's value
	}
	return e, nil
}

// field descends into length-delimited fields of a protobuf message.
func field(b []byte, path ...int) ([]byte, error) {
	for _, number := range path {
		found := false
		for len(b) > 0 && !found {
			tag, n := binary.Uvarint(b)
			if n <= 0 {
				return nil, errEvent
			}
			b = b[n:]
			size, n := binary.Uvarint(b)
			switch {
			case n <= 0:
				return nil, errEvent
			case tag&7 == 0: // a varint, which is its own value
				b = b[n:]
				continue
			case tag&7 != 2 || size > uint64(len(b)-n):
				return nil, fmt.Errorf("%w: field %d has wire type %d", errEvent, tag>>3, tag&7)
			}
			if b = b[n:]; tag>>3 == uint64(number) {
				b, found = b[:size], true
			} else {
				b = b[size:]
			}
		}
		if !found {
			return nil, fmt.Errorf("%w: no field %d", errEvent, number)
		}
	}
	return b, nil
}
