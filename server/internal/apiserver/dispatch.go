package apiserver

import (
	"net/http"

	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/status"
)

// handler answers one request. If it returns an error it has not written
// anything, and the caller writes the error as a Status.
type handler func(w http.ResponseWriter, r *http.Request, q *request) error

// serveResource resolves and authorizes a request for objects and hands it to
// the verb's handler.
func (s *Server) serveResource(w http.ResponseWriter, r *http.Request, t target) {
	user, _ := userFrom(r.Context())
	q, err := s.resolve(r, t)
	if err != nil {
		writeError(w, r, err)
		return
	}
	q.user = user
	if info := infoFrom(r.Context()); info != nil {
		info.request = q
	}
	if err := s.authorizer.Authorize(r.Context(), attributesOf(r, q)); err != nil {
		writeError(w, r, err)
		return
	}
	if q.resource.Deprecation != "" {
		addWarning(w, q.resource.Deprecation)
	}
	if err := s.handlerOf(q)(w, r, q); err != nil {
		writeError(w, r, err)
	}
}

// attributesOf returns what the authorizer decides about.
func attributesOf(r *http.Request, q *request) auth.Attributes {
	return auth.Attributes{
		User: q.user, Verb: q.verb, Path: r.URL.Path,
		Group: q.resource.Group, Version: q.resource.Version, Resource: q.resource.Plural,
		Subresource: q.subresource, Namespace: q.namespace, Name: q.name,
	}
}

// handlerOf is the method table.
func (s *Server) handlerOf(q *request) handler {
	if q.subresource != "" {
		return s.subresourceHandler(q)
	}
	switch q.verb {
	case verbGet:
		return s.get
	case verbList:
		return s.list
	case verbWatch:
		return s.watch
	case verbCreate:
		if isCreateOnly(q.resource) {
			return s.createReview
		}
		return s.create
	case verbUpdate:
		return s.update
	case verbPatch:
		return s.patch
	case verbDelete:
		return s.delete
	case verbDeleteCollection:
		return s.deleteCollection
	}
	return refuse(status.MethodNotSupported(q.resource, q.verb))
}

// subresourceHandler answers what the kubelets of real nodes would answer
// with a refusal; the others change objects.
func (s *Server) subresourceHandler(q *request) handler {
	if err := refusedSubresource(q); err != nil {
		return refuse(err)
	}
	switch {
	case q.verb == verbGet && q.subresource == "status" && q.resource.Status:
		return s.get
	case q.verb == verbGet:
		return s.getSubresource
	case q.verb == verbCreate:
		return s.createSubresource
	case q.verb == verbUpdate:
		return s.updateSubresource
	case q.verb == verbPatch:
		return s.patchSubresource
	}
	return refuse(status.MethodNotSupported(q.resource, q.verb))
}

func refuse(err error) handler {
	return func(http.ResponseWriter, *http.Request, *request) error { return err }
}

// refusedSubresource explains what cannot be had because pods are simulated.
// nil: the subresource is not one of these.
func refusedSubresource(q *request) error {
	if q.resource.Group != "" || q.resource.Version != "v1" {
		return nil
	}
	switch q.resource.Plural {
	case "pods", "nodes", "services":
	default:
		return nil
	}
	switch q.subresource {
	case "log":
		return status.BadRequest("logs are not available: Levelwire's kubelets simulate their pods, and no container writes any")
	case "exec", "attach", "portforward":
		return status.BadRequest("%s is not available: Levelwire's kubelets simulate their pods, and no container runs", q.subresource)
	case "proxy":
		return status.BadRequest("proxy is not available: Levelwire's kubelets simulate their pods, and nothing listens behind %s %q",
			q.resource.Singular, q.name)
	}
	return nil
}
