// Package codec decodes what an API server answers and encodes what it is sent:
// objects, lists that are read item by item, and the events of a watch, each in
// JSON and in protobuf.
//
// A [Codec] knows the type of an endpoint's items; a [Source] is the answer that
// it reads from. Errors are plain: package client makes them the ones that it
// documents.
//
// Reading order: codec.go and media.go; source.go; item.go with jsonlist.go and
// protobuflist.go; events.go with watchjson.go and watchprotobuf.go. Objects are
// read by the shapes of their Go types (jsonshape.go and jsondecode.go,
// protoshape.go and protodecode.go), so that equal parts can be shared (share.go,
// laststates.go).
package codec

import (
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// Form is what the items of a resource are in Go.
type Form int

// The forms: structs of Go, unstructured.Unstructured, and
// metav1.PartialObjectMetadata.
const (
	FormTyped Form = iota
	FormUnstructured
	FormMetadata
)

// Codec decodes the items of one client.Resource. It does not change once it is
// made, and any number of goroutines may use it.
type Codec[T Item] struct {
	newT func() T
	form Form
	// gvk is set for built-in types only. The codec clears kind and apiVersion of
	// their items, as client-go does: the Go type implies them, and servers
	// leave them out of the items of lists.
	gvk schema.GroupVersionKind
	// protobuf is true for a type that can be decoded from protobuf.
	protobuf bool
	// sharing makes the objects of one stream share equal parts: see
	// client.Resource.Sharing.
	sharing bool
}

// New returns the codec of items that newT makes, each time a new, empty one. gvk
// is empty for types that are not built in.
func New[T Item](gvk schema.GroupVersionKind, f Form, newT func() T) *Codec[T] {
	c := &Codec[T]{newT: newT, form: f, gvk: gvk}
	if f == FormMetadata || f == FormTyped && !gvk.Empty() {
		_, c.protobuf = any(newT()).(protoUnmarshaler)
	}
	return c
}

// WithSharing returns a codec for the same items that lets the objects of one
// stream share equal parts.
func (c *Codec[T]) WithSharing() *Codec[T] {
	shares := *c
	shares.sharing = true
	return &shares
}

// NewItem returns a new, empty item.
func (c *Codec[T]) NewItem() T { return c.newT() }

// Form returns what the items are in Go.
func (c *Codec[T]) Form() Form { return c.form }

// CanProtobuf returns whether the items can be decoded from protobuf.
func (c *Codec[T]) CanProtobuf() bool { return c.protobuf }

// finish removes from a decoded item what depends on the encoding it came in.
func (c *Codec[T]) finish(obj T) {
	if c.form == FormTyped && !c.gvk.Empty() {
		obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
}

// Decode decodes one object from a whole body.
func (c *Codec[T]) Decode(enc Encoding, data []byte) (T, error) {
	obj := c.newT()
	if err := DecodeInto(enc, data, obj); err != nil {
		var none T
		return none, err
	}
	c.finish(obj)
	return obj, nil
}

// DecodeInto decodes one object of any kind from a whole body.
func DecodeInto(enc Encoding, data []byte, into runtime.Object) error {
	switch enc {
	case EncodingJSON:
		return unmarshalJSON(data, into)
	case EncodingProtobuf:
		return unmarshalProtobuf(data, into)
	}
	return errors.New("neither JSON nor protobuf")
}

// Encode encodes the body of a request, and returns it with its media type. The
// body of a built-in type has its kind even if obj has none. Encode does not
// change obj, which other goroutines may read: it may come out of a cache.
func Encode(obj runtime.Object, protobuf bool) ([]byte, string, error) {
	gvk := obj.GetObjectKind().GroupVersionKind()
	if gvk.Kind == "" {
		kinds, _, err := scheme.Scheme.ObjectKinds(obj)
		if err != nil || len(kinds) == 0 {
			return nil, "", fmt.Errorf("%T has no kind and is not in client-go's scheme: set its kind and apiVersion", obj)
		}
		gvk = kinds[0]
	}
	if protobuf {
		if m, ok := obj.(protoMarshaler); ok {
			data, err := marshalProtobuf(m, gvk)
			return data, Protobuf, err
		}
	}
	data, err := marshalJSON(withKind(obj, gvk))
	return data, JSON, err
}

// withKind returns obj if it has the kind gvk, or else a shallow copy that has.
func withKind(obj runtime.Object, gvk schema.GroupVersionKind) runtime.Object {
	if obj.GetObjectKind().GroupVersionKind() == gvk {
		return obj
	}
	if _, ok := obj.(*unstructured.Unstructured); ok {
		return obj // its kind is within a map that a shallow copy shares
	}
	v := reflect.ValueOf(obj)
	if v.Kind() != reflect.Pointer {
		return obj
	}
	c := reflect.New(v.Type().Elem())
	c.Elem().Set(v.Elem())
	out := c.Interface().(runtime.Object)
	out.GetObjectKind().SetGroupVersionKind(gvk)
	return out
}
