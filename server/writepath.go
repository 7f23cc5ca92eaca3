package server

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/levelwire/levelwire/server/internal/admission"
	"github.com/levelwire/levelwire/server/internal/apiserver"
	"github.com/levelwire/levelwire/server/internal/apiserver/health"
	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/registry/bootstrap"
	"github.com/levelwire/levelwire/server/internal/registry/namespace"
	"github.com/levelwire/levelwire/server/internal/registry/service"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/serviceaccount"
	"github.com/levelwire/levelwire/storage"
)

// writePath is the registry of all resources with what takes part in its writes.
type writePath struct {
	set      *registry.Set
	services *service.Allocator
	tokens   *serviceaccount.Tokens
	// contents make the objects of a new namespace, and keeper restores them; none
	// and nil if service accounts are disabled.
	contents []bootstrap.NamespaceContent
	keeper   *serviceaccount.Keeper
}

// newWritePath makes the write path with the configured admission plugins.
func (s *Server) newWritePath(store storage.Store, table *resource.Table, caches *caches) (*writePath, error) {
	set, err := registry.NewSet(registry.Config{Store: store, Resources: table, Cache: caches.Of})
	if err != nil {
		return nil, err
	}
	services, err := service.New(set, service.Options{CIDR: s.config.ServiceCIDR, Logger: s.config.Logger})
	if err != nil {
		return nil, fmt.Errorf("--service-cidr: %w", err)
	}
	without := slices.Contains(s.config.DisableAdmissionPlugins, admission.ServiceAccount)
	accounts := serviceaccount.NewAccounts(set, serviceaccount.AccountOptions{RootCA: s.identity.rootCA, NoDefaults: without})
	tokens, err := serviceaccount.NewTokens(set, accounts, serviceaccount.Options{
		Issuers: s.config.ServiceAccountIssuers, Audiences: s.config.APIAudiences,
		SigningKey: s.identity.tokenKey, PublicKeys: s.identity.tokenKeys,
	})
	if err != nil {
		return nil, fmt.Errorf("service account tokens: %w", err)
	}
	w := &writePath{set: set, services: services, tokens: tokens}
	if !without {
		w.contents = []bootstrap.NamespaceContent{accounts.Ensure}
		w.keeper = serviceaccount.NewKeeper(accounts, tokens, s.config.Logger)
	}
	set.Admit(admission.Chain(set, namespace.Lifecycle(set), accounts.Admit, s.config.DisableAdmissionPlugins)...)
	set.Admit(services.Admit, admission.CertificateRequester(set))
	return w, nil
}

// newAPI makes the HTTP server with its authenticators and health checks.
func (s *Server) newAPI(store storage.Store, table *resource.Table, caches *caches, writes *writePath) (*apiserver.Server, error) {
	documents, err := s.tokenDocuments(writes.tokens)
	if err != nil {
		return nil, err
	}
	tokens := auth.Union{writes.tokens}
	if s.identity.tokens != nil {
		tokens = auth.Union{s.identity.tokens, writes.tokens}
	}
	return apiserver.New(apiserver.Config{
		Resources: table, Store: store, Cache: caches.Of, Registry: writes.set,
		ClientCAs: s.identity.clientCAs, Tokens: tokens, Audiences: writes.tokens.Audiences(), Issuer: writes.tokens,
		Documents: documents, Version: s.config.Version, Logger: s.config.Logger, ShutdownTimeout: s.config.ShutdownTimeout,
		Profiling: s.config.Profiling, HTTP2Server: s.config.HTTP2Server, CatchUpTimeout: s.config.CatchUpTimeout,
		HealthChecks: []health.Check{
			{Name: "startup", Check: s.checkStarted}, {Name: "leaving", Check: s.checkLeaving}, {Name: "storage", Check: checkStorage(store)},
		},
	})
}

var errStarting = errors.New("the server is starting: namespaces, services or custom resources are not all there yet")

// checkStarted makes /readyz fail until custom resources are served. Filled caches
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

// tokenDocuments are the OpenID documents by which other servers verify the tokens
// of service accounts.
func (s *Server) tokenDocuments(tokens *serviceaccount.Tokens) (map[string]apiserver.Document, error) {
	keys, err := tokens.Keys()
	if err != nil {
		return nil, fmt.Errorf("service account tokens: %w", err)
	}
	configuration, err := tokens.Configuration(s.URL() + serviceaccount.KeysPath)
	if err != nil {
		return nil, fmt.Errorf("service account tokens: %w", err)
	}
	return map[string]apiserver.Document{
		serviceaccount.KeysPath:          {ContentType: "application/jwk-set+json", Body: keys},
		serviceaccount.ConfigurationPath: {ContentType: "application/json", Body: configuration},
	}, nil
}
