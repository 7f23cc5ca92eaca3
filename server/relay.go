package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client/kubeconfig"
	"github.com/levelwire/levelwire/server/internal/apiserver"
	"github.com/levelwire/levelwire/server/internal/apiserver/audit"
	"github.com/levelwire/levelwire/server/internal/apiserver/health"
	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/auth/authorizermetrics"
	"github.com/levelwire/levelwire/server/internal/auth/tokenwebhook"
	"github.com/levelwire/levelwire/server/internal/relay"
	"github.com/levelwire/levelwire/server/internal/resource/builtin"
	"github.com/levelwire/levelwire/server/internal/shard"
	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/server/internal/watchcache/caches"
	"github.com/levelwire/levelwire/server/internal/webhookauthorizer"
)

// Relay says which server a relay is in front of: a kube-apiserver, a Levelwire server, or
// another relay. The zero value of every member means its documented default.
type Relay struct {
	// Kubeconfig is a file that says how the upstream is reached, and has the credentials
	// of the relay there. Default: as kubectl finds it.
	Kubeconfig string
	// Context is the context of the kubeconfig. Default: its current one.
	Context string
	// Config, if not nil, takes the place of both.
	Config *rest.Config
	// MaxStaleness is how old caches may be while /readyz succeeds. Default 1 min.
	MaxStaleness time.Duration
	// IdleTimeout is for how long a cache is kept that no client uses. Default 30 min.
	IdleTimeout time.Duration
	// Shard is the part of each collection that the relay keeps and answers lists and watches
	// of, so that several relays share what is too much for one: "i/n" is the part i of n,
	// counted from 0, by a hash of the objects' UIDs; or it is a shard selector (KEP-5866).
	// Other requests are passed on. Default: the whole.
	Shard string
	// Deltas has a Levelwire upstream send each change as the difference from what the relay
	// has, compressed, and any upstream fill caches by lists, which most compress, in place of
	// streaming lists: for links with little bandwidth. It costs both sides processor time.
	Deltas bool
	// AllowedTTL and DeniedTTL are for how long answers of the upstream about what users
	// may do are cached; TokenTTL is the same for bearer tokens. Defaults 10 s, 5 s, 10 s.
	AllowedTTL, DeniedTTL, TokenTTL time.Duration

	shard *shard.Selector // is Shard
}

// complete fills in defaults and loads the kubeconfig.
func (r *Relay) complete() (err error) {
	if r == nil {
		return nil
	}
	setDefault(&r.MaxStaleness, time.Minute)
	setDefault(&r.IdleTimeout, 30*time.Minute)
	setDefault(&r.AllowedTTL, 10*time.Second)
	setDefault(&r.DeniedTTL, 5*time.Second)
	setDefault(&r.TokenTTL, 10*time.Second)
	for flag, d := range map[string]time.Duration{
		"max-staleness": r.MaxStaleness, "idle-timeout": r.IdleTimeout, "authorization-cache-ttl": r.AllowedTTL,
		"authorization-cache-denied-ttl": r.DeniedTTL, "token-cache-ttl": r.TokenTTL,
	} {
		if d < 0 {
			return fmt.Errorf("--%s %s is negative", flag, d)
		}
	}
	if r.Shard != "" {
		if r.shard, err = shard.ParsePart(r.Shard); err != nil {
			return fmt.Errorf("--shard: %w", err)
		}
	}
	if r.Config != nil {
		return nil
	}
	config, _, err := kubeconfig.Config(kubeconfig.Options{File: r.Kubeconfig, Context: r.Context})
	if err != nil {
		return fmt.Errorf("--kubeconfig: %w", err)
	}
	r.Config = config
	return nil
}

// checkUpstream refuses an upstream that is where the relay is going to listen: it would ask itself.
// KUBECONFIG leads there if it is set as the relay advised when it was started before. An address
// behind a proxy or a dialer may be one of another machine.
func (c *Config) checkUpstream() error {
	if c.Relay == nil || c.Listener != nil || c.SecurePort <= 0 || c.Relay.Config.Proxy != nil || c.Relay.Config.Dial != nil {
		return nil
	}
	base, _, err := rest.DefaultServerUrlFor(c.Relay.Config)
	if err != nil {
		return fmt.Errorf("--kubeconfig: %w", err)
	}
	if portOf(base) != strconv.Itoa(c.SecurePort) || !c.listensAt(base.Hostname()) {
		return nil
	}
	return fmt.Errorf("--kubeconfig leads to %s, where the relay itself is to listen: name the kubeconfig of the upstream, or choose another --secure-port", base.Redacted())
}

// portOf returns the port of an address, also if that leaves it out.
func portOf(base *url.URL) string {
	switch {
	case base.Port() != "":
		return base.Port()
	case base.Scheme == "http":
		return "80"
	}
	return "443"
}

// listensAt reports whether an address is surely one that the server listens on.
func (c *Config) listensAt(host string) bool {
	bound, ip := net.ParseIP(c.BindAddress), net.ParseIP(host)
	if host == "localhost" {
		ip = net.IPv4(127, 0, 0, 1)
	}
	return ip != nil && (ip.Equal(bound) || bound.IsUnspecified() && ip.IsLoopback())
}

// at returns the configuration of requests to one path of the upstream.
func (r *Relay) at(path string) *rest.Config {
	config := rest.CopyConfig(r.Config)
	config.Host = strings.TrimSuffix(config.Host, "/") + path
	config.QPS = -1 // the relay's own limits count
	return config
}

// The paths by which the upstream is asked about users.
const (
	tokenReviews         = "/apis/authentication.k8s.io/v1/tokenreviews"
	subjectAccessReviews = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
)

// relayTokens authenticates bearer tokens by what the upstream says.
func (s *Server) relayTokens() (auth.TokenAuthenticator, error) {
	var union auth.Union
	if s.identity.tokens != nil {
		union = append(union, s.identity.tokens)
	}
	reviews := tokenwebhook.New(tokenwebhook.Options{Version: "v1", TTL: s.config.Relay.TokenTTL, Audiences: s.config.APIAudiences, Metrics: s.identity.tokenCache})
	if err := reviews.Use(s.config.Relay.at(tokenReviews)); err != nil {
		return nil, err
	}
	return append(union, reviews), nil
}

// reviewInterval is how often the upstream is asked again about the users of open watches, besides
// when its roles or bindings have changed.
// It is long because a relay may have very many: kube-apiserver does not ask again at all.
const reviewInterval = 10 * time.Minute

// relayAuthorizer decides as the upstream does. While that does not answer, there is no
// decision on what it has not said lately: requests fail, and open watches go on for some
// minutes.
func (s *Server) relayAuthorizer(metrics *authorizermetrics.Metrics) (*webhookauthorizer.Authorizer, error) {
	return webhookauthorizer.New(webhookauthorizer.Options{
		Config: s.config.Relay.at(subjectAccessReviews), Version: "v1", Name: "upstream", Metrics: metrics, ReviewInterval: reviewInterval,
		AllowedTTL: s.config.Relay.AllowedTTL, DeniedTTL: s.config.Relay.DeniedTTL,
	})
}

// serveRelay wires the parts of a relay together and runs them until one fails or ctx
// ends.
func (s *Server) serveRelay(ctx context.Context) error {
	budget := watchcache.NewBudget(watchcache.BudgetOptions{})
	defer caches.LimitMemory(budget)()
	r, err := relay.New(relay.Options{
		Config: s.config.Relay.Config, Builtin: builtin.Table(), Logger: s.config.Logger,
		IdleTimeout: s.config.Relay.IdleTimeout, MaxStaleness: s.config.Relay.MaxStaleness, Deltas: s.config.Relay.Deltas, Shard: s.config.Relay.shard,
		Cache: watchcache.Options{
			ExactHistory: s.config.ExactHistory, Now: s.config.Now, Tombstones: s.config.TombstoneLimit,
			TombstoneBytes: s.config.TombstoneBytes, TombstoneAge: s.config.TombstoneAge, Budget: budget,
			CompressObjects: s.config.CompressObjects,
		},
	})
	if err != nil {
		return errors.Join(err, s.listener.Close())
	}
	metrics := authorizermetrics.New()
	authorizer, err := s.relayAuthorizer(metrics)
	if err != nil {
		return errors.Join(err, s.listener.Close())
	}
	auditor, err := audit.New(s.config.Audit, s.config.Logger)
	if err != nil {
		return errors.Join(err, s.listener.Close())
	}
	defer s.closeAudit(auditor)
	api, err := s.newRelayAPI(r, authorizer, metrics, auditor)
	if err != nil {
		return errors.Join(err, s.listener.Close())
	}
	feedCtx, stopFeed := context.WithCancel(context.WithoutCancel(ctx))
	defer stopFeed()
	group, groupCtx := errgroup.WithContext(feedCtx)
	serveCtx, stopServing := context.WithCancel(feedCtx)
	group.Go(func() error {
		defer stopServing()
		select {
		case <-ctx.Done():
		case <-groupCtx.Done():
		}
		s.leaveRelay(groupCtx)
		return nil
	})
	group.Go(func() error {
		defer stopFeed()
		return api.Serve(serveCtx, s.listener, s.serving())
	})
	group.Go(func() error { s.identity.certificates.run(groupCtx, s.config.Logger); return nil })
	group.Go(func() error { s.identity.files.Run(groupCtx); return nil })
	group.Go(func() error { authorizer.Run(groupCtx); return nil })
	group.Go(func() error { r.Run(groupCtx); return nil })
	group.Go(func() error { r.FollowRoles(groupCtx, authorizer.Forget); return nil })
	group.Go(func() error { s.awaitUpstream(groupCtx, r); return nil })
	return group.Wait()
}

// awaitUpstream waits for the first answer of the upstream.
func (s *Server) awaitUpstream(ctx context.Context, r *relay.Relay) {
	begin := time.Now()
	select {
	case <-r.Contacted():
	case <-ctx.Done():
		return
	}
	s.once.Do(func() { close(s.ready) })
	s.config.Logger.Info("ready", "url", s.URL(), "upstream", r.Upstream(), "took", time.Since(begin).Round(time.Millisecond))
	r.LogMissingRights(ctx)
}

// newRelayAPI makes the API server of a relay.
func (s *Server) newRelayAPI(r *relay.Relay, authorizer auth.Authorizer, metrics *authorizermetrics.Metrics, auditor *audit.Auditor) (*apiserver.Server, error) {
	tokens, err := s.relayTokens()
	if err != nil {
		return nil, err
	}
	return apiserver.New(apiserver.Config{
		Upstream: r, Resources: r, StoreOf: r.StoreOf, Cache: r.Cache, Compacted: r.Compacted, Authorizer: authorizer,
		ClientCAs: s.identity.clientCAs, RequestHeader: s.identity.requestHeader, Anonymous: s.anonymous,
		Tokens: tokens, Audiences: s.config.APIAudiences,
		Version: s.config.Version, Logger: s.config.Logger, ShutdownTimeout: s.config.ShutdownTimeout,
		Profiling: s.config.Profiling, HTTP2Server: s.config.HTTP2Server, CatchUpTimeout: s.config.CatchUpTimeout,
		Audit: auditor, Tracer: s.tracer, MaxReadsInFlight: s.config.MaxRequestsInFlight, MaxWritesInFlight: s.config.MaxMutatingRequestsInFlight,
		MaxWatches: s.config.MaxWatches, MaxWatchesPerUser: s.config.MaxWatchesPerUser, MaxConnections: s.config.MaxConnections, MaxConnectionsPerUser: s.config.MaxConnectionsPerUser,
		MaxBodyBytesInFlight: s.config.MaxBodyBytesInFlight, MaxSelectorBytes: s.config.MaxSelectorBytes,
		Collectors: slices.Concat(r.Collectors(), s.identity.files.Collectors(), s.identity.tokenCache.Collectors(), s.identity.examined.Collectors(), metrics.Collectors()),
		HealthChecks: []health.Check{
			{Name: "leaving", Check: s.checkLeaving}, {Name: "upstream", Check: r.CheckUpstream},
		},
	})
}

// leaveRelay is the first step of a shutdown: /readyz fails, and the relay goes on serving
// for Config.ShutdownDelay.
func (s *Server) leaveRelay(ctx context.Context) {
	close(s.leaving)
	timer := time.NewTimer(s.config.ShutdownDelay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
