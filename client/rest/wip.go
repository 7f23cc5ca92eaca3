package rest

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var errWIP = errors.New("not built yet")

type form int

const (
	formTyped form = iota
	formUnstructured
	formMetadata
)

type codec[T Object] struct{ newT func() T }

func newCodec[T Object](gvk schema.GroupVersionKind, f form, newT func() T) *codec[T] {
	return &codec[T]{newT: newT}
}

type request struct {
	verb, method, name, subresource, contentType string
	named                                        bool
	query, body                                  any
	raw                                          []byte
}

func joinSubresources([]string) string       { return "" }
func deleteBody(o *metav1.DeleteOptions) any { return o }
func (r Resource[T]) object(ctx context.Context, q request) (t T, err error) {
	return t, errWIP
}
func (r Resource[T]) discard(ctx context.Context, q request) error { return errWIP }
func (r Resource[T]) into(ctx context.Context, q request, into runtime.Object) error {
	return errWIP
}

// List reads the collection, or one page of it.
func (r Resource[T]) List(ctx context.Context, opts metav1.ListOptions) (*List[T], error) {
	return nil, errWIP
}

// Watch opens a watch.
func (r Resource[T]) Watch(ctx context.Context, opts metav1.ListOptions) (*Watch[T], error) {
	return nil, errWIP
}

// Watch is an open watch.
type Watch[T Object] struct{}

// Next waits for the next event.
func (w *Watch[T]) Next() (ev WatchEvent[T], err error) { return ev, errWIP }

// Close ends the watch.
func (w *Watch[T]) Close() {}
