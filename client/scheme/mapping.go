package scheme

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Scope says whether the objects of a resource are in namespaces. The values are
// those of spec.scope of a CustomResourceDefinition; "" is an unknown scope.
type Scope string

// The scopes.
const (
	Namespaced Scope = "Namespaced"
	Cluster    Scope = "Cluster"
)

// Mapping is what a REST mapping is: which resource serves the objects of a kind.
type Mapping struct {
	// Kind is the apiVersion and kind of the objects.
	Kind schema.GroupVersionKind
	// Resource is the plural name in URLs. [Register] takes the plural of the
	// kind by the rules of English if it is empty: widgets for Widget. It is
	// empty for kinds that have no resource of their own: lists, Binding, Scale.
	Resource string
	// Scope is required by [Register].
	Scope Scope
	// Unnamed is set for kinds whose objects are created without a name and not
	// stored, such as SubjectAccessReview.
	Unnamed bool
}

// GroupVersionResource returns the resource with its group and version.
func (m Mapping) GroupVersionResource() schema.GroupVersionResource {
	return m.Kind.GroupVersion().WithResource(m.Resource)
}

// describe names everything in which two mappings may differ.
func (m Mapping) describe() string {
	text := describe(m.Kind) + ", resource " + m.Resource + ", scope " + string(m.Scope)
	if m.Unnamed {
		text += ", unnamed"
	}
	return text
}

// pluralOf returns the plural of a kind as CustomResourceDefinitions and the API
// of Kubernetes have it: gateways, meshes. apimachinery's guess knows of nouns in -s and -y only,
// and makes gatewaies of a Gateway.
func pluralOf(kind schema.GroupVersionKind) string {
	singular := strings.ToLower(kind.Kind)
	for _, end := range []string{"x", "z", "ch", "sh"} {
		if strings.HasSuffix(singular, end) {
			return singular + "es"
		}
	}
	for _, end := range []string{"ay", "ey", "oy", "uy"} {
		if strings.HasSuffix(singular, end) {
			return singular + "s"
		}
	}
	plural, _ := meta.UnsafeGuessKindToResource(kind)
	return plural.Resource
}

// describe returns a kind as people write it: "apps/v1 Deployment".
func describe(kind schema.GroupVersionKind) string {
	return strings.TrimSpace(kind.GroupVersion().String() + " " + kind.Kind)
}
