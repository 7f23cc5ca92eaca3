package apiserver

import (
	"net/http"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/apiserver/authentication"
	"github.com/levelwire/levelwire/server/internal/apiserver/authorization"
	"github.com/levelwire/levelwire/server/internal/apiserver/discovery"
	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
	"github.com/levelwire/levelwire/server/internal/apiserver/health"
	"github.com/levelwire/levelwire/server/internal/apiserver/metrics"
	"github.com/levelwire/levelwire/server/internal/apiserver/profiling"
	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/apiserver/watchstream"
	"github.com/levelwire/levelwire/server/internal/apiserver/websocket"
	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/read"
	"github.com/levelwire/levelwire/server/internal/status"
)

// Server answers the Kubernetes API. It is an http.Handler; all methods may
// be called concurrently.
type Server struct {
	config        Config
	reader        *read.Reader
	metrics       *metrics.Metrics
	health        *health.Handler
	authenticator *authentication.Authenticator
	authorizer    *authorization.Authorizer

	readSlots, writeSlots chan struct{}

	// stopping is closed when the server drains: watches end then.
	stopping chan struct{}
	stopOnce sync.Once
	sockets  websocket.Sockets
	streams  *watchstream.Streams

	discovery *discovery.Handler
}

// New returns a server, or what is wrong with its configuration. It starts
// nothing.
func New(config Config) (*Server, error) {
	config.setDefaults()
	if err := config.validate(); err != nil {
		return nil, err
	}
	reader, err := read.New(read.Config{Store: config.Store, Cache: config.Cache, MinWatchTimeout: config.MinWatchTimeout, CatchUpTimeout: config.CatchUpTimeout})
	if err != nil {
		return nil, err
	}
	s := &Server{
		config:  config,
		reader:  reader,
		metrics: metrics.New(metrics.Caches(config.Resources, config.Cache)),
		authenticator: authentication.New(authentication.Config{
			ClientCAs: config.ClientCAs, Tokens: config.Tokens, Audiences: config.Audiences, Logger: config.Logger,
		}),
		authorizer: authorization.New(config.Authorizer),
		discovery:  discovery.NewHandler(discovery.HandlerConfig{Resources: config.Resources, CreateOnly: createOnly, Version: config.Version}),
		readSlots:  make(chan struct{}, config.MaxReadsInFlight),
		writeSlots: make(chan struct{}, config.MaxWritesInFlight),
		stopping:   make(chan struct{}),
	}
	s.health = health.New(health.Config{
		Resources: config.Resources, Cache: config.Cache, Stopping: s.stopping, Checks: config.HealthChecks, Logger: config.Logger,
	})
	s.streams = watchstream.New(watchstream.Config{Resources: config.Resources, Stopping: s.stopping, Logger: config.Logger})
	return s, nil
}

// route calls the handler of a request's path.
func (s *Server) route(w http.ResponseWriter, r *http.Request) {
	if t, ok := request.ParsePath(r.URL.Path); ok {
		s.serveResource(w, r, t)
		return
	}
	if collection, ok := differencePath(r.URL.Path); ok {
		s.serveDifference(w, r, collection)
		return
	}
	user := request.RecordFrom(r.Context()).User
	if err := s.authorizer.Authorize(r.Context(), auth.Attributes{User: user, Verb: strings.ToLower(r.Method), Path: r.URL.Path}); err != nil {
		encoding.WriteError(w, r, err)
		return
	}
	serve := s.documentHandler(strings.TrimSuffix(r.URL.Path, "/"))
	switch {
	case serve == nil:
		encoding.WriteError(w, r, status.NoSuchPath())
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		encoding.WriteError(w, r, status.Failure(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed,
			"the server does not allow this method on the requested resource"))
	default:
		serve(w, r)
	}
}

// documentHandler returns the handler of a path that is not about objects, or nil.
func (s *Server) documentHandler(path string) http.HandlerFunc {
	if path == "/metrics" {
		return s.metrics.Handler().ServeHTTP
	}
	if d, ok := s.config.Documents[path]; ok {
		return serveDocument(d)
	}
	if name, ok := strings.CutPrefix(path, profiling.Path); ok && s.config.Profiling {
		return profiling.Config{RequestTimeout: s.config.RequestTimeout, Stopping: s.stopping}.Handler(strings.TrimPrefix(name, "/"))
	}
	if serve := s.discovery.For(path); serve != nil {
		return serve
	}
	if health.IsPath(path) {
		return s.health.ServeHTTP
	}
	return nil
}

// isStopping reports whether the server drains.
func (s *Server) isStopping() bool {
	select {
	case <-s.stopping:
		return true
	default:
		return false
	}
}
