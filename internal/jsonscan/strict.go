package jsonscan

import (
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// maxNesting bounds the stack of StrictSkip.
const maxNesting = 500

// StrictSkip consumes one value of any type and returns its text, or false if it is
// not valid JSON, or nested so deeply that another parser must look at it. Names may
// stand twice in an object.
func (s *Scanner) StrictSkip() ([]byte, bool) {
	s.Peek()
	start := s.Pos
	if !s.strictValue(maxNesting) {
		return nil, false
	}
	return s.Data[start:s.Pos:s.Pos], true
}

func (s *Scanner) strictValue(nesting int) bool {
	switch s.Peek() {
	case '"':
		return s.strictString()
	case '{':
		return s.strictObject(nesting)
	case '[':
		return s.strictArray(nesting)
	case 't':
		return s.Literal("true")
	case 'f':
		return s.Literal("false")
	case 'n':
		return s.Literal("null")
	}
	start := s.Pos
	s.skipLiteral()
	return jsontext.Value(s.Data[start:s.Pos]).IsValid()
}

func (s *Scanner) strictObject(nesting int) bool {
	if nesting == 0 {
		return false
	}
	s.Pos++
	for first := true; !s.Take('}'); first = false {
		if !first && !s.Take(',') || !s.strictString() || !s.Take(':') {
			return false
		}
		// Empty objects are half of all values in managed fields.
		if rest := s.Data[s.Pos:]; len(rest) > 1 && rest[0] == '{' && rest[1] == '}' && nesting > 1 {
			s.Pos += len("{}")
		} else if !s.strictValue(nesting - 1) {
			return false
		}
	}
	return true
}

func (s *Scanner) strictArray(nesting int) bool {
	if nesting == 0 {
		return false
	}
	s.Pos++
	for first := true; !s.Take(']'); first = false {
		if !first && !s.Take(',') || !s.strictValue(nesting-1) {
			return false
		}
	}
	return true
}

// strictString consumes a string and checks all of it.
func (s *Scanner) strictString() bool {
	t, ok := s.StrictString()
	return ok && (!t.Escaped || validEscapes(t.Quoted))
}

// validEscapes reports whether a string that has escapes is valid.
func validEscapes(quoted []byte) bool {
	for i := 1; i < len(quoted)-1; i++ {
		switch c := quoted[i]; {
		case plain[c]:
		case c == '\\' && strings.IndexByte(`"\/bfnrt`, quoted[i+1]) >= 0:
			i++
		case c >= utf8.RuneSelf, c == '\\': // seldom
			return jsontext.Value(quoted).IsValid()
		default:
			return false
		}
	}
	return true
}
