package discovery

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/client"
)

// Dynamic returns the endpoint of a kind, without a Go type for it: client.Dynamic by
// kind. An empty version is the one that the server prefers. The endpoint knows its
// scope, so it refuses objects without a namespace where they need one, and gives
// objects without a kind theirs.
func Dynamic(ctx context.Context, m *Mapper, kind schema.GroupVersionKind) (client.Resource[*unstructured.Unstructured], error) {
	var versions []string
	if kind.Version != "" {
		versions = []string{kind.Version}
	}
	r, err := m.ByKind(ctx, kind.GroupKind(), versions...)
	if err != nil {
		return client.Resource[*unstructured.Unstructured]{}, err
	}
	return client.DynamicMapping(m.client, r.Mapping), nil
}
