package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apiserver/pkg/apis/apiserver"

	"github.com/levelwire/levelwire/server/internal/admission"
	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/auth/authorizationconfig"
	"github.com/levelwire/levelwire/server/internal/auth/authorizermetrics"
	"github.com/levelwire/levelwire/server/internal/nodeauthorizer"
	"github.com/levelwire/levelwire/server/internal/rbac"
	"github.com/levelwire/levelwire/server/internal/rbac/defaults"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/webhookauthorizer"
)

// The authorizers, by the names that Kubernetes gives them.
const (
	alwaysAllow = "AlwaysAllow"
	alwaysDeny  = "AlwaysDeny"
	modeNode    = "Node"
	modeRBAC    = "RBAC"
	modeWebhook = "Webhook"
)

// AuthorizationModes lists the authorizers of this server for
// Config.AuthorizationModes.
func AuthorizationModes() []string {
	return []string{modeNode, modeRBAC, modeWebhook, alwaysAllow, alwaysDeny}
}

// completeAuthorization is the part of ensureDefaults for authorization.
func (c *Config) completeAuthorization() error {
	if c.AuthorizationConfigFile != "" {
		return c.completeAuthorizationConfig()
	}
	if len(c.AuthorizationModes) == 0 {
		c.AuthorizationModes = []string{modeNode, modeRBAC}
	}
	for i, mode := range c.AuthorizationModes {
		if !slices.Contains(AuthorizationModes(), mode) {
			return fmt.Errorf("--authorization-mode %q is not available: there are %s", mode, strings.Join(AuthorizationModes(), ", "))
		}
		if slices.Contains(c.AuthorizationModes[:i], mode) {
			return fmt.Errorf("--authorization-mode names %s twice", mode)
		}
	}
	if err := c.checkFilteredLists(c.AuthorizationModes, "authorization-mode"); err != nil {
		return err
	}
	return c.completeWebhook()
}

// checkFilteredLists refuses to filter by roles and bindings what they do not decide about.
// modes are in the order in which they are asked, and flag is what names them.
func (c *Config) checkFilteredLists(modes []string, flag string) error {
	if !c.FilteredLists {
		return nil
	}
	for _, mode := range modes {
		switch mode {
		case modeRBAC:
			return nil
		case modeWebhook:
			return fmt.Errorf("--filtered-lists needs RBAC before Webhook in --%s: a webhook that is asked first can deny what roles allow", flag)
		}
	}
	return fmt.Errorf("--filtered-lists needs RBAC in --%s: what is shown is decided by roles and bindings", flag)
}

// authorizationConfigFlag is the flag of the file that takes the place of the others.
const authorizationConfigFlag = "authorization-config"

// completeAuthorizationConfig takes the modes from the file.
func (c *Config) completeAuthorizationConfig() error {
	if len(c.AuthorizationModes) > 0 || c.AuthorizationWebhook != (AuthorizationWebhook{}) {
		return fmt.Errorf("--%s cannot be combined with --authorization-mode or the --authorization-webhook flags: name these authorizers in the file", authorizationConfigFlag)
	}
	data, err := os.ReadFile(c.AuthorizationConfigFile)
	if err != nil {
		return fmt.Errorf("--%s: %w", authorizationConfigFlag, err)
	}
	if c.AuthorizationModes, err = authorizationconfig.Types(data, AuthorizationModes()); err != nil {
		return fmt.Errorf("--%s: %s: %w", authorizationConfigFlag, c.AuthorizationConfigFile, err)
	}
	return c.checkFilteredLists(c.AuthorizationModes, authorizationConfigFlag)
}

// The defaults of kube-apiserver, except for the version: it has v1beta1.
const (
	defaultReviewVersion = "v1"
	defaultAllowedTTL    = 5 * time.Minute
	defaultDeniedTTL     = 30 * time.Second
)

func (c *Config) completeWebhook() error {
	w := &c.AuthorizationWebhook
	if w.Version == "" {
		w.Version = defaultReviewVersion
	}
	setDefault(&w.AllowedTTL, defaultAllowedTTL)
	setDefault(&w.DeniedTTL, defaultDeniedTTL)
	switch {
	case c.hasMode(modeWebhook) && w.ConfigFile == "":
		return errors.New("--authorization-mode=Webhook needs --authorization-webhook-config-file")
	case !c.hasMode(modeWebhook) && w.ConfigFile != "":
		return errors.New("--authorization-webhook-config-file goes with --authorization-mode=Webhook")
	case w.Version != "v1" && w.Version != "v1beta1":
		return fmt.Errorf("--authorization-webhook-version %q is neither v1 nor v1beta1", w.Version)
	}
	return nil
}

// AuthorizationWebhook says which server the authorizer Webhook asks, by
// SubjectAccessReviews. Source:
// https://kubernetes.io/docs/reference/access-authn-authz/webhook/.
type AuthorizationWebhook struct {
	// ConfigFile is a kubeconfig: its cluster is the server that is asked, its user is
	// this server. Required with the mode Webhook.
	ConfigFile string
	// Version of the reviews: v1 or v1beta1. Default v1.
	Version string
	// AllowedTTL and DeniedTTL are for how long answers are cached; negative: they are
	// not. Defaults 5 min and 30 s.
	AllowedTTL, DeniedTTL time.Duration
}

// authorization decides what users may do.
type authorization struct {
	authorizer auth.Authorizer
	rbac       *rbac.Index                // nil unless RBAC is among the modes
	node       *nodeauthorizer.Authorizer // nil unless Node is
	webhooks   runner                     // nil unless Webhook may be
	// bootstrapped is closed when the default roles and bindings are there.
	bootstrapped chan struct{}
	readOnly     bool // Config.ReadOnly
	// preventEscalation is the hook for roles and bindings; nil if everything is allowed.
	preventEscalation registry.Admission
	visible           *rbac.History // nil unless lists and watches can be filtered
	metrics           *authorizermetrics.Metrics
}

// collectors returns the metrics.
func (a *authorization) collectors() []prometheus.Collector {
	collectors := a.metrics.Collectors()
	if a.rbac != nil {
		collectors = append(collectors, a.rbac.Collectors()...)
	}
	return collectors
}

// runner is a part that runs until its context ends.
type runner interface{ Run(ctx context.Context) }

// hasMode reports whether an authorizer is among those of the configuration.
func (c *Config) hasMode(mode string) bool { return slices.Contains(c.AuthorizationModes, mode) }

// newAuthorization makes the authorizers that are configured, in their order.
func (s *Server) newAuthorization(writes *writePath) (*authorization, error) {
	index, err := rbac.NewIndex(writes.set, s.config.Logger)
	if err != nil {
		return nil, err
	}
	a := &authorization{bootstrapped: make(chan struct{}), readOnly: s.config.ReadOnly, metrics: authorizermetrics.New()}
	if s.config.hasMode(modeRBAC) {
		a.rbac = index
	}
	authorizers := map[string]auth.Authorizer{}
	for _, mode := range s.config.AuthorizationModes {
		switch mode {
		case modeNode:
			a.node, err = nodeauthorizer.New(writes.set, nodeauthorizer.Options{
				Rules: defaults.NodeRules(), MirrorPods: !slices.Contains(s.config.DisableAdmissionPlugins, admission.NodeRestriction),
				Logger: s.config.Logger,
			})
			if err != nil {
				return nil, err
			}
			authorizers[mode] = a.node
		case modeRBAC:
			authorizers[mode] = auth.AuthorizerUnion{index, awaitingRoles(a.bootstrapped)}
		case alwaysAllow:
			authorizers[mode] = auth.AlwaysAllow{}
		case alwaysDeny:
			authorizers[mode] = auth.AlwaysDeny{}
		}
	}
	if s.config.AuthorizationConfigFile != "" {
		err = s.followAuthorizationConfig(a, authorizers)
	} else {
		err = s.combineModes(a, authorizers)
	}
	if err != nil {
		return nil, err
	}
	if s.config.FilteredLists {
		a.visible = index.NewHistory()
	}
	if !s.config.hasMode(alwaysAllow) {
		a.preventEscalation = index.PreventEscalation(a.authorizer)
	}
	return a, nil
}

// defaultWebhookName is what metrics call the webhook of the flags, as kube-apiserver does.
const defaultWebhookName = "default"

// combineModes asks the authorizers in the order of the modes.
func (s *Server) combineModes(a *authorization, authorizers map[string]auth.Authorizer) error {
	var union auth.AuthorizerUnion
	for _, mode := range s.config.AuthorizationModes {
		if mode == modeWebhook {
			w := s.config.AuthorizationWebhook
			webhook, err := webhookauthorizer.New(webhookauthorizer.Options{
				ConfigFile: w.ConfigFile, Version: w.Version, AllowedTTL: max(w.AllowedTTL, 0), DeniedTTL: max(w.DeniedTTL, 0),
				Name: defaultWebhookName, Metrics: a.metrics,
			})
			if err != nil {
				return fmt.Errorf("--authorization-webhook-config-file: %w", err)
			}
			a.webhooks, authorizers[mode] = webhook, webhook
		}
		name := strings.ToLower(mode)
		if mode == modeWebhook {
			name = defaultWebhookName
		}
		union = append(union, a.metrics.Counted(mode, name, authorizers[mode]))
	}
	a.authorizer = union
	if len(union) == 1 {
		a.authorizer = union[0]
	}
	return nil
}

// followAuthorizationConfig decides by the file, and reads it again when it changes.
func (s *Server) followAuthorizationConfig(a *authorization, authorizers map[string]auth.Authorizer) error {
	file := authorizationconfig.New(authorizationconfig.Options{
		Types: AuthorizationModes(), Authorizers: authorizers, NewWebhook: a.newConfiguredWebhook, Counted: a.metrics.Counted,
		CheckOrder: func(types []string) error { return s.config.checkFilteredLists(types, authorizationConfigFlag) },
	})
	a.authorizer, a.webhooks = file, file
	return s.identity.files.Watch(authorizationConfigFlag, []string{s.config.AuthorizationConfigFile}, func(contents [][]byte) error {
		return file.Load(contents[0])
	})
}

func (a *authorization) newConfiguredWebhook(name string, c *apiserver.WebhookConfiguration) (authorizationconfig.Webhook, error) {
	o := webhookauthorizer.Options{
		Name: name, ConfigFile: *c.ConnectionInfo.KubeConfigFile, Version: c.SubjectAccessReviewVersion, Timeout: c.Timeout.Duration,
		DenyOnError: c.FailurePolicy == apiserver.FailurePolicyDeny, Conditions: c.MatchConditions, Metrics: a.metrics,
	}
	if c.CacheAuthorizedRequests {
		o.AllowedTTL = c.AuthorizedTTL.Duration
	}
	if c.CacheUnauthorizedRequests {
		o.DeniedTTL = c.UnauthorizedTTL.Duration
	}
	return webhookauthorizer.New(o)
}

// awaitingRoles is an authorizer that cannot decide until the default roles and bindings
// are there, when it is closed: what no role allows may be allowed in a moment, so clients
// that start together with the server are asked to try again, and are not refused.
type awaitingRoles <-chan struct{}

// Authorize implements auth.Authorizer.
func (a awaitingRoles) Authorize(context.Context, auth.Attributes) (auth.Decision, string, error) {
	select {
	case <-a:
		return auth.NoOpinion, "", nil
	default:
		return auth.NoOpinion, "", auth.ErrNotReady
	}
}

// Rules implements auth.RuleLister.
func (awaitingRoles) Rules(context.Context, auth.User, string) auth.Rules { return auth.Rules{} }

// run keeps the authorizers in step with the caches until ctx ends.
func (a *authorization) run(ctx context.Context) error {
	var following sync.WaitGroup
	if a.rbac != nil {
		following.Go(func() { a.rbac.Run(ctx) })
		following.Go(func() {
			if a.readOnly {
				return // aggregated roles have the rules that were written
			}
			select {
			case <-a.bootstrapped:
				a.rbac.NewAggregator().Run(ctx)
			case <-ctx.Done():
			}
		})
	}
	if a.visible != nil {
		following.Go(func() { a.visible.Run(ctx) })
	}
	if a.node != nil {
		following.Go(func() { a.node.Run(ctx) })
	}
	if a.webhooks != nil {
		following.Go(func() { a.webhooks.Run(ctx) })
	}
	following.Wait()
	return nil
}

// bootstrap creates the roles and bindings that every cluster has, once. It is called by one
// goroutine, until it and what follows it have succeeded.
func (a *authorization) bootstrap(ctx context.Context, set *registry.Set) error {
	if a.rbac == nil {
		return nil
	}
	select {
	case <-a.bootstrapped:
		return nil
	default:
	}
	if !a.readOnly {
		if err := defaults.Ensure(ctx, set); err != nil {
			return err
		}
	}
	close(a.bootstrapped)
	return nil
}
