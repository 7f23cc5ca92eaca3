package recorder

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/discovery"
	"github.com/levelwire/levelwire/client/scheme"
	"github.com/levelwire/levelwire/recording"
)

// alias is served a second time under another name, with the same objects.
var alias = schema.GroupResource{Group: "events.k8s.io", Resource: "events"}

// choose returns which resources of a server are recorded, and which are not.
func choose(ctx context.Context, c *client.Client, opts *Options) ([]recording.Resource, []recording.LeftOut, error) {
	all, err := discovery.Fetch(ctx, c)
	if len(all) == 0 && err != nil {
		return nil, nil, fmt.Errorf("what the server serves cannot be asked: %w", err)
	}
	if err != nil {
		opts.Logger.Warn("some groups of the server do not answer, and are not recorded", "error", err)
	}
	all = discovery.Preferred(all)
	wanted, err := find(all, opts.Resources)
	if err != nil {
		return nil, nil, err
	}
	excluded, err := find(all, opts.Exclude)
	if err != nil {
		return nil, nil, err
	}
	var chosen []recording.Resource
	var out []recording.LeftOut
	for _, r := range all {
		gvr := r.GroupVersionResource()
		if len(wanted) > 0 && !slices.Contains(wanted, gvr.GroupResource()) || !r.Supports("list", "watch") || gvr.GroupResource() == alias {
			continue
		}
		resource := recording.Resource{
			Group: gvr.Group, Version: gvr.Version, Resource: gvr.Resource,
			Kind: r.Mapping.Kind.Kind, Namespaced: r.Mapping.Scope == scheme.Namespaced,
		}
		switch {
		case slices.Contains(excluded, gvr.GroupResource()):
			out = append(out, recording.LeftOut{Resource: resource.String(), Reason: "it was excluded"})
		case resource.String() == "secrets" && !opts.Secrets:
			out = append(out, recording.LeftOut{Resource: resource.String(), Reason: "secrets are recorded only if asked for"})
		default:
			chosen = append(chosen, resource)
		}
	}
	return chosen, out, nil
}

// find returns the resources of names as kubectl takes them.
func find(all []discovery.Resource, names []string) (found []schema.GroupResource, err error) {
	for _, name := range names {
		i := slices.IndexFunc(all, func(r discovery.Resource) bool { return named(r, strings.ToLower(name)) })
		if i < 0 {
			return nil, fmt.Errorf("the server has no resource %q", name)
		}
		found = append(found, all[i].GroupVersionResource().GroupResource())
	}
	return found, nil
}

// named reports whether a user of kubectl may mean a resource by a name.
func named(r discovery.Resource, name string) bool {
	gvr := r.GroupVersionResource()
	return name == gvr.Resource || name == gvr.GroupResource().String() || name == r.Singular ||
		name == strings.ToLower(r.Mapping.Kind.Kind) || slices.Contains(r.ShortNames, name)
}
