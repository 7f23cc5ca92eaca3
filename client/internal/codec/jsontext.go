package codec

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/levelwire/levelwire/internal/jsonscan"
)

// jsonText is a JSON text of which a part is in memory. Its users look at what is
// there and ask for more when that does not suffice: most objects lie in the buffer
// as a whole, and can be decoded without looking for their end first.
type jsonText struct {
	src        *Source
	buf        []byte
	start, end int                // of the part that has not been consumed
	err        error              // of the source, behind what is in memory
	large      *[largestRead]byte // from largeBuffers
}

// A long text gets a large buffer, as an object that is cut by the buffer's end is
// decoded twice. Lists come in many pages, so large buffers are used again.
const (
	firstRead   = 16 << 10
	largestRead = 256 << 10
)

var largeBuffers = sync.Pool{New: func() any { return new([largestRead]byte) }}

// release gives the large buffer back. The text must not be used any more, nor what
// it returned.
func (t *jsonText) release() {
	if t.large != nil {
		largeBuffers.Put(t.large)
	}
}

// rest returns what is in memory and has not been consumed. It is valid until more
// is read.
func (t *jsonText) rest() []byte { return t.buf[t.start:t.end] }

// more reads at least as much again as is in memory, unless the text ends or the
// limit of the source comes first: with less, a long object would be looked at too
// often. It returns an error if nothing more can be read.
func (t *jsonText) more() error {
	if t.err != nil {
		t.src.err = t.err
		return t.err
	}
	into := t.buf
	switch {
	case t.buf == nil:
		into = make([]byte, firstRead)
	case len(t.buf) < largestRead:
		t.large = largeBuffers.Get().(*[largestRead]byte)
		into = t.large[:]
	case 2*len(t.rest()) > len(t.buf):
		if size := t.src.atMost(len(t.rest()), 2*len(t.buf)); size > len(t.buf) {
			into = make([]byte, size)
		}
	}
	t.end, t.start, t.buf = copy(into, t.rest()), 0, into
	for read := 0; t.end < len(t.buf) && (read == 0 || !t.src.exhausted()); {
		n, err := t.src.Read(t.buf[t.end:])
		t.end += n
		read += n
		if err != nil && read == 0 {
			return err
		}
		if err != nil {
			// What is there may be enough.
			t.err, t.src.err = err, nil
			break
		}
	}
	return nil
}

// peek returns the byte that comes next, without white space.
func (t *jsonText) peek() (byte, error) {
	for {
		s := jsonscan.Scanner{Data: t.rest()}
		c := s.Peek()
		t.start += s.Pos
		if c != 0 || t.start < t.end {
			return c, nil
		}
		if err := t.more(); err != nil {
			return 0, unexpected(err)
		}
	}
}

// take consumes c, or says what comes instead.
func (t *jsonText) take(c byte) error {
	next, err := t.peek()
	if err != nil {
		return err
	}
	if next != c {
		return fmt.Errorf("found %q where %q belongs", next, c)
	}
	t.start++
	return nil
}

// value consumes a value of any type and returns its text, which is checked only as
// far as is needed to find its end.
func (t *jsonText) value() ([]byte, error) {
	if _, err := t.peek(); err != nil {
		return nil, err
	}
	for {
		if text, ok := t.whole(); ok {
			t.start += len(text)
			return text, nil
		}
		if err := t.more(); err != nil {
			return nil, t.cut(err)
		}
	}
}

// whole returns the value with which the rest begins, if all of it is there.
func (t *jsonText) whole() ([]byte, bool) {
	s := jsonscan.Scanner{Data: t.rest()}
	text, err := s.Skip()
	return text, err == nil && s.Pos < len(s.Data)
}

// cut returns the error of a value that does not end: the source's, unless the
// value is wrong in any case.
func (t *jsonText) cut(err error) error {
	if errors.Is(err, ErrFrameTooLarge) {
		return err // to look for another error takes as much memory again
	}
	_, invalid := jsontext.NewDecoder(bytes.NewReader(t.rest()), jsonOptions).ReadValue()
	if invalid == nil || errors.Is(invalid, io.EOF) || errors.Is(invalid, io.ErrUnexpectedEOF) {
		return unexpected(err)
	}
	t.src.err = nil
	return invalid
}

// members reads an object and calls f for each name; f must consume the value.
func (t *jsonText) members(f func(name string) error) error {
	if err := t.isObject(); err != nil {
		return err
	}
	t.start++
	return t.each('}', func() error {
		quoted, err := t.value()
		if err != nil {
			return err
		}
		name, err := jsontext.AppendUnquote(nil, quoted)
		if err != nil {
			return err
		}
		if err := t.take(':'); err != nil {
			return err
		}
		return f(string(name))
	})
}

// elements reads an array and calls f for each element, which f must consume.
func (t *jsonText) elements(f func() error) error {
	c, err := t.peek()
	if err != nil {
		return err
	}
	if c != '[' {
		return fmt.Errorf("want an array, got %v", jsontext.Value([]byte{c}).Kind())
	}
	t.start++
	return t.each(']', f)
}

// isObject returns an error if what comes next is not an object.
func (t *jsonText) isObject() error {
	c, err := t.peek()
	if err == nil && c != '{' {
		err = fmt.Errorf("want an object, got %v", jsontext.Value([]byte{c}).Kind())
	}
	return err
}

// each calls f before each part of an object or array, until what closes it.
func (t *jsonText) each(closing byte, f func() error) error {
	for first := true; ; first = false {
		c, err := t.peek()
		if err != nil {
			return err
		}
		if c == closing {
			t.start++
			return nil
		}
		if !first {
			if err := t.take(','); err != nil {
				return err
			}
			if c, err = t.peek(); err != nil {
				return err
			} else if c == closing {
				return fmt.Errorf("found %q behind a comma", c)
			}
		}
		if err := f(); err != nil {
			return err
		}
	}
}
