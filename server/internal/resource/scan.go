package resource

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/go-json-experiment/json/jsontext"
)

// scanner walks over JSON that was written by an encoder, to find a few
// members without decoding the rest. It checks what it needs to keep its
// footing and to never read beyond the input; it is not a validator.
type scanner struct {
	data []byte
	pos  int
}

var errTruncated = errors.New("the JSON ends too early")

// next returns the next byte that is not white space, without consuming it.
func (s *scanner) next() (byte, error) {
	for s.pos < len(s.data) {
		c := s.data[s.pos]
		if c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return c, nil
		}
		s.pos++
	}
	return 0, errTruncated
}

// expect consumes the byte c.
func (s *scanner) expect(c byte) error {
	got, err := s.next()
	if err != nil {
		return err
	}
	if got != c {
		return fmt.Errorf("invalid JSON at byte %d: found %q where %q belongs", s.pos, got, c)
	}
	s.pos++
	return nil
}

// str consumes a string and returns what is between its quotes. Only if
// escaped is set does that differ from the string's value.
func (s *scanner) str() (raw []byte, escaped bool, err error) {
	if err := s.expect('"'); err != nil {
		return nil, false, err
	}
	start := s.pos
	for i := start; i < len(s.data); i++ {
		switch s.data[i] {
		case '"':
			s.pos = i + 1
			return s.data[start:i], escaped, nil
		case '\\':
			escaped = true
			i++
		}
	}
	s.pos = len(s.data)
	return nil, false, errTruncated
}

// skip consumes one value of any type. Inside objects and arrays it only
// looks for what ends them: strings and brackets.
func (s *scanner) skip() error {
	c, err := s.next()
	if err != nil {
		return err
	}
	switch c {
	case '"':
		_, _, err := s.str()
		return err
	case '{', '[':
		return s.skipNested()
	}
	if len(s.literal()) == 0 {
		return fmt.Errorf("invalid JSON at byte %d: found %q", s.pos, c)
	}
	return nil
}

// skipNested consumes an object or array. It is where the time goes, so the
// loop works on locals and leaves strings without calling anything.
func (s *scanner) skipNested() error {
	data, depth := s.data, 0
	for i := s.pos; i < len(data); i++ {
		switch data[i] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				s.pos = i + 1
				return nil
			}
		case '"':
			for i++; i < len(data) && data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
		}
	}
	s.pos = len(data)
	return errTruncated
}

// literal consumes a number, true, false or null, and returns its text. Empty
// if there is none.
func (s *scanner) literal() []byte {
	start := s.pos
	for s.pos < len(s.data) {
		c := s.data[s.pos]
		if c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c == '-' || c == '+' || c == '.' || c == 'E' {
			s.pos++
			continue
		}
		break
	}
	return s.data[start:s.pos]
}

// member moves to the next member of an object and returns its key, or false
// at the end of the object. first is true before the first one; the opening
// brace has been consumed. The caller must consume the value.
func (s *scanner) member(first bool) (key []byte, escaped, ok bool, err error) {
	c, err := s.next()
	if err != nil {
		return nil, false, false, err
	}
	if c == '}' {
		s.pos++
		return nil, false, false, nil
	}
	if !first {
		if err := s.expect(','); err != nil {
			return nil, false, false, err
		}
		if _, err := s.next(); err != nil {
			return nil, false, false, err
		}
	}
	key, escaped, err = s.str()
	if err != nil {
		return nil, false, false, err
	}
	return key, escaped, true, s.expect(':')
}

// text turns the inside of a string into its value. Without escapes, which is
// nearly always, the result shares raw's memory.
func text(raw []byte, escaped bool) (string, error) {
	if !escaped {
		return unsafe.String(unsafe.SliceData(raw), len(raw)), nil
	}
	quoted := make([]byte, 0, len(raw)+2)
	quoted = append(append(append(quoted, '"'), raw...), '"')
	value, err := jsontext.AppendUnquote(nil, quoted)
	if err != nil {
		return "", fmt.Errorf("invalid JSON string: %w", err)
	}
	return string(value), nil
}
