package apiserver

import (
	"net/http"
	"slices"
	"strings"

	"github.com/levelwire/levelwire/server/internal/apiserver/inflight"
	"github.com/levelwire/levelwire/server/internal/apiserver/proxy"
	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/auth"
)

// target is what a request is about, by its path, method and query. Whether there is such
// a resource or path is not known yet.
type target struct {
	path       request.Path // if onObjects
	onObjects  bool
	inspects   bool // the debug API shows something of objects
	attributes auth.Attributes
	// server is the other server that answers; nil: this one does.
	server proxy.Server
	slot   *inflight.Slot // of a request to another server that ends by itself
}

// longSubresources are those whose answers need not end, as kube-apiserver has it.
var longSubresources = []string{"attach", "exec", "log", "portforward", "proxy"}

// target is targetOf with the other server that answers, if one does.
func (s *Server) target(r *http.Request, user auth.User) target {
	t := targetOf(r, user)
	if s.config.Aggregator != nil {
		if aggregated := s.aggregated(&t, r.URL.Path); aggregated != nil {
			t.server = aggregated
		}
	}
	if s.config.Upstream != nil && !s.mayAnswer(&t, r) {
		t.server = s.config.Upstream
	}
	return t
}

func targetOf(r *http.Request, user auth.User) target {
	if t, ok := request.ParsePath(r.URL.Path); ok {
		return target{path: t, onObjects: true, attributes: t.Attributes(r, user)}
	}
	if collection, ok := differencePath(r.URL.Path); ok {
		if t, ok := request.ParsePath(collection); ok {
			list := *r
			list.Method = http.MethodGet
			attributes := t.Attributes(&list, user)
			attributes.Verb = request.VerbList // it has what a list has
			return target{attributes: attributes}
		}
	}
	if kind, t, ok := inspectionPath(r.URL.Path); ok {
		get := *r
		get.Method = http.MethodGet
		attributes := t.Attributes(&get, user)
		attributes.Verb = inspectionVerbs[kind]
		return target{inspects: true, attributes: attributes}
	}
	return target{attributes: auth.Attributes{User: user, Verb: strings.ToLower(r.Method), Path: r.URL.Path}}
}

// isLong reports whether a request asks for a watch, or for another answer of another
// server that need not end. It may still be invalid.
func (t *target) isLong(r *http.Request) bool {
	if t.server != nil && (proxy.IsUpgrade(r) || slices.Contains(longSubresources, t.path.Subresource)) {
		return true
	}
	if t.inspects {
		return watchesWindow(r)
	}
	return r.Method == http.MethodGet && t.onObjects && t.attributes.Verb == request.VerbWatch
}
