// Package scaling finds where the scale of objects of any kind is served.
package scaling

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/client/discovery"
)

// Subresource is the name of the subresource.
const Subresource = "scale"

// Served returns where a kind is served: in the version that the server prefers, unless only
// the version of the kind has the scale subresource, as a CustomResourceDefinition may say.
// Whether the result has it is up to the caller: one may come with the next definition.
func Served(ctx context.Context, m *discovery.Mapper, kind schema.GroupVersionKind) (discovery.Resource, error) {
	preferred, err := m.ByKind(ctx, kind.GroupKind())
	if err != nil || Has(preferred) || kind.Version == preferred.Mapping.Kind.Version {
		return preferred, err
	}
	if named, err := m.ByKind(ctx, kind.GroupKind(), kind.Version); err == nil && Has(named) {
		return named, nil
	}
	return preferred, nil
}

// Has reports whether a resource has the subresource.
func Has(r discovery.Resource) bool { return slices.Contains(r.Subresources, Subresource) }
