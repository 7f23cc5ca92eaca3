package health

import (
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// Options configures a handler.
type Options struct {
	// Live are the checks of /livez and /healthz. Keep in it only what a restart
	// mends. Default: none, and the answer says that the process runs.
	Live Checks
	// Ready are the checks of /readyz. Default: none.
	Ready Checks
	// Logger receives why a check fails, when it begins to, and when it passes
	// again. Default: slog.Default().
	Logger *slog.Logger
}

// NewHandler returns a handler for GET and HEAD of /livez, /healthz and /readyz. The
// answer is 200 with "ok", or 500 with the checks that failed, "reason withheld": who
// may read the endpoint need not be one who may read the log, which has the reasons.
//
//   - ?verbose lists the checks that passed, too.
//   - ?exclude=name leaves a check out; it can be repeated.
//   - /readyz/name is one check alone.
//
// Each request runs all checks, one after the other. A mux can serve other paths
// beside it.
func NewHandler(opts Options) http.Handler {
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	mux := http.NewServeMux()
	for name, checks := range map[string]Checks{"livez": opts.Live, "healthz": opts.Live, "readyz": opts.Ready} {
		e := &endpoint{name: name, checks: maps.Clone(checks), log: opts.Logger, failing: map[string]bool{}}
		mux.HandleFunc("GET /"+name, e.serveAll)
		mux.HandleFunc("GET /"+name+"/{check}", e.serveOne)
	}
	return mux
}

// endpoint is one path.
type endpoint struct {
	name   string
	checks Checks // constant
	log    *slog.Logger

	mu      sync.Mutex
	failing map[string]bool // what was logged last
}

func (e *endpoint) serveAll(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	excluded := map[string]bool{}
	for _, name := range query["exclude"] {
		excluded[name] = true
	}
	var report strings.Builder
	failed := false
	for _, name := range slices.Sorted(maps.Keys(e.checks)) {
		if excluded[name] {
			delete(excluded, name)
			fmt.Fprintf(&report, "[+]%s excluded: ok\n", name)
			continue
		}
		if e.passes(r, name) {
			fmt.Fprintf(&report, "[+]%s ok\n", name)
			continue
		}
		failed = true
		fmt.Fprintf(&report, "[-]%s failed: reason withheld\n", name)
	}
	for _, name := range slices.Sorted(maps.Keys(excluded)) {
		fmt.Fprintf(&report, "warn: there is no check %q to exclude\n", name)
	}
	switch {
	case failed:
		answer(w, http.StatusInternalServerError, report.String()+e.name+" check failed\n")
	case query.Has("verbose"):
		answer(w, http.StatusOK, report.String()+e.name+" check passed\n")
	default:
		answer(w, http.StatusOK, "ok")
	}
}

func (e *endpoint) serveOne(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("check")
	switch _, known := e.checks[name]; {
	case !known:
		answer(w, http.StatusNotFound, "no such check\n")
	case e.passes(r, name):
		answer(w, http.StatusOK, "ok")
	default:
		answer(w, http.StatusInternalServerError, fmt.Sprintf("[-]%s failed: reason withheld\n", name))
	}
}

// passes runs a check, and logs when its result is another than before.
func (e *endpoint) passes(r *http.Request, name string) bool {
	err := e.checks[name].run(r.Context())
	if r.Context().Err() != nil {
		return err == nil // the client has left: what fails then says nothing
	}
	e.mu.Lock()
	before := e.failing[name]
	e.failing[name] = err != nil
	e.mu.Unlock()
	switch {
	case err != nil && !before:
		e.log.Warn("health check fails", "endpoint", e.name, "check", name, "error", err)
	case err == nil && before:
		e.log.Info("health check passes again", "endpoint", e.name, "check", name)
	}
	return err == nil
}

func answer(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-cache, no-store")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(text))
}
