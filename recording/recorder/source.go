package recorder

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/reflector"
	"github.com/levelwire/levelwire/recording"
)

// endpoint is where the objects of a resource are read, in all namespaces or in one.
func endpoint(c *client.Client, r recording.Resource, namespace string) client.Resource[*object] {
	gvr := schema.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Resource}
	resource := client.ForResource(c, gvr, func() *object { return new(object) })
	if namespace != "" {
		return resource.Namespace(namespace)
	}
	return resource
}

// source lists, for the first time, the state at the version at which the recording
// begins, so that the states of all resources are of one moment. A server that does not
// have that version any more is asked for its most recent state.
type source struct {
	reflector.ListerWatcher[*object]
	endpoint client.Resource[*object]
	exact    string // "" once the first list has been made
	anyState bool   // the first list was not at exact
}

// List implements reflector.ListerWatcher.
func (s *source) List(ctx context.Context, opts metav1.ListOptions) (*client.List[*object], error) {
	if s.exact == "" || opts.Continue != "" {
		return s.ListerWatcher.List(ctx, opts)
	}
	exact := opts
	exact.ResourceVersion, exact.ResourceVersionMatch = s.exact, metav1.ResourceVersionMatchExact
	list, err := s.ListerWatcher.List(ctx, exact)
	if err == nil || ctx.Err() != nil || isRefusal(err) {
		s.anyState = false
		return list, err
	}
	s.anyState = true
	opts.ResourceVersion, opts.ResourceVersionMatch = "", ""
	return s.ListerWatcher.List(ctx, opts)
}

// Served implements reflector.Discoverer.
func (s *source) Served(ctx context.Context) (bool, error) { return s.endpoint.Served(ctx) }

// currentVersion asks for the version that the server's store has reached, with a list of
// one object of the first resource that may be listed.
func (r *recorder) currentVersion(ctx context.Context) (string, int64, error) {
	var failed error
	for i, resource := range r.initial {
		list, err := endpoint(r.client, resource, "").List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil && len(r.opts.Namespaces) > 0 && resource.Namespaced {
			list, err = endpoint(r.client, resource, r.opts.Namespaces[0]).List(ctx, metav1.ListOptions{Limit: 1})
		}
		if err != nil {
			failed = errors.Join(failed, err)
			if ctx.Err() != nil || i == maxVersionTries {
				break
			}
			continue
		}
		version, err := parseVersion(list.ResourceVersion)
		return list.ResourceVersion, version, err
	}
	return "", 0, failed
}

// maxVersionTries is how many resources are asked for a version.
const maxVersionTries = 8
