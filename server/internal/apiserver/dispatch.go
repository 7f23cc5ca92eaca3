package apiserver

import (
	"net/http"

	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/status"
)

// handler answers one request. If it returns an error, it has not written anything,
// and the caller writes the error as a Status.
type handler func(w http.ResponseWriter, r *http.Request, q *request.Info) error

// serveResource resolves and authorizes a request for objects and hands it to
// the verb's handler.
func (s *Server) serveResource(w http.ResponseWriter, r *http.Request, t request.Path) {
	user := request.RecordFrom(r.Context()).User
	q, err := request.Resolve(r, t, s.lookup)
	if err != nil {
		encoding.WriteError(w, r, err)
		return
	}
	q.User = user
	request.RecordFrom(r.Context()).Info = q
	if err := s.authorizer.Authorize(r.Context(), q.AuthorizationAttributes(r)); err != nil {
		encoding.WriteError(w, r, err)
		return
	}
	if q.Resource.Deprecation != "" {
		encoding.AddWarning(w, q.Resource.Deprecation)
	}
	if err := s.handlerOf(q)(w, r, q); err != nil {
		encoding.WriteError(w, r, err)
	}
}

// handlerOf returns the handler of a verb on a resource.
func (s *Server) handlerOf(q *request.Info) handler {
	if q.Subresource != "" {
		return s.subresourceHandler(q)
	}
	switch q.Verb {
	case request.VerbGet:
		return s.get
	case request.VerbList:
		return s.list
	case request.VerbWatch:
		return s.watch
	case request.VerbCreate:
		if isCreateOnly(q.Resource) {
			return s.createReview
		}
		return s.create
	case request.VerbUpdate:
		return s.update
	case request.VerbPatch:
		return s.patch
	case request.VerbDelete:
		return s.delete
	case request.VerbDeleteCollection:
		return s.deleteCollection
	}
	return refuse(status.MethodNotSupported(q.Resource, q.Verb))
}

// subresourceHandler returns the handler of a subresource. Those that the kubelets
// of real nodes would answer are refused.
func (s *Server) subresourceHandler(q *request.Info) handler {
	if err := refusedSubresource(q); err != nil {
		return refuse(err)
	}
	switch {
	case q.Verb == request.VerbGet && q.Subresource == "status" && q.Resource.Status:
		return s.get
	case q.Verb == request.VerbGet:
		return s.getSubresource
	case q.Verb == request.VerbCreate:
		return s.createSubresource
	case q.Verb == request.VerbUpdate:
		return s.updateSubresource
	case q.Verb == request.VerbPatch:
		return s.patchSubresource
	}
	return refuse(status.MethodNotSupported(q.Resource, q.Verb))
}

func refuse(err error) handler {
	return func(http.ResponseWriter, *http.Request, *request.Info) error { return err }
}

// refusedSubresource returns the refusal of a subresource that cannot exist because
// pods are simulated; nil for any other.
func refusedSubresource(q *request.Info) error {
	if q.Resource.Group != "" || q.Resource.Version != "v1" {
		return nil
	}
	switch q.Resource.Plural {
	case "pods", "nodes", "services":
	default:
		return nil
	}
	switch q.Subresource {
	case "log":
		return status.BadRequest("logs are not available: Levelwire's kubelets simulate their pods, and no container writes any")
	case "exec", "attach", "portforward":
		return status.BadRequest("%s is not available: Levelwire's kubelets simulate their pods, and no container runs", q.Subresource)
	case "proxy":
		return status.BadRequest("proxy is not available: Levelwire's kubelets simulate their pods, and nothing listens behind %s %q",
			q.Resource.Singular, q.Name)
	}
	return nil
}
