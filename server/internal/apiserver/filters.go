package apiserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/levelwire/levelwire/server/internal/apiserver/authentication"
	"github.com/levelwire/levelwire/server/internal/apiserver/authorization"
	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
	"github.com/levelwire/levelwire/server/internal/apiserver/maintenance"
	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/h2/listen"
	"github.com/levelwire/levelwire/server/internal/registry/reporter"
	"github.com/levelwire/levelwire/server/internal/tracing"
	"github.com/levelwire/levelwire/server/internal/ui"
)

// ServeHTTP answers one request: observe, recover, authenticate, audit,
// impersonate, limit, route.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	record := &request.Record{}
	r = r.WithContext(request.WithRecord(r.Context(), record))
	rec := request.NewRecorder(w, r, record)
	id := s.auditID(r)
	rec.Header().Set("Audit-Id", id)
	if r.ProtoMajor == 1 && r.ContentLength != 0 {
		// Before it answers, net/http waits for a body that the handler has not
		// read; package h2 does not. An error means that there are no deadlines, in
		// tests.
		_ = http.NewResponseController(w).SetReadDeadline(start.Add(s.config.RequestTimeout))
	}
	unread := watchBody(rec, r)
	defer unread.discard(earlyAnswerBodies * s.config.MaxBodyBytes)
	defer s.complete(rec, r, record, start)
	defer s.recoverPanic(rec, r, record)

	if s.config.UI != nil {
		if ui.Serves(r.URL.Path) {
			listen.FromContext(r.Context()).Used()
			s.config.UI.ServeHTTP(rec, r)
			return
		}
		s.config.UI.Identify(r)
	}
	user, err := s.authenticator.Authenticate(r)
	if warning := authentication.Warning(r); warning != "" {
		request.AddWarnings(rec, warning)
	}
	if s.config.Audit != nil {
		if rejected := s.beginAudit(r, record, user, err, id, start); rejected != nil && err == nil {
			err = rejected
		}
	} else {
		record.BeginAudit(nil)
	}
	if s.config.Tracer != nil {
		var span trace.Span
		r, span = s.config.Tracer.Begin(r, tracing.Request{Groups: user.Groups, Began: start, ID: id, Denied: err})
		defer func() {
			if !record.Detached {
				endTrace(span, r.Method, record)
			}
		}()
	}
	if err != nil {
		listen.FromContext(r.Context()).Used() // it keeps no connection that a user has given up
		if _, ok := w.(interface{ Authenticated() }); !ok {
			rec.Header().Set("Connection", "close") // package h2 closes those on which no request was authenticated
		}
		encoding.WriteError(rec, r, err)
		return
	}
	record.User = user
	if err := s.noteUser(rec, r, user); err != nil {
		encoding.WriteError(rec, r, err)
		return
	}
	impersonation, err := s.impersonate(r, user)
	record.User, record.Impersonation = impersonation.User, impersonation.Needed
	if err != nil {
		encoding.WriteError(rec, r, err)
		return
	}
	if record.Audit != nil {
		auditImpersonation(record, impersonation.Constraint)
	}
	if r.Method != http.MethodGet {
		// Admission needs the user; reads do not.
		r = r.WithContext(auth.WithUser(r.Context(), record.User))
	}
	if s.config.UI != nil && s.config.UI.ServeUser(rec, r, record.User) {
		return
	}
	if strings.HasPrefix(r.URL.Path, maintenance.Path) {
		s.maintenance.Serve(rec, r, record.User) // may take longer than other requests
		return
	}
	s.limited(rec, r)
}

// noteUser has the connection of a request be one of its user, and lifts the limits of those
// whose clients are not known.
func (s *Server) noteUser(rec *request.Recorder, r *http.Request, user auth.User) error {
	conn := listen.FromContext(r.Context())
	if user.In(auth.Unauthenticated) {
		conn.Used()
		return nil
	}
	if !conn.Held() {
		if err := s.holdConnection(rec, conn, r, user); err != nil {
			return err
		}
	}
	if connection, ok := rec.Unwrap().(interface{ Authenticated() }); ok {
		connection.Authenticated()
	}
	return nil
}

// impersonate returns the user that a request acts as. That is decided before the request
// has a slot, so those that wait for it are bounded by themselves.
func (s *Server) impersonate(r *http.Request, user auth.User) (authorization.Impersonation, error) {
	if authorization.Impersonates(r.Header) {
		done, err := s.undecided(user)
		if err != nil {
			return authorization.Impersonation{User: user}, err
		}
		defer done()
		defer request.RecordFrom(r.Context()).Measure(reporter.Impersonation).End()
	}
	return s.authorizer.Impersonate(r, user, func() auth.Attributes { return targetOf(r, user).attributes })
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
	if record.Audit != nil {
		auditPanic(record, reason)
	}
	s.config.Logger.Error("request panicked", "method", r.Method, "path", r.URL.Path,
		"panic", reason, "stack", string(debug.Stack()))
	if record.Code != 0 {
		panic(http.ErrAbortHandler)
	}
	encoding.WriteError(w, r, fmt.Errorf("this request caused an internal error, which the server has logged: %s %s", r.Method, r.URL.Path))
}

// complete ends a request whose handler has returned, unless that goes on without it.
func (s *Server) complete(rec *request.Recorder, r *http.Request, record *request.Record, start time.Time) {
	if record.Detached {
		return
	}
	record.End()
	if record.Audit != nil {
		completeAudit(rec.Header(), record)
	}
	// A request whose client has gone away fails for that reason: nothing for
	// operators.
	if record.Err != nil && r.Context().Err() == nil {
		level := slog.LevelError
		if record.Known {
			level = slog.LevelDebug
		}
		s.config.Logger.Log(r.Context(), level, "request failed", "method", r.Method, "uri", r.URL.RequestURI(), "code", record.Code, "error", record.Err)
	}
	s.observe(r.Method, r.RequestURI, r.UserAgent(), record, start)
}

func (s *Server) observe(method, uri, agent string, record *request.Record, start time.Time) {
	elapsed := time.Since(start)
	s.metrics.Observe(method, record, elapsed)
	if !s.config.Logger.Enabled(context.Background(), slog.LevelDebug) {
		return // to collect what is logged would be half a kilobyte of garbage for each request
	}
	s.config.Logger.Debug("request", "method", method, "uri", uri, "code", record.Code,
		"bytes", record.Written, "duration", elapsed, "user", record.User.Name, "agent", agent)
}
