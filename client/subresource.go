package client

import (
	"context"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// SubResource is a subresource of the objects of an endpoint. Its type may be
// another than the object's: Scale, Binding, Eviction, TokenRequest.
type SubResource[T Object] struct {
	parent Resource[T]
	name   string
}

// SubResource returns a subresource of the objects of an endpoint, by name:
// "scale", "binding", "eviction", "token".
func (r Resource[T]) SubResource(name string) SubResource[T] { return SubResource[T]{r, name} }

// Get reads the subresource of an object into a value of its type.
func (s SubResource[T]) Get(ctx context.Context, object string, into runtime.Object, opts metav1.GetOptions) error {
	return s.parent.into(ctx, call{verb: "get", method: http.MethodGet, name: object, named: true, subresource: s.name, query: &opts}, into)
}

// Create posts a body. The answer, such as the token of a TokenRequest, is
// stored in body, unless it is only a Status, as that of a Binding.
func (s SubResource[T]) Create(ctx context.Context, object string, body runtime.Object, opts metav1.CreateOptions) error {
	return s.parent.into(ctx, call{verb: "create", method: http.MethodPost, name: object, named: true, subresource: s.name, query: &opts, body: body}, body)
}

// Update replaces the subresource of an object and stores the server's answer
// in obj.
func (s SubResource[T]) Update(ctx context.Context, object string, obj runtime.Object, opts metav1.UpdateOptions) error {
	return s.parent.into(ctx, call{verb: "update", method: http.MethodPut, name: object, named: true, subresource: s.name, query: &opts, body: obj}, obj)
}
