package request

import (
	"net/http"
	"net/url"
	"slices"

	"github.com/levelwire/levelwire/server/internal/resource"
)

// The verbs, as authorization and discovery name them.
const (
	VerbGet              = "get"
	VerbList             = "list"
	VerbWatch            = "watch"
	VerbCreate           = "create"
	VerbUpdate           = "update"
	VerbPatch            = "patch"
	VerbDelete           = "delete"
	VerbDeleteCollection = "deletecollection"
)

// VerbOf returns the verb of a method on a path, or "" if the method is wrong
// there.
func VerbOf(method string, t Path, query url.Values) string {
	one := t.Name != ""
	switch {
	case method == http.MethodGet || method == http.MethodHead:
		switch {
		case t.Subresource == "" && (t.Watch || !one && IsTrue(query, "watch")):
			return VerbWatch
		case one:
			return VerbGet
		}
		return VerbList
	case t.Watch:
		return ""
	case method == http.MethodPost && (!one || t.Subresource != ""):
		return VerbCreate
	case method == http.MethodPut && one:
		return VerbUpdate
	case method == http.MethodPatch && one:
		return VerbPatch
	case method == http.MethodDelete && one:
		return VerbDelete
	case method == http.MethodDelete:
		return VerbDeleteCollection
	}
	return ""
}

// allVerbs is what a resource offers that does not say otherwise, in the
// order of discovery documents.
var allVerbs = []string{
	VerbCreate, VerbDelete, VerbDeleteCollection, VerbGet, VerbList, VerbPatch, VerbUpdate, VerbWatch,
}

// VerbsOf returns the verbs that a resource offers.
func VerbsOf(res *resource.Resource) []string {
	if res.Verbs == nil {
		return allVerbs
	}
	return res.Verbs
}

// Offers reports whether a resource offers a verb.
func Offers(res *resource.Resource, verb string) bool {
	return slices.Contains(VerbsOf(res), verb)
}
