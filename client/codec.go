package client

import (
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// form is how items are represented.
type form int

const (
	formTyped form = iota
	formUnstructured
	formMetadata
)

// codec decodes the items of one Resource.
type codec[T Object] struct {
	newT func() T
	form form
	// gvk is known for built-in types only. Their items leave the codec without
	// kind and apiVersion, as with client-go: the Go type says it, and lists
	// do not carry it.
	gvk schema.GroupVersionKind
	// protobuf: the type can be decoded from protobuf.
	protobuf bool
	// sharing: see Resource.Sharing.
	sharing bool
}

func newCodec[T Object](gvk schema.GroupVersionKind, f form, newT func() T) *codec[T] {
	c := &codec[T]{newT: newT, form: f, gvk: gvk}
	if f == formMetadata || f == formTyped && !gvk.Empty() {
		_, c.protobuf = any(newT()).(protoUnmarshaler)
	}
	return c
}

// finish makes a decoded item look the same whatever it was decoded from.
func (c *codec[T]) finish(obj T) {
	if c.form == formTyped && !c.gvk.Empty() {
		obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
}

// decode reads one object that is in memory.
func (c *codec[T]) decode(enc encoding, data []byte) (T, error) {
	obj := c.newT()
	if err := decodeInto(enc, data, obj); err != nil {
		var none T
		return none, err
	}
	c.finish(obj)
	return obj, nil
}

// decodeInto reads one object of any kind.
func decodeInto(enc encoding, data []byte, into runtime.Object) error {
	var err error
	switch enc {
	case encodingJSON:
		err = unmarshalJSON(data, into)
	case encodingProtobuf:
		err = unmarshalProtobuf(data, into)
	default:
		err = fmt.Errorf("neither JSON nor protobuf")
	}
	if err != nil {
		return &DecodeError{What: "object", Err: err}
	}
	return nil
}

// encode writes a request's body and says what it is. Built-in types that
// carry no kind get theirs; the object itself is not touched, as it may come
// out of a cache that others read.
func encode(obj runtime.Object, protobuf bool) ([]byte, string, error) {
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
			return data, string(Protobuf), err
		}
	}
	data, err := marshalJSON(withKind(obj, gvk))
	return data, string(JSON), err
}

// withKind returns obj, or a shallow copy of it, that says what it is.
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

// deleteBody is the body of a DELETE; options travel there and not in the
// query.
func deleteBody(opts *metav1.DeleteOptions) runtime.Object {
	o := *opts
	o.TypeMeta = metav1.TypeMeta{Kind: "DeleteOptions", APIVersion: "v1"}
	return &o
}
