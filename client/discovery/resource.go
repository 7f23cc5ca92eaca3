package discovery

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/client/scheme"
)

// Resource is one resource in one version, as a server says that it serves it.
type Resource struct {
	// Mapping is its kind, plural name and scope.
	Mapping scheme.Mapping
	// Preferred is true for one version of each resource: that which the server
	// prefers for the group, or the first other one that has the resource.
	Preferred bool
	// Singular is the name for one object, in lower case.
	Singular string
	// ShortNames are what kubectl accepts, too: po, deploy.
	ShortNames []string
	// Categories are sets of resources that it is in: all.
	Categories []string
	// Verbs are what it can be asked for: get, list, watch, create, ...
	Verbs []string
	// Subresources are the names of its subresources: status, scale.
	Subresources []string
}

// GroupVersionResource returns the resource with its group and version.
func (r Resource) GroupVersionResource() schema.GroupVersionResource {
	return r.Mapping.GroupVersionResource()
}

// Supports returns whether the resource has all of these verbs.
func (r Resource) Supports(verbs ...string) bool {
	return !slices.ContainsFunc(verbs, func(verb string) bool { return !slices.Contains(r.Verbs, verb) })
}

// Preferred returns each resource once, in the version that the server prefers.
func Preferred(resources []Resource) []Resource {
	var preferred []Resource
	for _, r := range resources {
		if r.Preferred {
			preferred = append(preferred, r)
		}
	}
	return preferred
}

// markPreferred marks the first version of each resource. The resources are in the
// server's order: its preferred version of a group comes first.
func markPreferred(resources []Resource) {
	seen := map[schema.GroupResource]bool{}
	for i := range resources {
		r := resources[i].GroupVersionResource().GroupResource()
		resources[i].Preferred = !seen[r]
		seen[r] = true
	}
}

// singularOf returns the singular that a server says, or the kind.
func singularOf(singular, kind string) string {
	if singular != "" {
		return singular
	}
	return strings.ToLower(kind)
}
