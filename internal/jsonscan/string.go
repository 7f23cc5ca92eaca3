package jsonscan

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"unicode/utf8"
	"unsafe"

	"github.com/go-json-experiment/json/jsontext"
)

// String is a JSON string as it stands in the text.
type String struct {
	Quoted  []byte // with its quotes and escapes
	Escaped bool   // whether there are escapes: if not, Raw is the value
}

// Raw returns what is between the quotes.
func (t String) Raw() []byte { return t.Quoted[1 : len(t.Quoted)-1] }

// Value returns the string's value. Without escapes, which is nearly always, it
// shares the memory of the text, which must never change then.
func (t String) Value() (string, error) {
	if !t.Escaped {
		return unsafe.String(&t.Quoted[1], len(t.Quoted)-2), nil
	}
	value, err := t.Unescape(nil)
	return unsafe.String(unsafe.SliceData(value), len(value)), err
}

// Unescape appends the value of a string that has escapes. It is strict: a control
// character, half a surrogate pair and broken UTF-8 are errors.
func (t String) Unescape(dst []byte) ([]byte, error) {
	dst, err := jsontext.AppendUnquote(dst, t.Quoted)
	if err != nil {
		return nil, fmt.Errorf("invalid JSON string: %w", err)
	}
	return dst, nil
}

// String consumes a string, and looks only for its end and for escapes.
func (s *Scanner) String() (String, error) {
	if !s.Take('"') {
		return String{}, s.expected('"')
	}
	data, start, escaped := s.Data, s.Pos-1, false
	for i := special(data, s.Pos); i < len(data); i = special(data, i+2) {
		if data[i] == '"' {
			s.Pos = i + 1
			return String{data[start : i+1], escaped}, nil
		}
		escaped = true
	}
	s.Pos = len(data)
	return String{}, errTruncated
}

// Each byte of these is what its name says.
const (
	ones        = 0x0101010101010101
	highs       = 0x80 * ones
	quotes      = '"' * ones
	backslashes = '\\' * ones
)

// special returns the index of the first quote or backslash that is not before i, or at
// least the length of data if there is none. It looks at eight bytes at a time: a byte is
// zero in the difference to the wanted one, and then subtracting one from it borrows. Bytes
// after it may seem to be zero, too, none before it.
func special(data []byte, i int) int {
	for ; i+8 <= len(data); i += 8 {
		word := binary.LittleEndian.Uint64(data[i:])
		quote, backslash := word^quotes, word^backslashes
		if found := ((quote-ones)&^quote | (backslash-ones)&^backslash) & highs; found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
	}
	for i < len(data) && data[i] != '"' && data[i] != '\\' {
		i++
	}
	return i
}

// StrictString consumes a string and returns false if it is not valid. Whether its
// escapes are shows in Value.
func (s *Scanner) StrictString() (String, bool) {
	if !s.Take('"') {
		return String{}, false
	}
	data, start, ascii := s.Data, s.Pos-1, true
	for i := s.Pos; i < len(data); i++ {
		c := data[i]
		if plain[c] {
			continue
		}
		switch {
		case c == '"':
			s.Pos = i + 1
			t := String{Quoted: data[start : i+1]}
			return t, ascii || utf8.Valid(t.Quoted)
		case c == '\\':
			s.Pos = start
			t, err := s.String() // Unescape checks it
			return t, err == nil
		case c < ' ':
			return String{}, false
		}
		ascii = false
	}
	return String{}, false
}

// plain are the ASCII characters that stand for themselves in a string.
var plain = func() (table [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		table[c] = c != '"' && c != '\\'
	}
	return table
}()
