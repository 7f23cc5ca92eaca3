package openapi

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/server/internal/resource"
)

// Endpoint is a resource as it is served: with its verbs and with what is
// below it.
type Endpoint struct {
	*resource.Resource
	// Verbs are those of discovery: "create", "get", "list", ...
	Verbs        []string
	Subresources []Subresource
}

// Subresource is what is served below the objects of a resource.
type Subresource struct {
	Name  string                  // "status"
	Kind  schema.GroupVersionKind // of the bodies
	Body  any                     // an empty object of the kind; nil if it is the resource's own
	Verbs []string
}

func (e Endpoint) offers(verb string) bool { return slices.Contains(e.Verbs, verb) }

// The verbs, as discovery names them.
const (
	verbGet              = "get"
	verbList             = "list"
	verbWatch            = "watch"
	verbCreate           = "create"
	verbUpdate           = "update"
	verbPatch            = "patch"
	verbDelete           = "delete"
	verbDeleteCollection = "deletecollection"
)
