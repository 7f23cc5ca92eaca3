package client

import (
	"context"
	"net/http"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Get reads one object. apierrors.IsNotFound says of the error that the server has no such
// object; it is false for the page of a proxy.
func (r Resource[T]) Get(ctx context.Context, name string, opts metav1.GetOptions) (T, error) {
	return r.object(ctx, call{verb: "get", method: http.MethodGet, name: name, named: true, query: &opts})
}

// Create writes a new object and returns what the server made of it. The
// namespace is the endpoint's, or else the object's own.
func (r Resource[T]) Create(ctx context.Context, obj T, opts metav1.CreateOptions) (T, error) {
	return r.in(obj).object(ctx, call{verb: "create", method: http.MethodPost, creates: true, query: &opts, body: obj})
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
// exist: graceful deletion and finalizers come first. [IgnoreNotFound] is for callers that
// do not mind if it did not exist.
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

// DryRun returns the same endpoint whose writes the server only tries: it
// decides, and answers as it would, but stores nothing.
func (r Resource[T]) DryRun() Resource[T] {
	r.writes.dryRun = true
	return r
}

// FieldManager returns the same endpoint whose writes are those of a field
// manager, unless their options name one. It replaces Options.FieldManager, which
// says what happens without one.
func (r Resource[T]) FieldManager(name string) Resource[T] {
	r.writes.fieldManager = name
	return r
}

// writeDefaults are what an endpoint adds to the options of its writes.
type writeDefaults struct {
	dryRun       bool
	fieldManager string
}

// writeDefaults are those of the client's options.
func (c *Client) writeDefaults() writeDefaults {
	if c == nil {
		return writeDefaults{}
	}
	return writeDefaults{fieldManager: c.opts.FieldManager}
}

// set adds the defaults to a request whose own options do not say.
func (d writeDefaults) set(q *request) {
	if q.method == http.MethodGet || q.verb == "difference" || d == (writeDefaults{}) {
		return
	}
	if q.query == nil {
		q.query = url.Values{}
	}
	if d.fieldManager != "" && q.query.Get("fieldManager") == "" && q.method != http.MethodDelete {
		q.query.Set("fieldManager", d.fieldManager)
	}
	if !d.dryRun {
		return
	}
	q.query.Set("dryRun", metav1.DryRunAll)
	if deletion, ok := q.body.(*metav1.DeleteOptions); ok { // deleteBody's copy; it prevails over the query
		deletion.DryRun = []string{metav1.DryRunAll}
	}
}

// deleteBody is the body of a DELETE; options travel there and not in the
// query.
func deleteBody(opts *metav1.DeleteOptions) runtime.Object {
	o := *opts
	o.TypeMeta = metav1.TypeMeta{Kind: "DeleteOptions", APIVersion: "v1"}
	return &o
}

// IgnoreNotFound returns nil for the error of an object that does not exist, and
// any other error as it is: a deletion has nothing to do then.
func IgnoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// IgnoreAlreadyExists returns nil for the error of creating an object that exists,
// and any other error as it is.
func IgnoreAlreadyExists(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
