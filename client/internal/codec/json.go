package codec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// jsonOptions make the decoder accept what Kubernetes' own accepts: names are
// matched exactly, the last of duplicate names wins, and broken UTF-8 is
// replaced instead of losing the object.
var jsonOptions = jsonv2.JoinOptions(
	jsontext.AllowDuplicateNames(true),
	jsontext.AllowInvalidUTF8(true),
	jsonv1.ParseBytesWithLooseRFC4648(true),
)

// unmarshalJSON reads a whole document into a new object.
func unmarshalJSON(data []byte, into any) error {
	if u, ok := into.(*unstructured.Unstructured); ok {
		dec := newJSONReader(bytes.NewReader(data), &sharer{strings: &stringTable{}})
		if err := dec.unstructured(u); err != nil {
			return err
		}
		if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
			return errors.New("more than one JSON document")
		}
		return nil
	}
	return jsonv2.Unmarshal(data, into, jsonOptions)
}

// marshalJSON writes an object. Writes are rare beside reads, and only
// encoding/json has exactly the omitempty that the API types are written for.
func marshalJSON(obj any) ([]byte, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return json.Marshal(u.Object)
	}
	return json.Marshal(obj)
}

// jsonReader reads objects from a stream of JSON, straight from the tokens.
type jsonReader struct {
	*jsontext.Decoder
	typed  jsonDecoder
	values *valueDecoder // made for the first object without a Go type
}

func newJSONReader(r io.Reader, share *sharer) *jsonReader {
	return &jsonReader{Decoder: jsontext.NewDecoder(r, jsonOptions), typed: jsonDecoder{share: share}}
}

func (dec *jsonReader) unstructured(u *unstructured.Unstructured) error {
	if dec.values == nil {
		dec.values = &valueDecoder{dec: dec.Decoder, shared: dec.typed.share.strings}
	}
	object, err := dec.values.object()
	if err != nil {
		return err
	}
	u.Object = object
	return nil
}

// decodeItem reads the next value of a stream into a new object.
func (c *Codec[T]) decodeItem(dec *jsonReader) (T, error) {
	obj := c.newT()
	var err error
	if dec.PeekKind() != '{' {
		err = notAnObject(dec.Decoder)
	} else if u, ok := any(obj).(*unstructured.Unstructured); ok {
		err = dec.unstructured(u)
	} else {
		var doc jsontext.Value
		if doc, err = dec.ReadValue(); err == nil {
			err = dec.typed.unmarshal(doc, obj)
		}
	}
	if err != nil {
		var none T
		return none, err
	}
	c.finish(obj)
	return obj, nil
}

// decodeBookmark is decodeItem for an object that has nothing to share.
func (c *Codec[T]) decodeBookmark(dec *jsonReader) (T, error) {
	if c.form == FormUnstructured {
		return c.decodeItem(dec)
	}
	var none T
	doc, err := dec.ReadValue()
	if err != nil {
		return none, err
	}
	if doc.Kind() != '{' {
		return none, fmt.Errorf("want an object, got %v", doc.Kind())
	}
	obj := c.newT()
	if err := jsonv2.Unmarshal(doc, obj, jsonOptions); err != nil {
		return none, err
	}
	c.finish(obj)
	return obj, nil
}

// notAnObject says what is at the decoder's place instead: an error of the
// stream, or a value of another type.
func notAnObject(dec *jsontext.Decoder) error {
	kind := dec.PeekKind()
	if err := dec.SkipValue(); err != nil {
		return err
	}
	return fmt.Errorf("want an object, got %v", kind)
}

// eachMember reads a JSON object and calls f for each name; f must read the
// value.
func eachMember(dec *jsontext.Decoder, f func(name string) error) error {
	if dec.PeekKind() != '{' {
		return notAnObject(dec)
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() == '"' {
		name, err := dec.ReadToken()
		if err != nil {
			return err
		}
		if err := f(name.String()); err != nil {
			return err
		}
	}
	_, err := dec.ReadToken()
	return err
}
