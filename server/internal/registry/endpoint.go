package registry

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/server/internal/resource"
)

// Endpoint is how a write reaches an object: directly, or through one of its
// subresources. The zero value is the object's own endpoint.
type Endpoint struct {
	// Subresource is "status", "scale", "binding", ...; "" is the object itself.
	Subresource string
	// Scope is what a write through the endpoint can change.
	Scope Scope
	// Ownership is what such a write does to metadata.managedFields.
	Ownership Ownership
	// View is what clients see through the endpoint if that is not the object; nil: it is.
	View *View
}

// View is a kind that stands for a part of an object, such as a Scale.
type View struct {
	Kind schema.GroupVersionKind
	// Of returns the view of an object.
	Of func(r Registry, obj resource.Object) (resource.Object, error)
	// Apply changes obj to what the view says.
	Apply func(r Registry, obj, view resource.Object) error
}

// Scope is the part of an object that an endpoint changes.
type Scope uint8

const (
	// ScopeMain is everything but the status, if the kind has a status
	// subresource.
	ScopeMain Scope = iota
	// ScopeStatus is the status, with the metadata that the kind does not keep.
	ScopeStatus
	// ScopeSubresource is the part that the subresource's entry in merges takes
	// from the new object; a subresource without an entry cannot be written so. Of
	// the kind's strategy only ValidateSubresource applies.
	ScopeSubresource
	// ScopeBinding is a pod's node: ScopeSubresource without defaults, and
	// without a new generation.
	ScopeBinding
)

// Ownership is what a write does to metadata.managedFields.
type Ownership uint8

const (
	// OwnershipTracked makes the writer own the fields that it changes.
	OwnershipTracked Ownership = iota
	// OwnershipStated takes over the owners that the new object names.
	OwnershipStated
	// OwnershipKept leaves the owners as they are: what the write changes has
	// none.
	OwnershipKept
)

var statusEndpoint = Endpoint{Subresource: "status", Scope: ScopeStatus}
