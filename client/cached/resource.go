package cached

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/scheme"
)

// Resource is an endpoint that reads from informers where they have what is asked
// for. It is a small value, cheap to copy and safe for concurrent use.
type Resource[T client.Object] struct {
	reader       *Reader
	endpoint     client.Resource[T]
	makeInformer func() *informer.SharedInformer[T]
	namespace    string
	shared       bool
}

func newResource[T client.Object](r *Reader, endpoint client.Resource[T], makeInformer func() *informer.SharedInformer[T]) Resource[T] {
	return Resource[T]{reader: r, endpoint: endpoint, makeInformer: makeInformer, shared: r.opts.Shared}
}

// Namespace returns the same endpoint limited to a namespace; "" is all of them,
// and what cluster-scoped resources need.
func (r Resource[T]) Namespace(namespace string) Resource[T] {
	r.namespace = namespace
	r.endpoint = r.endpoint.Namespace(namespace)
	return r
}

// Shared returns the same endpoint whose reads return shared objects, the cache's own.
// They must not be changed. Without it, each read copies what it returns, which for
// long lists costs more than finding it. What comes from the server is the caller's in
// any case.
func (r Resource[T]) Shared() Resource[T] {
	r.shared = true
	return r
}

// Uncached returns the endpoint that reads from the server, and writes.
func (r Resource[T]) Uncached() client.Resource[T] { return r.endpoint }

// GroupVersionResource says which endpoint this is.
func (r Resource[T]) GroupVersionResource() schema.GroupVersionResource {
	return r.endpoint.GroupVersionResource()
}

// Get reads one object. The error for an object that does not exist is the one
// that a server gives: apierrors.IsNotFound.
//
// With opts.ResourceVersion, that of a write for instance, Get waits until the
// cache is not older.
func (r Resource[T]) Get(ctx context.Context, name string, opts metav1.GetOptions) (T, error) {
	var none T
	if name == "" || r.isMisscoped(true) {
		return r.endpoint.Get(ctx, name, opts)
	}
	sources, err := sourcesToRead(r)
	if err != nil {
		return none, err
	}
	for _, s := range sources {
		if !s.hasNamespace(r.namespace) {
			continue
		}
		if err := s.wait(ctx, r.namespace, opts.ResourceVersion); err != nil {
			if s.hasStopped() {
				continue
			}
			return none, err
		}
		obj, ok := s.informer.Lister().Get(r.namespace, name)
		switch {
		case ok && !s.isLeftBehind(obj):
			return r.own(obj), nil
		case s.isWhole():
			return none, r.notFound(s, name)
		}
	}
	return r.endpoint.Get(ctx, name, opts)
}

// isMisscoped reports whether the endpoint cannot be used, or lacks a namespace, or has one
// too many, for a call of one object or of a list. A cache would answer such a call as
// if nothing existed; the client's endpoint refuses it, before it sends a request.
func (r Resource[T]) isMisscoped(named bool) bool {
	mapping, _ := r.endpoint.Mapping()
	switch {
	case r.endpoint.Err() != nil:
		return true
	case mapping.Scope == scheme.Cluster:
		return r.namespace != ""
	default:
		return named && mapping.Scope == scheme.Namespaced && r.namespace == ""
	}
}

// notFound is the error for an object that an informer with all objects of its namespaces
// does not have. If the scheme does not know the scope, the objects that the informer has may
// show that this one was looked for in the wrong place.
func (r Resource[T]) notFound(s *source[T], name string) error {
	resource := r.GroupVersionResource().GroupResource()
	if mapping, _ := r.endpoint.Mapping(); mapping.Scope == "" {
		if scope := s.informer.Lister().Scope(); scope != "" && (scope == scheme.Cluster) != (r.namespace == "") {
			return fmt.Errorf("get %s: %w", resource.Resource, &client.ScopeError{Resource: r.GroupVersionResource(), Scope: scope, Namespace: r.namespace})
		}
		if r.namespace == "" {
			return fmt.Errorf("%w (no namespace was given: if %s are namespaced, call Namespace)", apierrors.NewNotFound(resource, name), resource.Resource)
		}
	}
	return apierrors.NewNotFound(resource, name)
}

// Record has all later reads of this kind from the caches wait until they show a
// write: obj is what the server answered. So a program reads its own writes.
//
//	written, err := pods.Uncached().Update(ctx, pod, metav1.UpdateOptions{})
//	pods.Record(written)
//
// Reads do not wait for an object that an informer's labels, name or namespaces leave
// out, and with an informer of several namespaces only reads of the object's own wait.
// If an informer's other fields leave the object out, a read waits for the next event or
// bookmark, which may take about a minute.
//
// For a deletion there is nothing to record.
func (r Resource[T]) Record(obj T) {
	if obj.GetResourceVersion() == "" {
		return
	}
	for _, s := range sourcesOf(r) {
		if s.hasNamespace(obj.GetNamespace()) {
			s.record(obj)
		}
	}
}

// WaitForResourceVersion waits until the caches of this kind that look at the
// endpoint's namespace show every change up to a resourceVersion. It returns at
// once if there are none: the server's state is not older.
func (r Resource[T]) WaitForResourceVersion(ctx context.Context, version string) error {
	if err := r.endpoint.Err(); err != nil {
		return err
	}
	for _, s := range sourcesOf(r) {
		if !s.hasNamespace(r.namespace) {
			continue
		}
		if err := s.wait(ctx, r.namespace, version); err != nil && !s.hasStopped() {
			return err
		}
	}
	return nil
}

// own returns what the caller may keep: a copy, unless shared objects are wanted.
func (r Resource[T]) own(obj T) T {
	if r.shared {
		return obj
	}
	return obj.DeepCopyObject().(T)
}
