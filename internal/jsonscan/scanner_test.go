package jsonscan_test

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/levelwire/levelwire/internal/jsonscan"
)

func TestInt(t *testing.T) {
	for _, test := range []struct {
		text string
		bits int
		want int64
		ok   bool
	}{
		{"0", 32, 0, true}, {" -0", 32, 0, true}, {"7", 64, 7, true}, {"07", 64, 0, false}, {"-", 64, 0, false}, {"", 64, 0, false}, {"x", 64, 0, false},
		{"2147483647", 32, math.MaxInt32, true}, {"-2147483648", 32, math.MinInt32, true}, {"2147483648", 32, 0, false}, {"-2147483649", 32, 0, false},
		{"9223372036854775807", 64, math.MaxInt64, true}, {"-9223372036854775808", 64, math.MinInt64, true},
		{"9223372036854775808", 64, 0, false}, {"-9223372036854775809", 64, 0, false}, {"18446744073709551617", 64, 0, false}, {"100000000000000000000", 64, 0, false},
	} {
		s := jsonscan.Scanner{Data: []byte(test.text)}
		got, ok := s.Int(test.bits)
		if ok != test.ok || ok && (got != test.want || !s.AtEnd()) {
			t.Errorf("%q is read as %d, %v", test.text, got, ok)
		}
	}
}

func TestStrictString(t *testing.T) {
	for text, want := range map[string]bool{
		`""`: true, ` "a/é😀"`: true, `"\n\u00e9\ud83d\ude42"`: true, "\"\x7f\"": true,
		"\"\xff\"": false, "\"a\nb\"": false, "\"\\t\n\"": false, `"\x"`: false, `"\ud800"`: false, "\"\\n\xff\"": false, `"a`: false, `"a\`: false, `a`: false, ``: false,
	} {
		s := jsonscan.Scanner{Data: []byte(text)}
		quoted, ok := s.StrictString()
		if ok {
			_, err := quoted.Value()
			ok = err == nil
		}
		if ok != want {
			t.Errorf("%q is valid: %v, want %v", text, ok, want)
		}
	}
}

// FuzzScanner holds the scanner against the tokens of jsontext. Of valid text it
// finds the same; of any text it skips no less than a valid value, and it stays
// within the text.
func FuzzScanner(f *testing.F) {
	for _, text := range []string{
		`{"a":[1,-2.5e+3,true,false,null,"x\"\\\u00e9"],"b":{},"c":[],"\u0064":{"e":"é"}}`,
		" [ 9223372036854775807 , {\t\"a\" : \"]}\" }\r\n] ", `"\ud83d\ude42"`, `{"a":1,}`, `[1 2]`, `{"a" 1}`, `"a`, `"a\`, "\"\x00\"", `nul`, `01`, "",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s := jsonscan.Scanner{Data: text}
		skipped, err := s.Skip()
		whole := err == nil && s.AtEnd()
		if s.Pos > len(text) || json.Valid(text) && (!whole || !bytes.Equal(skipped, bytes.Trim(text, " \t\r\n"))) {
			t.Fatalf("%q: skipped %q (%v), to byte %d", text, skipped, err, s.Pos)
		}
		s = jsonscan.Scanner{Data: text}
		strict, ok := s.StrictSkip()
		if valid := jsontext.Value(text).IsValid(jsontext.AllowDuplicateNames(true)); valid != (ok && s.AtEnd()) && !(valid && nested(text)) || valid && ok && !bytes.Equal(strict, skipped) {
			t.Fatalf("%q: valid: %v, but skipped %q, %v, to byte %d", text, valid, strict, ok, s.Pos)
		}
		s = jsonscan.Scanner{Data: text}
		d := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true))
		same := walk(t, &s, d, 0) && s.AtEnd()
		if valid := jsontext.Value(text).IsValid(jsontext.AllowDuplicateNames(true)); same != valid {
			t.Fatalf("%q: valid: %v, read the same: %v, to byte %d", text, valid, same, s.Pos)
		}
	})
}

// nested reports whether a text has so many brackets that it may be nested deeper
// than StrictSkip goes.
func nested(text []byte) bool {
	return bytes.Count(text, []byte("["))+bytes.Count(text, []byte("{")) > 400
}

// walk reads one value by both, and returns false where it is not valid or they
// differ.
func walk(t *testing.T, s *jsonscan.Scanner, d *jsontext.Decoder, depth int) bool {
	t.Helper()
	if depth > 100 {
		t.Skip("deeper than walk goes")
	}
	from := s.Pos
	switch s.Peek() {
	case '{':
		return walkObject(t, s, d, depth)
	case '[':
		if !s.Take('[') || !sameBracket(s, d) {
			return false
		}
		for first := true; !s.Take(']'); first = false {
			if !first && !s.Take(',') || !walk(t, s, d, depth+1) {
				return false
			}
		}
		return sameBracket(s, d)
	case '"':
		quoted, ok := s.StrictString()
		return ok && sameString(d, quoted)
	case 't', 'f', 'n':
		token, err := d.ReadToken()
		return err == nil && s.Literal(token.String())
	}
	n, ok := s.Int(64)
	number := *s
	s.Pos = from
	text, err := s.Skip()
	token, invalid := d.ReadToken()
	if err != nil || invalid != nil || token.String() != string(text) {
		return false
	}
	want, notInt := strconv.ParseInt(string(text), 10, 64)
	isInt := ok && number.Pos == s.Pos
	return isInt == (notInt == nil) && (!isInt || n == want)
}

func walkObject(t *testing.T, s *jsonscan.Scanner, d *jsontext.Decoder, depth int) bool {
	t.Helper()
	if s.Expect('{') != nil || !sameBracket(s, d) {
		return false
	}
	for first := true; ; first = false {
		key, ok, err := s.Member(first)
		if err != nil {
			return false
		}
		if !ok {
			return sameBracket(s, d)
		}
		if !sameString(d, key) || !walk(t, s, d, depth+1) {
			return false
		}
	}
}

// sameBracket reads the bracket that the scanner has taken.
func sameBracket(s *jsonscan.Scanner, d *jsontext.Decoder) bool {
	token, err := d.ReadToken()
	return err == nil && byte(token.Kind()) == s.Data[s.Pos-1]
}

func sameString(d *jsontext.Decoder, quoted jsonscan.String) bool {
	token, invalid := d.ReadToken()
	if invalid != nil {
		return false
	}
	value, err := quoted.Value()
	return err == nil && token.Kind() == '"' && value == token.String()
}
