package codec

import (
	"encoding/json"
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
		return (&jsonDecoder{share: &sharer{strings: &stringTable{}}}).unmarshal(data, u)
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

// jsonReader reads objects from a stream of JSON, each as a whole.
type jsonReader struct {
	*jsontext.Decoder
	objects jsonDecoder
}

func newJSONReader(r io.Reader, share *sharer) *jsonReader {
	return &jsonReader{Decoder: jsontext.NewDecoder(r, jsonOptions), objects: jsonDecoder{share: share}}
}

// decodeItem reads the next value of a stream into a new object.
func (c *Codec[T]) decodeItem(dec *jsonReader) (T, error) {
	obj := c.newT()
	var err error
	if dec.PeekKind() != '{' {
		err = notAnObject(dec.Decoder)
	} else {
		var doc jsontext.Value
		if doc, err = dec.ReadValue(); err == nil {
			err = dec.objects.unmarshal(doc, obj)
		}
	}
	if err == nil {
		err = c.finish(obj)
	}
	if err != nil {
		var none T
		return none, err
	}
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
	return obj, c.finish(obj)
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
