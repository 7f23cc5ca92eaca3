package differential

import (
	"fmt"
	"slices"
	"strings"
)

// request is one question to both servers: a verb, on an object of a kind, with edits.
type request struct {
	verb  string
	kind  *kind
	base  string // which object of the kind: small, full, withstatus, more, more2, ...
	edits []edit
}

// The verbs. Most writes are dry runs, so that requests do not change what others find. Three
// things write: a readback, a delete that is no dry run, and a sequence. Each has its object for itself.
const (
	create       = "create"
	update       = "update"
	updateStatus = "status" // an update through the subresource
	// Patches that say what an update says.
	mergePatch     = "merge"
	strategicPatch = "strategic"
	jsonPatch      = "json"
	apply          = "apply"
)

var allVerbs = []string{create, readBack, update, updateStatus, mergePatch, strategicPatch, jsonPatch, apply, deleteOne, deleteCollection, life, formatsVerb, reads, selections, subresources, pages, statuses, resizes, limits}

// verbInDiscovery is the verb in the discovery of a kind that a request needs.
func verbInDiscovery(verb string) string {
	switch verb {
	case create, update, deleteOne, deleteCollection:
		return verb
	case readBack:
		return create
	case updateStatus:
		return update
	default:
		return "patch"
	}
}

// String is the request's name, which parseRequest reads.
func (r *request) String() string {
	words := []string{r.verb, r.kind.String(), r.base}
	for _, e := range r.edits {
		words = append(words, e.String())
	}
	return strings.Join(words, " ")
}

// parseRequest reads the name of a request.
func parseRequest(c *catalog, name string) (*request, error) {
	words := strings.SplitN(name, " ", 5)
	if len(words) < 4 {
		return nil, fmt.Errorf("%q is no request: it needs a verb, an API version, a kind and a base", name)
	}
	r := &request{verb: words[0], kind: c.find(words[1], words[2]), base: words[3]}
	if r.kind == nil {
		return nil, fmt.Errorf("%q: the judge does not serve the kind %s %s", name, words[1], words[2])
	}
	if !slices.Contains(allVerbs, r.verb) {
		return nil, fmt.Errorf("%q: the verb is none of %q", name, allVerbs)
	}
	rest := ""
	if len(words) == 5 {
		rest = words[4]
	}
	for rest != "" {
		e, after, err := parseEdit(rest)
		if err != nil {
			return nil, err
		}
		if after != "" && after[0] != ' ' {
			return nil, fmt.Errorf("%q: a space must stand before %q", name, after)
		}
		r.edits, rest = append(r.edits, e), strings.TrimPrefix(after, " ")
	}
	return r, nil
}

// body returns the base with the edits; of a delete, its options.
func (r *request) body(base map[string]any) (map[string]any, error) {
	object := base
	if r.deletes() {
		object = r.deletion(base)
	}
	for _, e := range r.edits {
		if e.at[0] == inQuery && !r.deletes() {
			continue
		}
		var err error
		if object, err = e.apply(object); err != nil {
			return nil, fmt.Errorf("%v: %w", r, err)
		}
	}
	return object, nil
}
