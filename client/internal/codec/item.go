package codec

import (
	"bytes"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// Item is what a codec decodes: an object of the API.
type Item interface {
	runtime.Object
	metav1.Object
}

// List is a decoded list. Its layout is that of client.List, so that
// converting one into the other copies nothing.
type List[T Item] struct {
	metav1.ListMeta
	Items []T
}

// Event is a decoded event of a watch, never of type watch.Error. Its layout is
// that of client.WatchEvent, so that converting one into the other changes
// nothing in memory.
type Event[T Item] struct {
	Type   watch.EventType
	Object T
}

// DecodeList decodes a list while it reads it, item by item. If it fails,
// [Source.ReadError] returns the error of the connection, if that is the reason.
func (c *Codec[T]) DecodeList(enc Encoding, src *Source) (*List[T], error) {
	switch enc {
	case EncodingJSON:
		return c.decodeJSONList(src)
	case EncodingProtobuf:
		return c.decodeProtobufList(src)
	}
	return nil, errUnknownEncoding
}

// ItemDecoder returns a function that decodes one object at each call: a whole
// document in JSON, or a bare message in protobuf. The objects share what the
// items of a list share.
func (c *Codec[T]) ItemDecoder(enc Encoding) (func(data []byte) (T, error), error) {
	share := c.newSharer()
	switch enc {
	case EncodingProtobuf:
		return func(data []byte) (T, error) {
			obj := c.newT()
			m, ok := any(obj).(protoUnmarshaler)
			if !ok {
				return obj, fmt.Errorf("%T cannot be decoded from protobuf", obj)
			}
			if err := share.unmarshalShared(data, m); err != nil {
				return obj, err
			}
			return obj, c.finish(obj)
		}, nil
	case EncodingJSON:
		in := bytes.NewReader(nil)
		dec := newJSONReader(in, share)
		return func(data []byte) (T, error) {
			in.Reset(data)
			dec.Reset(in, jsonOptions)
			obj, err := c.decodeItem(dec)
			if err == nil && len(bytes.TrimRight(data[dec.InputOffset():], " \t\r\n")) > 0 {
				err = errors.New("more than one JSON document")
			}
			return obj, err
		}, nil
	}
	return nil, errUnknownEncoding
}
