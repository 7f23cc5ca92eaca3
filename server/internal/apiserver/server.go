package apiserver

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/levelwire/levelwire/server/internal/apiserver/authentication"
	"github.com/levelwire/levelwire/server/internal/apiserver/authorization"
	"github.com/levelwire/levelwire/server/internal/apiserver/discovery"
	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
	"github.com/levelwire/levelwire/server/internal/apiserver/handlers"
	"github.com/levelwire/levelwire/server/internal/apiserver/health"
	"github.com/levelwire/levelwire/server/internal/apiserver/inflight"
	"github.com/levelwire/levelwire/server/internal/apiserver/inspect"
	"github.com/levelwire/levelwire/server/internal/apiserver/maintenance"
	"github.com/levelwire/levelwire/server/internal/apiserver/metrics"
	"github.com/levelwire/levelwire/server/internal/apiserver/profiling"
	"github.com/levelwire/levelwire/server/internal/apiserver/proxy"
	"github.com/levelwire/levelwire/server/internal/apiserver/reauthorization"
	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/apiserver/watchstream"
	"github.com/levelwire/levelwire/server/internal/apiserver/websocket"
	"github.com/levelwire/levelwire/server/internal/flowcontrol"
	"github.com/levelwire/levelwire/server/internal/h2/listen"
	"github.com/levelwire/levelwire/server/internal/read"
	"github.com/levelwire/levelwire/server/internal/runqueue"
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

	readSlots, writeSlots *inflight.Slots
	readSeats, writeSeats *inflight.UserSeats // of all requests, unless config.Fairness has them
	handlers              *runqueue.Queue     // of requests that are not exempt
	connections           *listen.ConnectionLimit
	bodies                *inflight.Limiter // bytes of requests' bodies
	selectors             *inflight.Limiter // bytes of the selectors of open watches
	watches               *inflight.Limiter // open watches
	proxied               *inflight.Limiter // open requests to aggregated servers that need not end
	deciding              *inflight.Limiter // requests without a slot whose authorization is not decided
	preparing             *inflight.Limiter // watches that wait for a relay's cache
	deltaBases            *inflight.Limiter // bytes of former objects that watches with deltas hold
	windowRows            *inflight.Limiter // rows of followed windows

	// stopping is closed when the server drains: watches end then.
	stopping chan struct{}
	stopOnce sync.Once
	sockets  websocket.Sockets
	streams  *watchstream.Streams
	open     *reauthorization.Watches // nil if no right is ever withdrawn

	// via names this server in requests that it passes on, so that it knows them if they
	// come back.
	via string

	verbs       *handlers.Handlers // all but watch
	discovery   *discovery.Handler
	inspect     *inspect.Handler
	proxy       *proxy.Proxy
	windows     *read.Windows
	maintenance *maintenance.Handler
}

// New returns a server, or what is wrong with its configuration. It starts
// nothing.
func New(config Config) (*Server, error) {
	config.setDefaults()
	if err := config.validate(); err != nil {
		return nil, err
	}
	reader, err := read.New(read.Config{Store: config.Store, StoreOf: config.StoreOf, Cache: config.Cache, Compacted: config.Compacted, MinWatchTimeout: config.MinWatchTimeout, CatchUpTimeout: config.CatchUpTimeout})
	if err != nil {
		return nil, err
	}
	s := &Server{
		config:  config,
		reader:  reader,
		windows: read.NewWindows(reader),
		metrics: metrics.New(append(slices.Clone(config.Collectors), metrics.Caches(config.Resources, config.Cache))...),
		authenticator: authentication.New(authentication.Config{
			ClientCAs: config.ClientCAs, RequestHeader: config.RequestHeader, Tokens: config.Tokens, Audiences: config.Audiences,
			Anonymous: config.Anonymous, Logger: config.Logger,
		}),
		authorizer:  authorization.New(config.Authorizer),
		discovery:   discovery.NewHandler(discovery.HandlerConfig{Resources: config.Resources, Unstored: handlers.Unstored, Version: config.Version, Aggregated: config.Aggregator.Published}),
		readSlots:   inflight.NewSlots(config.MaxReadsInFlight),
		writeSlots:  inflight.NewSlots(config.MaxWritesInFlight),
		readSeats:   inflight.NewUserSeats(config.MaxReadsInFlight),
		writeSeats:  inflight.NewUserSeats(config.MaxWritesInFlight),
		handlers:    runqueue.New(),
		connections: listen.NewConnectionLimit(config.MaxConnections, config.MaxConnectionsPerUser, config.Logger),
		bodies:      inflight.New(config.MaxBodyBytesInFlight),
		selectors:   inflight.New(config.MaxSelectorBytes),
		watches:     inflight.NewPerUser(int64(config.MaxWatches), int64(config.MaxWatchesPerUser)),
		proxied:     inflight.New(maxProxied),
		deciding:    inflight.New(int64(config.MaxReadsInFlight)),
		preparing:   inflight.New(min(maxPreparing, int64(config.MaxWatches))),
		deltaBases:  inflight.New(maxDeltaBases),
		windowRows:  inflight.New(maxWindowRows),
		stopping:    make(chan struct{}),
		via:         "levelwire-" + uuid.NewString(),
	}
	s.metrics.ForgetUnserved(config.Resources)
	s.proxy = proxy.New(proxy.Config{Via: s.via, RequestHeader: config.RequestHeader, Traced: config.Tracer != nil, Logger: config.Logger})
	s.metrics.Register(config.Audit.Collectors()...)
	s.metrics.Register(s.authenticator.Collectors()...)
	s.metrics.Register(s.authorizer.Collectors()...)
	s.metrics.Register(inFlightGauge("readOnly", s.readSlots), inFlightGauge("mutating", s.writeSlots))
	for resource, limiter := range map[string]share{
		"body_bytes": s.bodies, "selector_bytes": s.selectors, "watches": s.watches, "aggregated_watches": s.proxied, "undecided_requests": s.deciding,
		"unprepared_watches": s.preparing, "delta_base_bytes": s.deltaBases, "window_rows": s.windowRows, "connections": s.connections,
	} {
		s.metrics.Register(shareGauges(resource, limiter)...)
	}
	s.metrics.Register(s.handlers.Collectors()...)
	if config.Fairness != nil {
		s.metrics.Register(config.Fairness)
	}
	s.maintenance = &maintenance.Handler{Store: config.Maintenance, CheckCaches: config.CheckCaches, Logger: config.Logger}
	s.metrics.Register(connectionCollectors(s.connections)...)
	s.health = health.New(health.Config{
		Resources: config.Resources, Cache: config.Cache, Stopping: s.stopping, Checks: config.HealthChecks, Logger: config.Logger,
	})
	if s.authorizer.Changes() {
		s.open = s.newOpenWatches()
	}
	s.streams = watchstream.New(watchstream.Config{
		Resources: config.Resources, Stopping: s.stopping, WriteTimeout: config.WriteTimeout, Logger: config.Logger, Open: s.open,
		Events: config.Tracer.Events(),
	})
	s.verbs = handlers.New(handlers.Config{
		Reader: s.reader, Registry: config.Registry, ReadOnly: config.ReadOnly, Authenticator: s.authenticator, Authorizer: s.authorizer,
		Components: config.Components, Issuer: config.Issuer, MaxBodyBytes: config.MaxBodyBytes, Streams: s.streams, Metrics: s.metrics,
	})
	s.inspect = &inspect.Handler{Resources: config.Resources, Cache: config.Cache, Streams: s.streams, Started: time.Now()}
	return s, nil
}

// MakeDocuments makes what clients ask about the API before they do, until ctx ends. changed
// returns a channel that is closed when Config.Resources has others than at the call.
func (s *Server) MakeDocuments(ctx context.Context, changed func() <-chan struct{}) {
	s.discovery.MakeDocuments(ctx, changed)
}

// newOpenWatches returns the registry of the watches that a withdrawn right ends.
func (s *Server) newOpenWatches() *reauthorization.Watches {
	withdrawn := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "levelwire_watches_withdrawn_total", Help: "Watches that were ended because a right that they needed was withdrawn.",
	})
	s.metrics.Register(withdrawn)
	return reauthorization.New(reauthorization.Config{
		Authorizer: s.authorizer, Logger: s.config.Logger, Ended: func(watches int) { withdrawn.Add(float64(watches)) },
	})
}

// route calls the handler of a request's path.
func (s *Server) route(w http.ResponseWriter, r *http.Request, t *target) {
	if t.server != nil {
		request.RecordFrom(r.Context()).Task.End() // it waits for the other server all the time
	}
	if t.server != nil && t.server == proxy.Server(s.config.Upstream) {
		s.serveUpstream(w, r, t)
		return
	}
	if t.server != nil {
		s.serveAggregated(w, r, t)
		return
	}
	if t.onObjects && s.config.Upstream != nil {
		s.serveCached(w, r, t)
		return
	}
	if t.onObjects {
		s.serveResource(w, r, t)
		return
	}
	if s.config.Upstream != nil && s.config.Upstream.MayDescribe(r) {
		s.serveDescription(w, r, t)
		return
	}
	if collection, ok := differencePath(r.URL.Path); ok {
		s.serveDifference(w, r, collection)
		return
	}
	if t.inspects {
		s.serveInspection(w, r, t)
		return
	}
	authorize := s.authorize
	if authentication.NeedsNoCredentials(r.URL.Path) {
		authorize = s.authorizeNow // a server that starts says how far it is
	}
	if err := authorize(r, t.attributes); err != nil {
		writeDenied(w, r, err)
		return
	}
	serve := s.documentHandler(strings.TrimSuffix(r.URL.Path, "/"))
	switch {
	case serve == nil:
		encoding.WriteError(w, r, status.NoSuchPath())
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		encoding.WriteError(w, r, status.MethodNotAllowed())
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
	if name, ok := strings.CutPrefix(path, flowcontrol.DumpPath); ok && s.config.Fairness != nil {
		return s.config.Fairness.Dump(name)
	}
	if serve := s.inspect.For(path); serve != nil {
		return serve
	}
	if serve := s.discovery.For(path); serve != nil {
		if path == "/version" {
			return serve
		}
		return s.whenComplete(serve)
	}
	if health.IsPath(path) {
		return s.health.ServeHTTP
	}
	return nil
}

// serveDocument answers with a document that the server was configured with.
func serveDocument(d Document) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := d.Body()
		if err != nil {
			encoding.WriteError(w, r, err)
			return
		}
		w.Header().Set("Cache-Control", "public, max-age=3600")
		encoding.WriteBody(w, r, http.StatusOK, d.ContentType, body)
	}
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
