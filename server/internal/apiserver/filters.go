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
	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/status"
)

// requestInfo collects what the outermost filter reports when a request is
// done. It belongs to the request's goroutine.
type requestInfo struct {
	user    auth.User
	request *request // nil unless the request is for a resource
	err     error    // the cause of a 5xx answer
	code    int
	written int64
}

type infoKey struct{}

func infoFrom(ctx context.Context) *requestInfo {
	info, _ := ctx.Value(infoKey{}).(*requestInfo)
	return info
}

func userFrom(ctx context.Context) (auth.User, bool) {
	info := infoFrom(ctx)
	if info == nil {
		return auth.User{}, false
	}
	return info.user, true
}

// recorder notes the status and the size of an answer. Unwrap lets
// http.ResponseController reach flushing and deadlines.
type recorder struct {
	http.ResponseWriter
	info *requestInfo
}

func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *recorder) WriteHeader(code int) {
	if w.info.code == 0 {
		w.info.code = code
	}
	w.ResponseWriter.WriteHeader(code)
}

func (w *recorder) Write(p []byte) (int, error) {
	if w.info.code == 0 {
		w.info.code = http.StatusOK
	}
	n, err := w.ResponseWriter.Write(p)
	w.info.written += int64(n)
	return n, err
}

// ServeHTTP answers one request: observe, recover, authenticate,
// impersonate, limit, route.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	info := &requestInfo{}
	r = r.WithContext(context.WithValue(r.Context(), infoKey{}, info))
	rec := &recorder{ResponseWriter: w, info: info}
	rec.Header().Set("Audit-Id", uuid.NewString())
	if r.ProtoMajor == 1 && r.ContentLength != 0 {
		// Before net/http answers, it waits for a body that nobody has read. Of
		// HTTP/2 nobody does. An error means that there are no deadlines, in tests.
		_ = http.NewResponseController(w).SetReadDeadline(start.Add(s.config.RequestTimeout))
	}
	defer s.observe(r, info, start)
	defer s.recoverPanic(rec, r, info)

	user, err := s.authenticator.Authenticate(r)
	if err != nil {
		writeError(rec, r, err)
		return
	}
	info.user = user
	if info.user, err = s.authorizer.Impersonate(r, user); err != nil {
		writeError(rec, r, err)
		return
	}
	if r.Method != http.MethodGet {
		// For admission, which reads do not meet.
		r = r.WithContext(auth.WithUser(r.Context(), info.user))
	}
	s.limited(rec, r)
}

// recoverPanic turns a bug into a 500 for one client instead of an outage for
// all. An answer that has begun cannot be taken back: its connection breaks.
func (s *Server) recoverPanic(w *recorder, r *http.Request, info *requestInfo) {
	reason := recover()
	if reason == nil {
		return
	}
	if err, ok := reason.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(reason)
	}
	s.config.Logger.Error("request panicked", "method", r.Method, "path", r.URL.Path,
		"panic", reason, "stack", string(debug.Stack()))
	if info.code != 0 {
		panic(http.ErrAbortHandler)
	}
	writeError(w, r, fmt.Errorf("this request caused an internal error, which the server has logged: %s %s", r.Method, r.URL.Path))
}

// limited admits the request, bounds its time, and routes it. Watches have
// their own deadline and do not count: they cost next to nothing while idle.
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
			s.metrics.rejected.Inc()
			writeError(w, r, status.TooManyRequests("the server has received too many requests and has asked us to try again later", 1))
			return
		}
	}
	if r.ProtoMajor == 2 {
		// A client that opens its window by a byte now and then would hold the slot
		// for as long as it likes. What is said when the time is up still has its own.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.config.RequestTimeout + s.config.WriteTimeout))
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.config.RequestTimeout)
	defer cancel()
	s.route(w, r.WithContext(ctx))
}

// isLong says whether a request is a watch, before it is known to be valid.
func isLong(r *http.Request) bool {
	if r.Method != http.MethodGet {
		return false
	}
	t, ok := parsePath(r.URL.Path)
	return ok && verbOf(r.Method, t, r.URL.Query()) == verbWatch
}

func (s *Server) observe(r *http.Request, info *requestInfo, start time.Time) {
	elapsed := time.Since(start)
	s.metrics.observe(r, info, elapsed)
	log := s.config.Logger
	// A client that has gone away is the reason for what failed then, and it is
	// nothing for operators.
	if info.err != nil && r.Context().Err() == nil {
		log.Error("request failed", "method", r.Method, "uri", r.URL.RequestURI(), "code", info.code, "error", info.err)
	}
	log.Debug("request", "method", r.Method, "uri", r.URL.RequestURI(), "code", info.code,
		"bytes", info.written, "duration", elapsed, "user", info.user.Name, "agent", r.UserAgent())
}
