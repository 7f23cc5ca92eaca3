package apiserver

import (
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/levelwire/levelwire/server/internal/apiserver/authentication"
	"github.com/levelwire/levelwire/server/internal/apiserver/health"
	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
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
	// Store returns the revision that a consistent read must reach. Required.
	Store storage.Reader

	// Cache returns the cache of a stored resource; nil if there is none yet.
	// It is called for every request. Required.
	Cache func(stored *resource.Resource) *watchcache.Cache
	// Registry performs the writes. Without it the server is read-only.
	Registry *registry.Set
	// HealthChecks are added to the server's own.
	HealthChecks []health.Check

	// ClientCAs verifies client certificates; nil accepts none.
	ClientCAs *x509.CertPool
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
	// Documents are served as they are, by their paths.
	Documents map[string]Document

	// HTTP2Server answers over HTTP/2. Default HTTP2Levelwire.
	HTTP2Server HTTP2Server
	// Profiling serves the process's own profiles at /debug/pprof/.
	Profiling bool

	// Version is what /version reports as the program's own version, after
	// the Kubernetes version it is compatible with. Default "dev".
	Version string
	// Logger receives what operators should see. Default: discard.
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
	// WriteTimeout is how long one write to a client of Serve may block before
	// the client is given up; over HTTP/2 up to twice as long. Default 30 s.
	WriteTimeout time.Duration
	// ShutdownTimeout bounds how long Serve waits for requests that are
	// under way. Default 10 s.
	ShutdownTimeout time.Duration
	// MaxReadsInFlight and MaxWritesInFlight bound the requests that are
	// answered at the same time, watches apart. Defaults 800 and 400.
	MaxReadsInFlight, MaxWritesInFlight int
	// MaxBodyBytes bounds a request body. Default 3 MiB.
	MaxBodyBytes int64
}

func (c *Config) setDefaults() {
	if c.Authorizer == nil {
		c.Authorizer = auth.AlwaysAllow{}
	}
	c.Authorizer = auth.MastersFirst(c.Authorizer)
	if c.Version == "" {
		c.Version = "dev"
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.MaxBodyBytes <= 0 {
		c.MaxBodyBytes = 3 << 20
	}
	if c.HTTP2Server == "" {
		c.HTTP2Server = HTTP2Levelwire
	}
	setDuration(&c.RequestTimeout, time.Minute)
	setDuration(&c.MinWatchTimeout, 30*time.Minute)
	setDuration(&c.CatchUpTimeout, 5*time.Second)
	setDuration(&c.WriteTimeout, 30*time.Second)
	setDuration(&c.ShutdownTimeout, 10*time.Second)
	if c.MaxReadsInFlight <= 0 {
		c.MaxReadsInFlight = 800
	}
	if c.MaxWritesInFlight <= 0 {
		c.MaxWritesInFlight = 400
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
	case c.Store == nil:
		return errors.New("apiserver: Config.Store is missing: give it the store behind the caches")
	case c.HTTP2Server != "" && c.HTTP2Server != HTTP2Levelwire && c.HTTP2Server != HTTP2NetHTTP:
		return fmt.Errorf("apiserver: Config.HTTP2Server is %q, want %q or %q", c.HTTP2Server, HTTP2Levelwire, HTTP2NetHTTP)
	}
	return nil
}
