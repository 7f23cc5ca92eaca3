package apiserver

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/read"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/status"
)

// The verbs, as authorization and discovery name them.
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

// request is what one HTTP request asks of one resource.
type request struct {
	verb        string
	resource    *resource.Resource
	namespace   string // "" for all namespaces and for cluster-scoped kinds
	name        string // "" for the collection
	subresource string // "status", "scale", "binding", ...
	rest        string // the path after the subresource, without a leading slash
	query       url.Values
	user        auth.User
}

// scope is what a read of q is about.
func (q *request) scope() read.Scope {
	return read.Scope{Resource: q.resource, Namespace: q.namespace, Name: q.name}
}

// target is a parsed API path, before the table of resources has been asked.
type target struct {
	group, version    string
	watch             bool // the legacy /watch/ prefix
	namespace, plural string
	name, subresource string
	rest              string
	namespaced        bool // the path says namespaces/{namespace}/
}

// parsePath splits the path of a request for objects. ok is false if it is
// not one: then it is discovery, health or unknown.
func parsePath(path string) (t target, ok bool) {
	parts := strings.Split(strings.TrimSuffix(strings.TrimPrefix(path, "/"), "/"), "/")
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		t.version, parts = parts[1], parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		t.group, t.version, parts = parts[1], parts[2], parts[3:]
	default:
		return t, false
	}
	if parts[0] == "watch" {
		t.watch, parts = true, parts[1:]
	}
	if len(parts) >= 3 && parts[0] == "namespaces" && !namespaceSubresource(t.group, parts[2:]) {
		t.namespaced, t.namespace, parts = true, parts[1], parts[2:]
	}
	for i, part := range parts {
		if part == "" && i < 3 {
			return t, false
		}
	}
	switch n := len(parts); {
	case n == 0:
		return t, false
	case n > 3:
		t.rest = strings.Join(parts[3:], "/")
		fallthrough
	case n == 3:
		t.subresource = parts[2]
		fallthrough
	case n == 2:
		t.name = parts[1]
		fallthrough
	default:
		t.plural = parts[0]
	}
	return t, !t.namespaced || t.namespace != ""
}

// namespaceSubresource tells /api/v1/namespaces/x/status, which is about the
// namespace itself, from /api/v1/namespaces/x/pods.
func namespaceSubresource(group string, rest []string) bool {
	return group == "" && len(rest) == 1 && (rest[0] == "status" || rest[0] == "finalize")
}

// resolve asks the table what the path means and the method what is wanted.
// Its errors are a 404 or a 405 as Status.
func (s *Server) resolve(r *http.Request, t target) (*request, error) {
	res := s.lookup(t.group, t.version, t.plural)
	if res == nil {
		return nil, status.NoSuchPath()
	}
	if t.namespaced && !res.Namespaced || !t.namespaced && res.Namespaced && t.name != "" {
		return nil, status.NoSuchPath()
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, status.BadRequest("the query string cannot be parsed: %v", err)
	}
	q := &request{
		resource: res, namespace: t.namespace, name: t.name,
		subresource: t.subresource, rest: t.rest, query: query,
	}
	if q.verb = verbOf(r.Method, t, query); q.verb == "" {
		return nil, status.MethodNotSupported(res, r.Method)
	}
	collective := q.verb == verbCreate || q.verb == verbDeleteCollection
	if collective && q.subresource == "" && res.Namespaced && !t.namespaced {
		return nil, status.MethodNotSupported(res, q.verb)
	}
	if q.subresource == "" && !offers(res, q.verb) {
		return nil, status.MethodNotSupported(res, q.verb)
	}
	return q, nil
}

// verbOf returns the verb of a method on a path, or "" if the method is wrong
// there.
func verbOf(method string, t target, query url.Values) string {
	one := t.name != ""
	switch {
	case method == http.MethodGet || method == http.MethodHead:
		switch {
		case t.subresource == "" && (t.watch || isTrue(query, "watch")):
			return verbWatch
		case one:
			return verbGet
		}
		return verbList
	case t.watch:
		return ""
	case method == http.MethodPost && (!one || t.subresource != ""):
		return verbCreate
	case method == http.MethodPut && one:
		return verbUpdate
	case method == http.MethodPatch && one:
		return verbPatch
	case method == http.MethodDelete && one:
		return verbDelete
	case method == http.MethodDelete:
		return verbDeleteCollection
	}
	return ""
}

// allVerbs is what a resource offers that does not say otherwise, in the
// order of discovery documents.
var allVerbs = []string{
	verbCreate, verbDelete, verbDeleteCollection, verbGet, verbList, verbPatch, verbUpdate, verbWatch,
}

func verbsOf(res *resource.Resource) []string {
	if res.Verbs == nil {
		return allVerbs
	}
	return res.Verbs
}

func offers(res *resource.Resource, verb string) bool {
	return slices.Contains(verbsOf(res), verb)
}

// isTrue reads a boolean query parameter as Kubernetes does: if it is there,
// anything but "0" and "false" is true, even nothing.
func isTrue(query url.Values, name string) bool {
	value := query.Get(name)
	return query.Has(name) && value != "0" && !strings.EqualFold(value, "false")
}
