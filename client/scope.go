package client

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/client/scheme"
)

// ScopeError says that an endpoint takes its resource for one of another scope than the
// server does, so that it is asked for in the wrong place: a cluster-scoped resource in a
// namespace, where the server has nothing, or a namespaced one in all namespaces. Calls for one
// object return it in place of a 404, which says nothing of the object then: apierrors.IsNotFound
// is false.
type ScopeError struct {
	Resource schema.GroupVersionResource
	// Scope is what the server's discovery says.
	Scope scheme.Scope
	// Namespace is the endpoint's; "" is none.
	Namespace string
	// Registered is the scope in the client's scheme; "" if it does not know the resource.
	Registered scheme.Scope
}

func (e *ScopeError) Error() string {
	what := e.Resource.GroupResource().String() + "/" + e.Resource.Version
	switch {
	case e.Registered != "" && e.Registered != e.Scope:
		return fmt.Sprintf("the server has %s as %s, and the scheme as %s: correct scheme.Mapping.Scope", what, e.Scope, e.Registered)
	case e.Scope == scheme.Cluster:
		return fmt.Sprintf("namespace %q: %s is cluster-scoped: give no namespace", e.Namespace, what)
	default:
		return fmt.Sprintf("%s is namespaced: give a namespace", what)
	}
}

// ServedScope asks the server's discovery, as [Resource.Served] does, whether the objects
// of the resource are in namespaces. It returns "" if the server says that it does not
// serve the resource, and an error if the server does not say.
func (r Resource[T]) ServedScope(ctx context.Context) (scheme.Scope, error) {
	found, err := r.discover(ctx)
	switch {
	case err != nil || found == nil:
		return "", err
	case found.Namespaced == nil:
		return "", &DecodeError{What: "discovery of " + r.gvr.GroupResource().String(), Err: errors.New("it does not say whether the resource is namespaced")}
	case *found.Namespaced:
		return scheme.Namespaced, nil
	default:
		return scheme.Cluster, nil
	}
}

// CheckScope returns a *[ScopeError] if the server's discovery says that the endpoint asks
// in the wrong place: after a 404 for a list, it tells a resource that the server does not
// serve from one that is cluster-scoped. It returns nil if the place is right, or if the
// server does not serve the resource, and another error if it is not known. Nothing is
// asked of the server if no scope would be wrong.
func (r Resource[T]) CheckScope(ctx context.Context) error {
	if r.namespace == "" && r.mapping.Scope != scheme.Cluster {
		return nil // all namespaces, or none
	}
	scope, err := r.ServedScope(ctx)
	if err != nil {
		return err
	}
	if scope == scheme.Cluster && r.namespace != "" || scope == scheme.Namespaced && r.mapping.Scope == scheme.Cluster {
		return &ScopeError{Resource: r.gvr, Scope: scope, Namespace: r.namespace, Registered: r.mapping.Scope}
	}
	return nil
}
