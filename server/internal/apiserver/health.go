package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
	"github.com/levelwire/levelwire/server/internal/status"
)

// HealthCheck is one named condition of the server's health.
type HealthCheck struct {
	Name string
	// Check returns nil while the condition holds. It must heed ctx.
	Check func(ctx context.Context) error
	// Live makes it part of /livez and /healthz as well: if it fails, a
	// restart is the remedy. Otherwise it is only part of /readyz.
	Live bool
}

// checks returns what /livez or /readyz consist of.
func (s *Server) checks(ready bool) []HealthCheck {
	list := []HealthCheck{{Name: "ping", Check: func(context.Context) error { return nil }, Live: true}}
	if ready {
		list = append(list,
			HealthCheck{Name: "caches", Check: s.cachesReady},
			HealthCheck{Name: "shutdown", Check: s.notStopping})
	}
	for _, c := range s.config.HealthChecks {
		if ready || c.Live {
			list = append(list, c)
		}
	}
	return list
}

func (s *Server) notStopping(context.Context) error {
	if s.isStopping() {
		return status.ShuttingDown()
	}
	return nil
}

func (s *Server) isStopping() bool {
	select {
	case <-s.stopping:
		return true
	default:
		return false
	}
}

// cachesReady fails, with the names of some, while caches are being filled.
func (s *Server) cachesReady(context.Context) error {
	var waiting []string
	for _, res := range storedResources(s.config.Resources) {
		cache := s.config.Cache(res)
		if cache == nil {
			waiting = append(waiting, res.GroupResource().String())
			continue
		}
		select {
		case <-cache.Ready():
		default:
			waiting = append(waiting, res.GroupResource().String())
		}
	}
	if n := len(waiting); n > 0 {
		return fmt.Errorf("%d caches are not filled yet, among them %s", n, strings.Join(waiting[:min(n, 3)], ", "))
	}
	return nil
}

// healthTimeout bounds all checks of one request.
const healthTimeout = 5 * time.Second

// serveHealth answers /healthz, /livez and /readyz, with ?verbose and
// ?exclude=NAME, and single checks as /readyz/NAME, in Kubernetes' text form.
func (s *Server) serveHealth(w http.ResponseWriter, r *http.Request) {
	endpoint, name, single := strings.Cut(strings.Trim(r.URL.Path, "/"), "/")
	list := s.checks(endpoint == "readyz")
	if single {
		list = slices.DeleteFunc(list, func(c HealthCheck) bool { return c.Name != name })
		if len(list) == 0 {
			encoding.WriteError(w, r, status.NoSuchPath())
			return
		}
	}
	ctx, cancel := context.WithTimeout(r.Context(), healthTimeout)
	defer cancel()
	query := r.URL.Query()
	report, failed := runChecks(ctx, list, query["exclude"])
	switch {
	case len(failed) > 0:
		s.config.Logger.Debug("health check failed", "endpoint", endpoint, "checks", failed)
		writeText(w, r, http.StatusInternalServerError, report+endpoint+" check failed\n")
	case query.Has("verbose"):
		writeText(w, r, http.StatusOK, report+endpoint+" check passed\n")
	default:
		writeText(w, r, http.StatusOK, "ok")
	}
}

func runChecks(ctx context.Context, list []HealthCheck, exclude []string) (report string, failed []string) {
	var b strings.Builder
	for _, c := range list {
		if slices.Contains(exclude, c.Name) {
			fmt.Fprintf(&b, "[+]%s excluded: ok\n", c.Name)
			continue
		}
		if err := c.Check(ctx); err != nil {
			failed = append(failed, c.Name)
			fmt.Fprintf(&b, "[-]%s failed: %v\n", c.Name, err)
			continue
		}
		fmt.Fprintf(&b, "[+]%s ok\n", c.Name)
	}
	return b.String(), failed
}

func writeText(w http.ResponseWriter, r *http.Request, code int, text string) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	encoding.WriteBody(w, r, code, "text/plain; charset=utf-8", []byte(text))
}
