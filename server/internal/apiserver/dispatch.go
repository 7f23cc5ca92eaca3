package apiserver

import (
	"net/http"

	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
	"github.com/levelwire/levelwire/server/internal/apiserver/handlers"
	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/resource"
)

// serveResource resolves and authorizes a request for objects and hands it to
// the verb's handler.
func (s *Server) serveResource(w http.ResponseWriter, r *http.Request, t *target) {
	attributes := t.attributes
	q, err := s.resolve(r, t.path)
	if err == nil {
		q.User, q.Authorized = attributes.User, attributes
		request.RecordFrom(r.Context()).Info = q
	}
	// Whether there is such a resource is for users who may ask.
	denied := s.authorizeTarget(r, t)
	if err == nil && s.asksForVisible(q) {
		var close func()
		if close, denied = s.authorizeVisible(w, r, q, denied); denied == nil {
			request.RecordFrom(r.Context()).AtEnd(close)
		}
	}
	if denied != nil {
		writeDenied(w, r, denied)
		return
	}
	if err != nil {
		encoding.WriteError(w, r, err)
		return
	}
	if q.Resource.Deprecation != "" {
		s.noteDeprecated(w, r, q)
	}
	if err := s.handlerOf(q)(w, r, q); err != nil {
		encoding.WriteError(w, r, err)
	}
}

// noteDeprecated warns the client of a version that will go, and has operators find out about the
// client: by a metric and in the audit log, as with kube-apiserver.
func (s *Server) noteDeprecated(w http.ResponseWriter, r *http.Request, q *request.Info) {
	request.AddWarnings(w, q.Resource.Deprecation)
	s.metrics.RequestedDeprecated(q)
	request.RecordFrom(r.Context()).Annotate("k8s.io/deprecated", "true")
}

// writeDenied answers a request that is not authorized.
func writeDenied(w http.ResponseWriter, r *http.Request, err error) {
	w.Header().Set("X-Content-Type-Options", "nosniff") // the message quotes what the client sent
	encoding.WriteError(w, r, err)
}

// handlerOf returns the handler of a verb on a resource.
func (s *Server) handlerOf(q *request.Info) handlers.Handler {
	if q.Verb == request.VerbWatch && q.Subresource == "" {
		return s.watch
	}
	return s.verbs.For(q)
}

// lookup finds the resource of a path, in the table or among those that are not stored.
func (s *Server) lookup(group, version, plural string) *resource.Resource {
	if res := s.config.Resources.Lookup(group, version, plural); res != nil {
		return res
	}
	return handlers.LookupUnstored(group, version, plural)
}
