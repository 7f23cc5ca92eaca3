package codec

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// valueDecoder builds maps and slices from tokens, in the form that
// unstructured.Unstructured wants: int64 for integers, float64 for others.
type valueDecoder struct {
	dec     *jsontext.Decoder
	shared  *stringTable
	scratch []byte
}

func (d *valueDecoder) value() (any, error) {
	switch d.dec.PeekKind() {
	case '{':
		return d.object()
	case '[':
		return d.array()
	case '"':
		return d.string()
	}
	tok, err := d.dec.ReadToken()
	if err != nil {
		return nil, err
	}
	switch tok.Kind() {
	case '0':
		return number(tok.String())
	case 't':
		return true, nil
	case 'f':
		return false, nil
	case 'n':
		return nil, nil
	}
	return nil, fmt.Errorf("unexpected %v", tok.Kind())
}

func (d *valueDecoder) object() (map[string]any, error) {
	if d.dec.PeekKind() != '{' {
		return nil, notAnObject(d.dec)
	}
	if _, err := d.dec.ReadToken(); err != nil {
		return nil, err
	}
	m := map[string]any{}
	for d.dec.PeekKind() == '"' {
		name, err := d.string()
		if err != nil {
			return nil, err
		}
		if m[name], err = d.value(); err != nil {
			return nil, err
		}
	}
	_, err := d.dec.ReadToken()
	return m, err
}

func (d *valueDecoder) array() ([]any, error) {
	if _, err := d.dec.ReadToken(); err != nil {
		return nil, err
	}
	a := []any{}
	for {
		// PeekKind is 0 at an error, which value then returns.
		if d.dec.PeekKind() == ']' {
			_, err := d.dec.ReadToken()
			return a, err
		}
		v, err := d.value()
		if err != nil {
			return nil, err
		}
		a = append(a, v)
	}
}

// string reads a string, or a member's name.
func (d *valueDecoder) string() (string, error) {
	raw, err := d.dec.ReadValue()
	if err != nil {
		return "", err
	}
	if bytes.IndexByte(raw, '\\') < 0 && utf8.Valid(raw) {
		return d.shared.string(raw[1 : len(raw)-1]), nil
	}
	// The error is about invalid UTF-8, which has been replaced.
	d.scratch, _ = jsontext.AppendUnquote(d.scratch[:0], raw)
	return d.shared.string(d.scratch), nil
}

// number keeps integers exact.
func number(s string) (any, error) {
	if i, err := strconv.ParseInt(s, 10, 64); err == nil {
		return i, nil
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return nil, fmt.Errorf("number %s: %w", s, err)
	}
	return f, nil
}
