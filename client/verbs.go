package client

import (
	"context"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Get reads one object.
func (r Resource[T]) Get(ctx context.Context, name string, opts metav1.GetOptions) (T, error) {
	return r.object(ctx, call{verb: "get", method: http.MethodGet, name: name, named: true, query: &opts})
}

// Create writes a new object and returns what the server made of it. The
// namespace is the endpoint's, or else the object's own.
func (r Resource[T]) Create(ctx context.Context, obj T, opts metav1.CreateOptions) (T, error) {
	return r.in(obj).object(ctx, call{verb: "create", method: http.MethodPost, query: &opts, body: obj})
}

// Update replaces an object. With a resourceVersion in it the write is guarded:
// apierrors.IsConflict says that another write came first.
func (r Resource[T]) Update(ctx context.Context, obj T, opts metav1.UpdateOptions) (T, error) {
	return r.in(obj).object(ctx, call{verb: "update", method: http.MethodPut, name: obj.GetName(), named: true, query: &opts, body: obj})
}

// UpdateStatus replaces an object's status and nothing else of it.
func (r Resource[T]) UpdateStatus(ctx context.Context, obj T, opts metav1.UpdateOptions) (T, error) {
	return r.in(obj).object(ctx, call{verb: "update", method: http.MethodPut, name: obj.GetName(), named: true, subresource: "status", query: &opts, body: obj})
}

// Patch changes an object, or one of its subresources, on the server.
func (r Resource[T]) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, opts metav1.PatchOptions, subresources ...string) (T, error) {
	return r.object(ctx, call{verb: "patch", method: http.MethodPatch, name: name, named: true,
		subresource: joinSubresources(subresources), query: &opts, raw: data, contentType: string(kind)})
}

// Delete asks for an object's deletion. When it returns the object may still
// exist: graceful deletion and finalizers come first.
func (r Resource[T]) Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error {
	return r.discard(ctx, call{verb: "delete", method: http.MethodDelete, name: name, named: true, body: deleteBody(&opts)})
}

// DeleteCollection asks for the deletion of everything that list selects.
func (r Resource[T]) DeleteCollection(ctx context.Context, opts metav1.DeleteOptions, list metav1.ListOptions) error {
	return r.discard(ctx, call{verb: "deletecollection", method: http.MethodDelete, query: &list, body: deleteBody(&opts)})
}

// in limits the endpoint to the object's namespace unless it has one already.
func (r Resource[T]) in(obj T) Resource[T] {
	if r.namespace == "" {
		r.namespace = obj.GetNamespace()
	}
	return r
}

// deleteBody is the body of a DELETE; options travel there and not in the
// query.
func deleteBody(opts *metav1.DeleteOptions) runtime.Object {
	o := *opts
	o.TypeMeta = metav1.TypeMeta{Kind: "DeleteOptions", APIVersion: "v1"}
	return &o
}
