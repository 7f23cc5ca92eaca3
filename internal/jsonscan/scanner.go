// Package jsonscan is the scanner of everything here that reads JSON without
// building values: the extraction of attributes, the decoder along Go types and
// the transcoder to protobuf. A Scanner consumes one token, or skips one value, at
// a time; what the tokens mean is for its callers.
package jsonscan

import (
	"errors"
	"fmt"
	"math"
)

// Scanner is a position in a JSON text. It never reads beyond the text and never
// changes it; what it returns shares the text's memory.
//
// A Scanner is not a validator. It checks what it needs to find the end of a token:
// text from an encoder of ours needs no more, and scanning it is what has to be
// quick. StrictString and Int check all that JSON demands of them. A caller that
// must refuse what is invalid uses those, and validates by jsontext.Value what it
// skips.
type Scanner struct {
	Data []byte
	Pos  int // the index in Data of what comes next
}

var errTruncated = errors.New("the JSON ends too early")

// Peek skips white space and returns the byte that follows, 0 at the end of the
// text. It does not consume that byte.
func (s *Scanner) Peek() byte {
	if s.Pos < len(s.Data) && s.Data[s.Pos] > ' ' {
		return s.Data[s.Pos]
	}
	return s.skipSpace()
}

func (s *Scanner) skipSpace() byte {
	for s.Pos < len(s.Data) {
		switch c := s.Data[s.Pos]; c {
		case ' ', '\n', '\t', '\r':
			s.Pos++
		default:
			return c
		}
	}
	return 0
}

// AtEnd skips white space and reports whether nothing follows.
func (s *Scanner) AtEnd() bool {
	s.skipSpace()
	return s.Pos == len(s.Data)
}

// Take consumes c, which is neither white space nor 0, if it comes next.
func (s *Scanner) Take(c byte) bool {
	if s.Peek() != c {
		return false
	}
	s.Pos++
	return true
}

// Expect consumes c, or says what comes instead of it.
func (s *Scanner) Expect(c byte) error {
	if s.Take(c) {
		return nil
	}
	return s.expected(c)
}

func (s *Scanner) expected(c byte) error {
	if s.AtEnd() {
		return errTruncated
	}
	return fmt.Errorf("invalid JSON at byte %d: found %q where %q belongs", s.Pos, s.Data[s.Pos], c)
}

// Literal consumes the word true, false or null if it comes next. That no letter
// follows the word shows when the next token is expected.
func (s *Scanner) Literal(word string) bool {
	s.Peek()
	rest := s.Data[s.Pos:]
	if len(rest) < len(word) || string(rest[:len(word)]) != word {
		return false
	}
	s.Pos += len(word)
	return true
}

// Int consumes an integer that is written as one, and that fits into the given
// number of bits. A fraction or an exponent is left, and is not what may follow.
func (s *Scanner) Int(bits int) (int64, bool) {
	negative := s.Peek() == '-'
	if negative {
		s.Pos++
	}
	const maxDigits = 19 // fit into 64 bits, all of them
	start, n := s.Pos, uint64(0)
	for s.Pos < len(s.Data) && s.Pos-start <= maxDigits {
		digit := s.Data[s.Pos] - '0'
		if digit > 9 {
			break
		}
		n = 10*n + uint64(digit)
		s.Pos++
	}
	length, limit := s.Pos-start, uint64(1)<<(bits-1)
	if length == 0 || length > maxDigits || length > 1 && s.Data[start] == '0' {
		return 0, false
	}
	if negative {
		return -int64(n), n <= limit //nolint:gosec // It is within the limit, or not used.
	}
	return int64(n & math.MaxInt64), n < limit //nolint:gosec // As above.
}

// Member consumes the next member of an object up to its colon and returns its key,
// or false at the end of the object, which it consumes. first is true before the
// first member; the opening brace has been consumed. The caller consumes the value.
func (s *Scanner) Member(first bool) (key String, ok bool, err error) {
	if s.Take('}') {
		return String{}, false, nil
	}
	if !first && !s.Take(',') {
		return String{}, false, s.expected(',')
	}
	if key, err = s.String(); err != nil {
		return String{}, false, err
	}
	if !s.Take(':') {
		return String{}, false, s.expected(':')
	}
	return key, true, nil
}

// Skip consumes one value of any type and returns its text. Inside objects and
// arrays it only looks for what ends them: strings and brackets.
func (s *Scanner) Skip() ([]byte, error) {
	c, start := s.Peek(), s.Pos
	switch c {
	case '"':
		if _, err := s.String(); err != nil {
			return nil, err
		}
	case '{', '[':
		if !s.skipNested() {
			return nil, errTruncated
		}
	default:
		s.skipLiteral()
		if s.Pos == start {
			if s.AtEnd() {
				return nil, errTruncated
			}
			return nil, fmt.Errorf("invalid JSON at byte %d: found %q", s.Pos, c)
		}
	}
	return s.Data[start:s.Pos:s.Pos], nil
}

// skipNested consumes an object or array, or returns false if it has no end. It is
// where the time goes, so the loop works on locals and leaves strings without
// calling anything.
func (s *Scanner) skipNested() bool {
	data, depth := s.Data, 0
	for i := s.Pos; i < len(data); i++ {
		switch data[i] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				s.Pos = i + 1
				return true
			}
		case '"':
			for i = special(data, i+1); i < len(data) && data[i] == '\\'; {
				i = special(data, i+2)
			}
		}
	}
	s.Pos = len(data)
	return false
}

// skipLiteral consumes a number, true, false or null, if there is one.
func (s *Scanner) skipLiteral() {
	for s.Pos < len(s.Data) {
		c := s.Data[s.Pos]
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && c != '-' && c != '+' && c != '.' && c != 'E' {
			return
		}
		s.Pos++
	}
}
