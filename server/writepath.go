package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/levelwire/levelwire/server/internal/admission"
	"github.com/levelwire/levelwire/server/internal/admission/expressions"
	"github.com/levelwire/levelwire/server/internal/admission/podsecurity"
	"github.com/levelwire/levelwire/server/internal/admission/webhook"
	"github.com/levelwire/levelwire/server/internal/aggregation"
	"github.com/levelwire/levelwire/server/internal/apiserver"
	"github.com/levelwire/levelwire/server/internal/apiserver/audit"
	"github.com/levelwire/levelwire/server/internal/apiserver/handlers"
	"github.com/levelwire/levelwire/server/internal/apiserver/health"
	"github.com/levelwire/levelwire/server/internal/flowcontrol"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/registry/bootstrap"
	"github.com/levelwire/levelwire/server/internal/registry/service"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/serviceaccount"
	"github.com/levelwire/levelwire/server/internal/watchcache/caches"
	"github.com/levelwire/levelwire/server/internal/webhookclient"
	"github.com/levelwire/levelwire/storage"
)

// writePath is the registry of all resources with what takes part in its writes.
type writePath struct {
	set      *registry.Set
	services *service.Allocator
	accounts *serviceaccount.Accounts
	tokens   *serviceaccount.Tokens
	tracking *serviceaccount.Tracking // nil if the server only reads
	// contents make the objects of a new namespace, and keeper restores them; none
	// and nil if service accounts are disabled.
	contents []bootstrap.NamespaceContent
	keeper   *serviceaccount.Keeper
	// apiServices are those of what this server serves itself; nil if it only reads.
	apiServices *aggregation.AutoRegister
	// lease says that this server runs, and endpoint where; nil if it only reads.
	lease    *bootstrap.Lease
	endpoint *bootstrap.Endpoint
	policies *admissionPolicies // set by admit
	// resolve finds the addresses of webhooks' Services.
	resolve  webhookclient.Resolve
	webhooks *webhook.Plugin
	// podSecurity is here for its metrics.
	podSecurity *podsecurity.Plugin
	// conditions count the match conditions of webhooks and policies.
	conditions *expressions.ConditionMetrics
}

// newWritePath makes the write path. admit gives it its hooks.
func (s *Server) newWritePath(store storage.Store, table *resource.Table, caches *caches.Set) (*writePath, error) {
	set, err := registry.NewSet(registry.Config{Store: s.tracer.Store(s.timed(caches.Feed.Expecting(store))), Resources: table, Cache: caches.Of})
	if err != nil {
		return nil, err
	}
	services, err := service.New(set, service.Options{CIDR: s.config.ServiceCIDR, Logger: s.config.Logger})
	if err != nil {
		return nil, fmt.Errorf("--service-cidr: %w", err)
	}
	without := slices.Contains(s.config.DisableAdmissionPlugins, admission.ServiceAccount)
	accounts := serviceaccount.NewAccounts(set, serviceaccount.AccountOptions{RootCA: s.identity.rootCA, NoDefaults: without})
	var tracking *serviceaccount.Tracking
	if !s.config.ReadOnly {
		tracking = serviceaccount.NewTracking(set, nil, s.config.Logger)
	}
	tokens, err := serviceaccount.NewTokens(set, accounts, serviceaccount.Options{
		Issuers: s.config.ServiceAccountIssuers, Audiences: s.config.APIAudiences,
		Keys: s.identity.tokenKeys, Tracking: tracking,
		MaxLifetime: s.config.ServiceAccountMaxTokenExpiration, Extend: s.config.ServiceAccountExtendTokenExpiration,
	})
	if err != nil {
		return nil, fmt.Errorf("service account tokens: %w", err)
	}
	w := &writePath{
		conditions: expressions.NewConditionMetrics(),
		set:        set, services: services, accounts: accounts, tokens: tokens, tracking: tracking,
		resolve: service.NewResolver(set).Resolve,
	}
	if !s.config.ReadOnly {
		// The table has no custom resources yet.
		if w.apiServices, err = aggregation.NewAutoRegister(set, slices.Concat(table.All(), handlers.Unstored), s.config.Logger); err != nil {
			return nil, err
		}
		w.endpoint = bootstrap.NewEndpoint(set, services, s.endpoint(), s.config.Logger)
		w.contents = append(w.contents, tracking.Ensure)
		if w.lease = bootstrap.NewLease(set, hostname(), s.endpoint(), s.config.Logger); w.lease != nil {
			w.contents = append(w.contents, w.lease.Content)
		}
	}
	if !without {
		w.contents = append(w.contents, accounts.Ensure)
		w.keeper = serviceaccount.NewKeeper(accounts, tokens, s.config.Logger)
	}
	return w, nil
}

// newAPI makes the HTTP server with its authenticators and health checks.
func (s *Server) newAPI(store storage.Store, table *resource.Table, caches *caches.Set, writes *writePath, authorization *authorization, auditor *audit.Auditor, fairness *flowcontrol.Controller, aggregator *aggregation.Aggregator, complete <-chan struct{}) (*apiserver.Server, error) {
	maintained, _ := storage.Innermost(store).(storage.Maintainer) // nil: in memory, or wrapped by an embedder
	return apiserver.New(apiserver.Config{
		Complete:   complete,
		Authorizer: authorization.authorizer, Visible: authorization.visible, Maintenance: maintained, CheckCaches: caches.Feed.Check,
		Resources: table, Store: store, Cache: caches.Of, Compacted: caches.Compacted, Registry: writes.set, ReadOnly: s.config.ReadOnly, Components: s.components(store),
		ClientCAs: s.identity.clientCAs, RequestHeader: s.identity.requestHeader, Anonymous: s.anonymous,
		Tokens: s.tokenAuthenticators(writes), Audiences: writes.tokens.Audiences(), Issuer: writes.tokens,
		Documents: s.tokenDocuments(writes.tokens), Version: s.config.Version, Logger: s.config.Logger, ShutdownTimeout: s.config.ShutdownTimeout,
		Profiling: s.config.Profiling, HTTP2Server: s.config.HTTP2Server, CatchUpTimeout: s.config.CatchUpTimeout,
		Audit: auditor, Tracer: s.tracer, Aggregator: aggregator, UI: s.page,
		Fairness: fairness, MaxReadsInFlight: s.config.MaxRequestsInFlight, MaxWritesInFlight: s.config.MaxMutatingRequestsInFlight,
		MaxWatches: s.config.MaxWatches, MaxWatchesPerUser: s.config.MaxWatchesPerUser, MaxConnections: s.config.MaxConnections, MaxConnectionsPerUser: s.config.MaxConnectionsPerUser,
		MaxBodyBytesInFlight: s.config.MaxBodyBytesInFlight, MaxSelectorBytes: s.config.MaxSelectorBytes,
		Collectors: slices.Concat(caches.Collectors(), s.identity.files.Collectors(), s.identity.tokenCache.Collectors(), s.identity.examined.Collectors(), writes.tokens.Collectors(), authorization.collectors(), writes.webhooks.Collectors(), writes.podSecurity.Collectors(), writes.conditions.Collectors(), s.reloadMetrics(store), writes.policies.collectors()),
		HealthChecks: append([]health.Check{
			{Name: "startup", Check: s.checkStarted, Startup: true}, {Name: "leaving", Check: s.checkLeaving}, {Name: "storage", Check: checkStorage(store), Shared: true},
			{Name: "storage-writes", Check: checkWrites(store)},
		}, encryptionHealth(store)...),
	})
}

// runTracking notes the uses of legacy tokens when what every cluster has is there.
func (s *Server) runTracking(ctx context.Context, tracking *serviceaccount.Tracking) error {
	select {
	case <-s.ready:
		return ignoreCanceled(ctx, tracking.Run(ctx))
	case <-ctx.Done():
		return nil
	}
}

var errStarting = errors.New("the server is starting: namespaces, services or custom resources are not all there yet")

// checkStarted makes /readyz and /healthz fail until custom resources are served. Filled caches
// do not imply that: a restarted server fills those of built-in kinds first.
func (s *Server) checkStarted(context.Context) error {
	select {
	case <-s.ready:
		return nil
	default:
		return errStarting
	}
}

// checkStorage makes /readyz fail while the store does not answer: the caches can
// still be read, but another server may have newer ones.
func checkStorage(store storage.Reader) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := store.Current(ctx)
		return err
	}
}

// checkWrites makes /readyz fail while the store refuses writes because it is full.
// Requests that only read are still answered.
func checkWrites(store storage.Store) func(context.Context) error {
	full, ok := storage.Innermost(store).(interface{ CheckWrites() error })
	if !ok {
		return func(context.Context) error { return nil }
	}
	return func(context.Context) error { return full.CheckWrites() }
}

// tokenDocuments are the OpenID documents by which other servers verify the tokens
// of service accounts. They follow the keys.
func (s *Server) tokenDocuments(tokens *serviceaccount.Tokens) map[string]apiserver.Document {
	return map[string]apiserver.Document{
		serviceaccount.KeysPath: {ContentType: "application/jwk-set+json", Body: tokens.Keys},
		serviceaccount.ConfigurationPath: {ContentType: "application/json", Body: func() ([]byte, error) {
			return tokens.Configuration(cmp.Or(s.config.ServiceAccountJWKSURI, s.URL()+serviceaccount.KeysPath))
		}},
	}
}
