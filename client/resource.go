package client

import (
	"fmt"
	"reflect"
	"sync"

	"github.com/levelwire/levelwire/client/internal/codec"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// Resource is one endpoint of the API with items of type T, perhaps limited to
// a namespace. It is a small value, cheap to copy and safe for concurrent use.
type Resource[T Object] struct {
	client    *Client
	gvr       schema.GroupVersionResource
	namespace string
	codec     *codec.Codec[T]
}

// For returns the endpoint of a built-in type: For[*corev1.Pod](client). It
// panics for a type that is not in client-go's scheme, which is a mistake in
// the program and not of its input; such types have [ForResource].
func For[T Object](c *Client) Resource[T] {
	typ := reflect.TypeFor[T]()
	k, err := builtinOf(typ)
	if err != nil {
		panic(err)
	}
	return Resource[T]{client: c, gvr: k.gvr, codec: codec.New[T](k.gvk, codec.FormTyped, func() T {
		return reflect.New(typ.Elem()).Interface().(T)
	})}
}

// ForResource returns an endpoint whose items newT makes: for Go types of
// custom resources. newT must return a new, empty object at each call.
func ForResource[T Object](c *Client, gvr schema.GroupVersionResource, newT func() T) Resource[T] {
	return Resource[T]{client: c, gvr: gvr, codec: codec.New(schema.GroupVersionKind{}, codec.FormTyped, newT)}
}

// Dynamic returns the endpoint of any resource, without a Go type for it.
func Dynamic(c *Client, gvr schema.GroupVersionResource) Resource[*unstructured.Unstructured] {
	return Resource[*unstructured.Unstructured]{client: c, gvr: gvr,
		codec: codec.New(schema.GroupVersionKind{}, codec.FormUnstructured, func() *unstructured.Unstructured {
			return &unstructured.Unstructured{}
		})}
}

// Metadata returns the endpoint of any resource, of whose objects the server
// is asked for the metadata only. Create and update are not possible with it;
// patch and delete are.
func Metadata(c *Client, gvr schema.GroupVersionResource) Resource[*metav1.PartialObjectMetadata] {
	return Resource[*metav1.PartialObjectMetadata]{client: c, gvr: gvr,
		codec: codec.New(schema.GroupVersionKind{}, codec.FormMetadata, func() *metav1.PartialObjectMetadata {
			return &metav1.PartialObjectMetadata{}
		})}
}

// Namespace returns the same endpoint limited to a namespace; "" is all of
// them, and what cluster-scoped resources need.
func (r Resource[T]) Namespace(namespace string) Resource[T] {
	r.namespace = namespace
	return r
}

// GroupVersionResource says which endpoint this is.
func (r Resource[T]) GroupVersionResource() schema.GroupVersionResource { return r.gvr }

// New returns a new, empty item.
func (r Resource[T]) New() T { return r.codec.NewItem() }

// Sharing returns the same endpoint whose lists and watches give equal parts
// of objects the same memory: labels, tolerations, volumes, field managers,
// pointers to true. A workload's pods are mostly equal, so they take half the
// memory, and what has been decoded once need not be decoded again.
//
// The caller must not change such objects, not even one that it has not passed on:
// copy them with DeepCopy first. A watch holds the last state of each object until
// the object is deleted or the watch ends. Without Sharing only strings are
// shared.
func (r Resource[T]) Sharing() Resource[T] {
	r.codec = r.codec.WithSharing()
	return r
}

// MessageDecoder returns a function that decodes protobuf messages of a built-in
// type, without the envelope that they have on the wire, into objects that
// share what is equal, as with [Resource.Sharing]. It is for objects that were
// stored by their generated Marshal, and for one goroutine at a time. It returns
// false for a type that cannot be decoded from protobuf.
func MessageDecoder[T Object](newT func() T) (decode func(message []byte) (T, error), ok bool) {
	return codec.MessageDecoder(newT)
}

// builtin is what the scheme knows about a Go type.
type builtin struct {
	gvk schema.GroupVersionKind
	gvr schema.GroupVersionResource
}

var builtins sync.Map // reflect.Type -> builtin

// builtinOf looks a pointer type up in client-go's scheme. Plural names are
// guessed from the kind, as the scheme does not hold them; a test compares the
// guesses with the real names of every kind that Kubernetes ships.
func builtinOf(typ reflect.Type) (builtin, error) {
	if b, ok := builtins.Load(typ); ok {
		return b.(builtin), nil
	}
	if typ.Kind() != reflect.Pointer {
		return builtin{}, fmt.Errorf("%v is not a pointer to an API type", typ)
	}
	obj, ok := reflect.New(typ.Elem()).Interface().(Object)
	if !ok {
		return builtin{}, fmt.Errorf("%v is not an API object", typ)
	}
	kinds, _, err := scheme.Scheme.ObjectKinds(obj)
	if err != nil || len(kinds) != 1 {
		return builtin{}, fmt.Errorf("%v is not one built-in kind of client-go's scheme: use ForResource, Dynamic or Metadata", typ)
	}
	plural, _ := meta.UnsafeGuessKindToResource(kinds[0])
	b := builtin{gvk: kinds[0], gvr: plural}
	builtins.Store(typ, b)
	return b, nil
}
