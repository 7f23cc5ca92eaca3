package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"
)

// verifier looks at a whole answer and counts its objects.
type verifier struct {
	to    *io.PipeWriter
	done  chan struct{}
	count int
	err   error
}

func newVerifier(t getTask) *verifier {
	read, write := io.Pipe()
	v := &verifier{to: write, done: make(chan struct{})}
	go func() {
		defer close(v.done)
		v.count, v.err = t.countObjects(read)
		_ = read.CloseWithError(v.err) // what still comes is not looked at; nil is an end
	}()
	return v
}

func (v *verifier) write(p []byte) error {
	_, err := v.to.Write(p)
	return err
}

func (v *verifier) end() (int, error) {
	_ = v.to.Close() // always nil
	<-v.done
	return v.count, v.err
}

// countObjects counts the objects of a whole answer.
func (t *getTask) countObjects(from io.Reader) (int, error) {
	if t.Gzip {
		inflated, err := gzip.NewReader(from)
		if err != nil {
			return 0, err
		}
		from = inflated
	}
	buffered := bufio.NewReaderSize(from, 256<<10)
	switch {
	case t.Accept == jsonType && t.Stream:
		return countLines(buffered)
	case t.Accept == jsonType:
		return countItems(buffered)
	case t.Stream:
		return countFrames(buffered)
	default:
		return countProtobufItems(buffered)
	}
}

// countItems counts the items of a list in JSON: the objects that begin inside
// the first object's array.
func countItems(from *bufio.Reader) (n int, err error) {
	var open []byte // the brackets around where we are
	inString := false
	for {
		c, err := from.ReadByte()
		if err == io.EOF && len(open) == 0 && n > 0 {
			return n, nil
		}
		if err != nil {
			return n, fmt.Errorf("a list with %d items is not whole: %w", n, err)
		}
		switch {
		case inString && c == '\\':
			if _, err := from.ReadByte(); err != nil {
				return n, err
			}
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			if string(open) == "{[" {
				n++
			}
			open = append(open, c)
		case c == '}' || c == ']':
			if len(open) == 0 {
				return n, errors.New("more brackets are closed than were opened")
			}
			open = open[:len(open)-1]
		}
	}
}

// countLines counts the objects of a streamed list in JSON, which ends in the
// bookmark.
func countLines(from *bufio.Reader) (n int, err error) {
	for {
		line, err := from.ReadSlice('\n')
		if err == bufio.ErrBufferFull {
			return n, errors.New("an event is larger than 256 kB")
		}
		switch {
		case bytes.HasPrefix(line, []byte(`{"type":"ADDED"`)):
			n++
		case bytes.HasPrefix(line, []byte(`{"type":"BOOKMARK"`)) && bytes.Contains(line, []byte(initialEventsEnd)):
			return n, nil
		case err == io.EOF:
			return n, errors.New("there is no bookmark at the end")
		default:
			return n, fmt.Errorf("event %d begins with %.60q", n, line)
		}
	}
}

// countFrames counts the objects of a streamed list in protobuf: frames of
// metav1.WatchEvent, each behind its length.
func countFrames(from *bufio.Reader) (n int, err error) {
	var frame []byte
	for {
		var head [4]byte
		if _, err := io.ReadFull(from, head[:]); err != nil {
			return n, fmt.Errorf("after %d events: %w", n, err)
		}
		length := int(binary.BigEndian.Uint32(head[:]))
		if length > 1<<20 {
			return n, fmt.Errorf("event %d has %d bytes", n, length)
		}
		if cap(frame) < length {
			frame = make([]byte, length)
		}
		frame = frame[:length]
		if _, err := io.ReadFull(from, frame); err != nil {
			// The reader stops as soon as it sees the mark, which is inside the
			// last frame.
			if bytes.Contains(frame, []byte(initialEventsEnd)) {
				return n, nil
			}
			return n, fmt.Errorf("in event %d: %w", n, err)
		}
		switch {
		case bytes.Contains(frame, []byte(initialEventsEnd)):
			return n, nil
		case bytes.Contains(frame[:min(len(frame), 32)], []byte("ADDED")):
			n++
		default:
			return n, fmt.Errorf("event %d begins with %.40q", n, frame)
		}
	}
}

// countProtobufItems counts the items of a list in Kubernetes' protobuf: four
// bytes, a runtime.Unknown, and in its raw bytes the list with its items.
func countProtobufItems(from *bufio.Reader) (n int, err error) {
	const raw, items = 2, 2 // field numbers
	magic := make([]byte, 4)
	if _, err := io.ReadFull(from, magic); err != nil || string(magic) != "k8s\x00" {
		return 0, fmt.Errorf("it begins with %q, not with the mark of protobuf (%w)", magic, err)
	}
	for {
		field, length, err := protobufField(from)
		if err != nil {
			return 0, err
		}
		if field == raw {
			break
		}
		if _, err := from.Discard(length); err != nil {
			return 0, err
		}
	}
	for {
		field, length, err := protobufField(from)
		if err != nil {
			return n, err
		}
		// Behind the list come the last fields of runtime.Unknown, which are
		// strings 3 and 4.
		if field > items {
			return n, nil
		}
		if field == items {
			n++
		}
		if _, err := from.Discard(length); err != nil {
			return n, fmt.Errorf("in item %d: %w", n, err)
		}
	}
}

// protobufField reads the head of a field, which has a length here always.
func protobufField(from *bufio.Reader) (field protowire.Number, length int, err error) {
	tag, err := binary.ReadUvarint(from)
	if err != nil {
		return 0, 0, err
	}
	field, kind := protowire.DecodeTag(tag)
	if kind != protowire.BytesType {
		return 0, 0, fmt.Errorf("field %d is of wire type %d", field, kind)
	}
	n, err := binary.ReadUvarint(from)
	return field, int(n), err
}
