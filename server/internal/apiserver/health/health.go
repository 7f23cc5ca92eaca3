package health

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/status"
	"github.com/levelwire/levelwire/server/internal/watchcache"
)

// Check is one named condition of the server's health.
type Check struct {
	Name string
	// Check returns nil while the condition holds. It must heed ctx.
	Check func(ctx context.Context) error
	// Live makes it part of /livez and /healthz as well: if it fails, a
	// restart is the remedy. Otherwise it is only part of /readyz.
	Live bool
	// Startup makes it part of /healthz as well, but not of /livez: programs that
	// start a server, as envtest does, wait for /healthz before they use it.
	Startup bool
	// Shared: the check costs something, as a question to the store does, so that all
	// requests of a second share its result.
	Shared bool
}

// Config says what the health of a server consists of.
type Config struct {
	// Resources and Cache find the watch caches, which must be filled.
	Resources interface{ All() []*resource.Resource }
	Cache     func(stored *resource.Resource) *watchcache.Cache
	// Stopping is closed when the server drains.
	Stopping <-chan struct{}
	// Checks are the others.
	Checks []Check
	Logger *slog.Logger
}

// Handler serves the health of a server. It is safe for concurrent use.
type Handler struct {
	config  Config
	results map[string]*result // of config.Checks that are shared, by name
	// filled is when all caches were last found to be filled, in nanoseconds since New: to
	// look at each of thousands costs more than the rest of a request that needs no credentials.
	filled atomic.Int64
	began  time.Time
}

// New returns a Handler.
func New(config Config) *Handler {
	h := &Handler{config: config, results: map[string]*result{}, began: time.Now()}
	h.filled.Store(-int64(resultAge))
	for _, c := range config.Checks {
		if c.Shared {
			h.results[c.Name] = newResult(c)
		}
	}
	return h
}

// IsPath reports whether a path is about health.
func IsPath(path string) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return first == "healthz" || first == "livez" || first == "readyz"
}

// checks returns what the endpoint healthz, livez or readyz consists of.
func (h *Handler) checks(endpoint string) []Check {
	list := []Check{{Name: "ping", Check: func(context.Context) error { return nil }, Live: true}}
	ready := endpoint == "readyz"
	if ready {
		list = append(list,
			Check{Name: "caches", Check: h.cachesReady},
			Check{Name: "shutdown", Check: h.notStopping})
	}
	for _, c := range h.config.Checks {
		if ready || c.Live || c.Startup && endpoint == "healthz" {
			if c.Shared {
				c.Check = h.results[c.Name].get
			}
			list = append(list, c)
		}
	}
	return list
}

func (h *Handler) notStopping(context.Context) error {
	select {
	case <-h.config.Stopping:
		return status.ShuttingDown()
	default:
		return nil
	}
}

// cachesReady fails while caches are being filled, and names some of them. That all are filled
// may be a second old; that one is not is news, which those who wait for the server want soon.
func (h *Handler) cachesReady(context.Context) error {
	now := time.Since(h.began)
	if now-time.Duration(h.filled.Load()) < resultAge {
		return nil
	}
	var waiting []string
	for _, res := range resource.StoredResources(h.config.Resources.All()) {
		cache := h.config.Cache(res)
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
	h.filled.Store(int64(now))
	return nil
}

// healthTimeout bounds all checks of one request.
const healthTimeout = 5 * time.Second

// ServeHTTP answers /healthz, /livez and /readyz, with ?verbose and
// ?exclude=NAME, and single checks as /readyz/NAME, in Kubernetes' text form.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	endpoint, name, single := strings.Cut(strings.Trim(r.URL.Path, "/"), "/")
	list := h.checks(endpoint)
	if single {
		list = slices.DeleteFunc(list, func(c Check) bool { return c.Name != name })
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
		h.config.Logger.Debug("health check failed", "endpoint", endpoint, "checks", failed)
		writeText(w, r, http.StatusInternalServerError, report+endpoint+" check failed\n")
	case query.Has("verbose"):
		writeText(w, r, http.StatusOK, report+endpoint+" check passed\n")
	default:
		writeText(w, r, http.StatusOK, "ok")
	}
}

func runChecks(ctx context.Context, list []Check, exclude []string) (report string, failed []string) {
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
