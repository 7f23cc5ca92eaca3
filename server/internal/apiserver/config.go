package apiserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/levelwire/levelwire/server/internal/aggregation"
	"github.com/levelwire/levelwire/server/internal/apiserver/audit"
	"github.com/levelwire/levelwire/server/internal/apiserver/authentication"
	"github.com/levelwire/levelwire/server/internal/apiserver/componentstatus"
	"github.com/levelwire/levelwire/server/internal/apiserver/health"
	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/flowcontrol"
	"github.com/levelwire/levelwire/server/internal/h2/listen"
	"github.com/levelwire/levelwire/server/internal/rbac"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/tracing"
	"github.com/levelwire/levelwire/server/internal/ui"
	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/storage"
)

// Resources is the table of what is served. It may change while the server
// runs; every request asks it anew. Methods are called concurrently.
type Resources interface {
	// Lookup returns the resource with that name in URLs, or nil.
	Lookup(group, version, plural string) *resource.Resource
	// All returns every resource in a stable order.
	All() []*resource.Resource
}

// Config is what a Server serves and to which users. Fields with a default may be
// left zero.
type Config struct {
	// Resources is what is served. Required.
	Resources Resources
	// Store returns the revision that a consistent read must reach. Required, unless
	// StoreOf is set.
	Store storage.Reader
	// StoreOf returns what is behind the cache of a stored resource, in place of Store.
	StoreOf func(stored *resource.Resource) storage.Reader
	// Upstream makes the server a relay: it answers reads from caches of what Upstream
	// serves, and passes all other requests on to it. nil: it is none.
	Upstream Upstream

	// Cache returns the cache of a stored resource; nil if there is none yet.
	// It is called for every request. Required.
	Cache func(stored *resource.Resource) *watchcache.Cache
	// Compacted returns the revision before which lists are read from what is behind a cache,
	// although the cache may still have it; see read.Config. nil: there is none.
	Compacted func(stored *resource.Resource) storage.Revision
	// Registry performs the writes. Without it the server is read-only.
	Registry *registry.Set
	// ReadOnly refuses all writes, also with a Registry. Reviews, which write nothing, are
	// answered.
	ReadOnly bool
	// Components are what component statuses say how they are; nil: there are none.
	Components componentstatus.Components
	// HealthChecks are added to the server's own.
	HealthChecks []health.Check

	// Maintenance is the storage as administrators maintain it; nil if there is nothing
	// to maintain. CheckCaches compares the caches with it; it goes with Maintenance.
	Maintenance storage.Maintainer
	CheckCaches func(context.Context) (differences int, err error)
	// Collectors are served at /metrics with the server's own metrics.
	Collectors []prometheus.Collector

	// ClientCAs verifies client certificates; nil accepts none.
	ClientCAs *authentication.Authorities
	// RequestHeader accepts users that a proxy names; nil accepts none.
	RequestHeader *authentication.RequestHeader
	// Anonymous reports whether a path is answered without credentials. Default: health
	// checks and /version.
	Anonymous func(path string) bool
	// Tokens authenticates bearer tokens; nil accepts none.
	Tokens auth.TokenAuthenticator
	// Audiences are the names of this server in tokens that are restricted to
	// certain servers.
	Audiences []string
	// Issuer answers requests for tokens of service accounts; nil refuses them.
	Issuer authentication.TokenIssuer
	// Authorizer decides what users may do, except that the group
	// system:masters may do everything. If it is an auth.RuleLister, it answers
	// reviews of rules, too. Default auth.AlwaysAllow.
	Authorizer auth.Authorizer
	// Visible makes lists and watches of what a user may see possible; nil ignores the
	// parameter that asks for them.
	Visible *rbac.History
	// Aggregator has the servers that requests for other groups and versions are passed on
	// to; nil: there are none. Its owner runs it.
	Aggregator *aggregation.Aggregator
	// Documents are served as they are, by their paths.
	Documents map[string]Document

	// Fairness gives requests their seats. Its owner runs it. Nil: each user has a share
	// of MaxReadsInFlight and MaxWritesInFlight, and no request waits.
	Fairness *flowcontrol.Controller

	// Audit writes the audit log; nil: there is none. Its owner closes it after Serve has
	// returned.
	Audit *audit.Auditor

	// Tracer makes spans of requests and of events. Its owner closes it after Serve has
	// returned. Nil: there are none.
	Tracer *tracing.Tracer

	// HTTP2Server answers over HTTP/2. Default HTTP2Levelwire.
	HTTP2Server HTTP2Server
	// Profiling serves the process's own profiles at /debug/pprof/.
	Profiling bool

	// UI serves the page at /ui; nil: there is none. It must be among Tokens, too.
	UI *ui.UI

	// Version is what /version reports as the program's own version, after
	// the Kubernetes version it is compatible with. Default "dev".
	Version string
	// Complete is closed when Resources has every custom resource that is defined. Until
	// then requests for resources that it lacks, and discovery, wait. nil: it has them.
	Complete <-chan struct{}
	// Logger receives what operators should see. Default: slog.Default().
	Logger *slog.Logger

	// RequestTimeout ends every request but watches. Default 60 s.
	RequestTimeout time.Duration
	// MinWatchTimeout is the shortest lifetime of a watch that asked for
	// none; each gets a random one up to twice as long. Default 30 min.
	MinWatchTimeout time.Duration
	// CatchUpTimeout is how long a watch from a version that this server has not
	// reached waits for it. Then it is refused: with 429 if the store has come so
	// far, and only this server has not, otherwise with 504 and the cause
	// ResourceVersionTooLarge. Default 5 s.
	CatchUpTimeout time.Duration
	// WriteTimeout is how long one write to a client may block, because the client
	// does not read or keeps a stream's window shut, before the server resets the
	// stream or closes the connection; over HTTP/2 up to twice as long. Answers other
	// than watches have RequestTimeout besides. Default 30 s.
	WriteTimeout time.Duration
	// ShutdownTimeout bounds how long Serve waits for requests that are
	// under way. Default 10 s.
	ShutdownTimeout time.Duration
	// MaxReadsInFlight and MaxWritesInFlight bound the requests that the server works on
	// at the same time: those whose bodies have arrived, and whose clients read the
	// answers. Watches count among the reads until they have sent what they begin with.
	// No user can hold all of them (package inflight), and administrators have as many
	// for themselves; with Fairness they only bound the requests whose clients do not
	// read. Defaults DefaultMaxReadsInFlight and DefaultMaxWritesInFlight.
	MaxReadsInFlight, MaxWritesInFlight int
	// MaxWatches bounds the open watches: one user has a share, administrators as many for
	// themselves. Default 1,000,000.
	MaxWatches int
	// MaxWatchesPerUser bounds those of each user but administrators, if its share is not less;
	// 0: the share does.
	MaxWatchesPerUser int
	// MaxConnections bounds the open connections: one user has a share, and some are kept for
	// users of the system and for clients that have yet to say who they are. Default: what the
	// limit of open files (RLIMIT_NOFILE) leaves beside what the store needs.
	MaxConnections int
	// MaxConnectionsPerUser bounds those of each user but those of the system, and of the
	// service accounts of each namespace together; 0: the share does.
	MaxConnectionsPerUser int
	// MaxBodyBytes bounds a request body. Default 3 MiB.
	MaxBodyBytes int64
	// MaxBodyBytesInFlight bounds the bodies of requests that are in memory at the same time, and
	// MaxSelectorBytes the selectors of all open watches: one user has a share, administrators
	// as much for themselves. Defaults 85 times MaxBodyBytes and 16 MiB.
	MaxBodyBytesInFlight, MaxSelectorBytes int64
}

// Document is a file that is served as it is to those with credentials.
type Document struct {
	ContentType string
	// Body returns what is served now. It is called concurrently.
	Body func() ([]byte, error)
}

// The default limits of the requests that a server works on at the same time, and of open
// watches.
const (
	DefaultMaxReadsInFlight  = 800
	DefaultMaxWritesInFlight = 400
	DefaultMaxWatches        = 1_000_000
)

func (c *Config) setDefaults() {
	if c.Authorizer == nil {
		c.Authorizer = auth.AlwaysAllow{}
	}
	c.Authorizer = auth.MastersFirst(c.Authorizer)
	if c.Version == "" {
		c.Version = "dev"
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.MaxBodyBytes <= 0 {
		c.MaxBodyBytes = 3 << 20
	}
	if c.MaxBodyBytesInFlight <= 0 {
		c.MaxBodyBytesInFlight = bodiesInMemory * c.MaxBodyBytes
	}
	if c.MaxSelectorBytes <= 0 {
		c.MaxSelectorBytes = selectorBytes
	}
	if c.HTTP2Server == "" {
		c.HTTP2Server = HTTP2Levelwire
	}
	setDuration(&c.RequestTimeout, time.Minute)
	setDuration(&c.MinWatchTimeout, 30*time.Minute)
	setDuration(&c.CatchUpTimeout, 5*time.Second)
	setDuration(&c.WriteTimeout, 30*time.Second)
	setDuration(&c.ShutdownTimeout, 10*time.Second)
	if c.MaxConnections <= 0 {
		c.MaxConnections = listen.DefaultLimit()
	}
	if c.MaxWatches <= 0 {
		c.MaxWatches = DefaultMaxWatches
	}
	if c.MaxReadsInFlight <= 0 {
		c.MaxReadsInFlight = DefaultMaxReadsInFlight
	}
	if c.MaxWritesInFlight <= 0 {
		c.MaxWritesInFlight = DefaultMaxWritesInFlight
	}
}

func setDuration(d *time.Duration, value time.Duration) {
	if *d <= 0 {
		*d = value
	}
}

func (c *Config) validate() error {
	switch {
	case c.Resources == nil:
		return errors.New("apiserver: Config.Resources is missing: give it the table of served resources")
	case c.Cache == nil:
		return errors.New("apiserver: Config.Cache is missing: give it the watch caches of the stored resources")
	case c.Store == nil && c.StoreOf == nil:
		return errors.New("apiserver: Config.Store is missing: give it the store behind the caches")
	case c.HTTP2Server != "" && c.HTTP2Server != HTTP2Levelwire && c.HTTP2Server != HTTP2NetHTTP:
		return fmt.Errorf("apiserver: Config.HTTP2Server is %q, want %q or %q", c.HTTP2Server, HTTP2Levelwire, HTTP2NetHTTP)
	}
	return nil
}
