package codec

import (
	"github.com/levelwire/levelwire/internal/jsonscan"
)

// decodeValues decodes the object with which text begins into maps and slices, in
// the form that unstructured.Unstructured wants, and returns where it ends. Like
// decode it checks while it reads, and fails with errUnusualJSON at what valueDecoder
// has to read.
func (d *jsonDecoder) decodeValues(text []byte) (object map[string]any, end int, err error) {
	d.scan, d.nesting = jsonscan.Scanner{Data: text}, 0
	if d.scan.Peek() != '{' {
		return nil, 0, errUnusualJSON
	}
	object, err = d.objectValue()
	end = d.scan.Pos
	d.scan.Data = nil
	return object, end, err
}

func (d *jsonDecoder) anyValue() (any, error) {
	switch d.scan.Peek() {
	case '{':
		return d.objectValue()
	case '[':
		return d.arrayValue()
	case '"':
		return d.stringValue()
	case 't':
		return true, d.literal("true")
	case 'f':
		return false, d.literal("false")
	case 'n':
		return nil, d.literal("null")
	}
	return d.numberValue()
}

func (d *jsonDecoder) literal(word string) error {
	if !d.scan.Literal(word) {
		return errUnusualJSON
	}
	return nil
}

func (d *jsonDecoder) stringValue() (string, error) {
	token, err := d.token()
	if err != nil {
		return "", err
	}
	return d.share.strings.string(token), nil
}

func (d *jsonDecoder) objectValue() (map[string]any, error) {
	if d.nesting++; d.nesting > maxNesting {
		return nil, errUnusualJSON
	}
	d.scan.Take('{')
	object := map[string]any{}
	for first := true; !d.scan.Take('}'); first = false {
		if !first && !d.scan.Take(',') {
			return nil, errUnusualJSON
		}
		name, err := d.stringValue()
		if err != nil || !d.scan.Take(':') {
			return nil, errUnusualJSON
		}
		if object[name], err = d.anyValue(); err != nil {
			return nil, err
		}
	}
	d.nesting--
	return object, nil
}

func (d *jsonDecoder) arrayValue() ([]any, error) {
	if d.nesting++; d.nesting > maxNesting {
		return nil, errUnusualJSON
	}
	d.scan.Take('[')
	array := []any{}
	for first := true; !d.scan.Take(']'); first = false {
		if !first && !d.scan.Take(',') {
			return nil, errUnusualJSON
		}
		element, err := d.anyValue()
		if err != nil {
			return nil, err
		}
		array = append(array, element)
	}
	d.nesting--
	return array, nil
}

func (d *jsonDecoder) numberValue() (any, error) {
	start := d.scan.Pos
	if n, ok := d.scan.Int(64); ok && d.scan.Pos < len(d.scan.Data) && endsBetween('0', d.scan.Data[d.scan.Pos]) {
		return n, nil
	}
	d.scan.Pos = start
	text, ok := d.scan.StrictSkip()
	if !ok {
		return nil, errUnusualJSON
	}
	return number(string(text))
}
