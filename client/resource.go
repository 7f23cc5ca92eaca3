package client

import (
	"errors"
	"fmt"
	"net/url"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/client/internal/codec"
	"github.com/levelwire/levelwire/client/scheme"
)

// Resource is one endpoint of the API with items of type T, perhaps limited to
// a namespace. It is a small value, cheap to copy and safe for concurrent use.
type Resource[T Object] struct {
	client    *Client
	gvr       schema.GroupVersionResource
	mapping   scheme.Mapping // its scope is empty if the scheme does not know the resource
	namespace string
	codec     *codec.Codec[T]
	writes    writeDefaults
	visible   *visible // nil: lists and watches are not limited
	err       error    // why the endpoint cannot be used
}

// For returns the endpoint of a Go type: For[*corev1.Pod](client). The types of
// Kubernetes are known; others are registered once in the client's scheme, see
// [scheme.Register]. For a type that is not, each method returns an error that says
// so, and so does [Resource.Err].
//
// Objects are sent with the kind that the scheme has, whatever their TypeMeta says, and
// come back with an empty one, as with client-go.
func For[T Object](c *Client) Resource[T] {
	typ := reflect.TypeFor[T]()
	m, err := c.Scheme().ByType(typ)
	switch {
	case errors.Is(err, scheme.ErrNotRegistered):
		err = fmt.Errorf("%w in the client's scheme: call scheme.Register[%v](c.Scheme(), scheme.Mapping{...}) before its first use, or use client.Dynamic",
			scheme.ErrNotRegistered, typ)
	case err == nil && m.Resource == "":
		err = fmt.Errorf("%s has no resource of its own: use the SubResource of another one", m.Kind.Kind)
	}
	return Resource[T]{client: c, gvr: m.GroupVersionResource(), mapping: m, err: err, writes: c.writeDefaults(),
		codec: codec.New[T](m.Kind, codec.FormTyped, func() T {
			if typ.Kind() != reflect.Pointer {
				var none T
				return none // err says why
			}
			return reflect.New(typ.Elem()).Interface().(T)
		})}
}

// ForResource returns an endpoint whose items newT makes, for a Go type that serves
// several resources, and so cannot be registered. newT must return a new, empty object
// at each call. Objects that are written have to carry their apiVersion and kind
// unless the type is registered.
func ForResource[T Object](c *Client, gvr schema.GroupVersionResource, newT func() T) Resource[T] {
	m, _ := c.Scheme().ByResource(gvr)
	var kind schema.GroupVersionKind
	if registered, err := c.Scheme().ByType(reflect.TypeFor[T]()); err == nil {
		kind = gvr.GroupVersion().WithKind(registered.Kind.Kind)
	}
	return Resource[T]{client: c, gvr: gvr, mapping: m, err: checkResource(gvr), writes: c.writeDefaults(), codec: codec.New(kind, codec.FormTyped, newT)}
}

// checkResource returns why a resource has no URL. Without its name, that of its objects in a
// namespace would be the URL of the namespace.
func checkResource(gvr schema.GroupVersionResource) error {
	if gvr.Version == "" || gvr.Resource == "" {
		return fmt.Errorf("the resource {Group: %q, Version: %q, Resource: %q} has no version or no name", gvr.Group, gvr.Version, gvr.Resource)
	}
	return nil
}

// Dynamic returns the endpoint of any resource, without a Go type for it.
func Dynamic(c *Client, gvr schema.GroupVersionResource) Resource[*unstructured.Unstructured] {
	m, _ := c.Scheme().ByResource(gvr)
	return dynamic(c, gvr, m)
}

// DynamicMapping is [Dynamic] for a resource whose kind and scope are known, from
// discovery for instance: the endpoint checks namespaces before it sends a request, and
// writes objects without a kind with their kind.
func DynamicMapping(c *Client, m scheme.Mapping) Resource[*unstructured.Unstructured] {
	return dynamic(c, m.GroupVersionResource(), m)
}

func dynamic(c *Client, gvr schema.GroupVersionResource, m scheme.Mapping) Resource[*unstructured.Unstructured] {
	return Resource[*unstructured.Unstructured]{client: c, gvr: gvr, mapping: m, err: checkResource(gvr), writes: c.writeDefaults(),
		codec: codec.New(schema.GroupVersionKind{}, codec.FormUnstructured, func() *unstructured.Unstructured {
			return &unstructured.Unstructured{}
		})}
}

// Metadata returns the endpoint of any resource, of whose objects the server
// is asked for the metadata only. Create and update are not possible with it;
// patch and delete are.
func Metadata(c *Client, gvr schema.GroupVersionResource) Resource[*metav1.PartialObjectMetadata] {
	m, _ := c.Scheme().ByResource(gvr)
	return Resource[*metav1.PartialObjectMetadata]{client: c, gvr: gvr, mapping: m, err: checkResource(gvr), writes: c.writeDefaults(),
		codec: codec.New(schema.GroupVersionKind{}, codec.FormMetadata, func() *metav1.PartialObjectMetadata {
			return &metav1.PartialObjectMetadata{}
		})}
}

// Err returns why the endpoint cannot be used, nil if it can: its Go type is not
// registered, or its resource has no version or no name. All methods that send requests
// return this error.
func (r Resource[T]) Err() error { return r.err }

// Mapping returns the kind, resource and scope of the endpoint, as the client's
// scheme has them. It returns false if the resource is not in the scheme, as may be
// with [Dynamic], [Metadata] and [ForResource].
func (r Resource[T]) Mapping() (scheme.Mapping, bool) { return r.mapping, r.mapping.Resource != "" }

// Client returns the client that the endpoint belongs to.
func (r Resource[T]) Client() *Client { return r.client }

// Namespace returns the same endpoint limited to a namespace; "" is all of
// them, and what cluster-scoped resources need.
func (r Resource[T]) Namespace(namespace string) Resource[T] {
	r.namespace = namespace
	return r
}

// GroupVersionResource says which endpoint this is.
func (r Resource[T]) GroupVersionResource() schema.GroupVersionResource { return r.gvr }

// URL returns the address of an object, or of one of its subresources; without a
// name, that of the collection. It is for logs and for libraries that make requests
// of their own.
func (r Resource[T]) URL(name string, subresources ...string) (*url.URL, error) {
	if err := r.usable(); err != nil {
		return nil, err
	}
	path, err := r.path(call{name: name, subresource: joinSubresources(subresources)})
	if err != nil {
		return nil, err
	}
	u := *r.client.base
	u.Path += path
	return &u, nil
}

// New returns a new, empty item.
func (r Resource[T]) New() T { return r.codec.NewItem() }

// Interning returns the same endpoint whose lists and watches keep equal parts of
// different objects once: labels, tolerations, volumes, field managers, pointers to
// true. A workload's pods are mostly equal, so they take half the memory, and what has
// been decoded once need not be decoded again. Informers do so by default.
//
// The caller must not change such objects, not even one that it has not passed on:
// copy them with DeepCopy first. A part that is changed in place is changed in all
// objects that have it, and objects that are decoded later from the same list or
// watch get it in place of what the server has sent; no later event of an object
// mends that. A watch holds the last state of each object until
// the object is deleted or the watch ends. Without Interning only strings are
// interned.
func (r Resource[T]) Interning() Resource[T] {
	r.codec = r.codec.WithInterning()
	return r
}
