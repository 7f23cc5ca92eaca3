package apiserver

import (
	"context"
	"net/http"
	"time"

	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/status"
)

// isComplete reports whether every custom resource that is defined is served.
func (s *Server) isComplete() bool {
	if s.config.Complete == nil {
		return true
	}
	select {
	case <-s.config.Complete:
		return true
	default:
		return false
	}
}

// waitComplete waits until every custom resource that is defined is served: a server
// that has started must not tell clients that a resource does not exist before it knows.
// After CatchUpTimeout it fails with 503.
func (s *Server) waitComplete(ctx context.Context) error {
	if s.isComplete() {
		return nil
	}
	timer := time.NewTimer(s.config.CatchUpTimeout)
	defer timer.Stop()
	select {
	case <-s.config.Complete:
		return nil
	case <-timer.C:
		return status.Starting()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// resolve finds the resource of a request for objects. For one that is not served yet it
// waits until the server knows all.
func (s *Server) resolve(r *http.Request, path request.Path) (*request.Info, error) {
	q, err := request.Resolve(r, path, s.lookup)
	if err == nil || s.isComplete() || s.lookup(path.Group, path.Version, path.Plural) != nil {
		return q, err
	}
	if err := s.waitComplete(r.Context()); err != nil {
		return nil, err
	}
	return request.Resolve(r, path, s.lookup)
}

// whenComplete has a handler wait until every custom resource is served.
func (s *Server) whenComplete(serve http.HandlerFunc) http.HandlerFunc {
	if s.isComplete() {
		return serve
	}
	return func(w http.ResponseWriter, r *http.Request) {
		if err := s.waitComplete(r.Context()); err != nil {
			encoding.WriteError(w, r, err)
			return
		}
		serve(w, r)
	}
}
