package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/google/uuid"

	"github.com/levelwire/levelwire/server/internal/apiserver/authentication"
	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/status"
)

// ServeHTTP answers one request: observe, recover, authenticate,
// impersonate, limit, route.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	record := &request.Record{}
	r = r.WithContext(request.WithRecord(r.Context(), record))
	rec := request.NewRecorder(w, record)
	rec.Header().Set("Audit-Id", uuid.NewString())
	if r.ProtoMajor == 1 && r.ContentLength != 0 {
		// Before it answers, net/http waits for a body that the handler has not
		// read; package h2 does not. An error means that there are no deadlines, in
		// tests.
		_ = http.NewResponseController(w).SetReadDeadline(start.Add(s.config.RequestTimeout))
	}
	defer s.observe(r, record, start)
	defer s.recoverPanic(rec, r, record)

	user, err := s.authenticator.Authenticate(r)
	if err != nil {
		encoding.WriteError(rec, r, err)
		return
	}
	record.User = user
	if record.User, err = s.authorizer.Impersonate(r, user); err != nil {
		encoding.WriteError(rec, r, err)
		return
	}
	if r.Method != http.MethodGet {
		// Admission needs the user; reads do not.
		r = r.WithContext(auth.WithUser(r.Context(), record.User))
	}
	s.limited(rec, r)
}

// recoverPanic turns a bug into a 500 for one client instead of an outage for
// all. An answer that has begun cannot be taken back: its connection breaks.
func (s *Server) recoverPanic(w *request.Recorder, r *http.Request, record *request.Record) {
	reason := recover()
	if reason == nil {
		return
	}
	if err, ok := reason.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(reason)
	}
	s.config.Logger.Error("request panicked", "method", r.Method, "path", r.URL.Path,
		"panic", reason, "stack", string(debug.Stack()))
	if record.Code != 0 {
		panic(http.ErrAbortHandler)
	}
	encoding.WriteError(w, r, fmt.Errorf("this request caused an internal error, which the server has logged: %s %s", r.Method, r.URL.Path))
}

// limited bounds the number of requests at a time and the time of each, and routes
// the request. Watches have a deadline of their own and do not count: they cost next
// to nothing while they are idle.
func (s *Server) limited(w http.ResponseWriter, r *http.Request) {
	if isLong(r) {
		s.route(w, r)
		return
	}
	slots := s.readSlots
	if _, reads := differencePath(r.URL.Path); !reads && r.Method != http.MethodGet && r.Method != http.MethodHead {
		slots = s.writeSlots
	}
	if !authentication.NeedsNoCredentials(r.URL.Path) {
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
		default:
			s.metrics.Rejected.Inc()
			encoding.WriteError(w, r, status.TooManyRequests("the server has received too many requests and has asked us to try again later", 1))
			return
		}
	}
	if r.ProtoMajor == 2 {
		// A client that opens its window by a byte now and then would otherwise keep
		// the slot for as long as it likes. The error that follows the end of the
		// time has WriteTimeout of its own.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.config.RequestTimeout + s.config.WriteTimeout))
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.config.RequestTimeout)
	defer cancel()
	s.route(w, r.WithContext(ctx))
}

// isLong reports whether a request asks for a watch. It may still be invalid.
func isLong(r *http.Request) bool {
	if r.Method != http.MethodGet {
		return false
	}
	t, ok := request.ParsePath(r.URL.Path)
	return ok && request.VerbOf(r.Method, t, r.URL.Query()) == request.VerbWatch
}

func (s *Server) observe(r *http.Request, record *request.Record, start time.Time) {
	elapsed := time.Since(start)
	s.metrics.Observe(r, record, elapsed)
	log := s.config.Logger
	// A request whose client has gone away fails for that reason: nothing for
	// operators.
	if record.Err != nil && r.Context().Err() == nil {
		log.Error("request failed", "method", r.Method, "uri", r.URL.RequestURI(), "code", record.Code, "error", record.Err)
	}
	log.Debug("request", "method", r.Method, "uri", r.URL.RequestURI(), "code", record.Code,
		"bytes", record.Written, "duration", elapsed, "user", record.User.Name, "agent", r.UserAgent())
}
