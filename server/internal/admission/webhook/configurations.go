package webhook

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/admission/expressions"
	"github.com/levelwire/levelwire/server/internal/admission/rules"
	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/registry/follower"
	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/server/internal/webhookclient"
)

// The values that webhooks have unless their configurations say otherwise.
const (
	defaultTimeout = 10 * time.Second
	defaultPort    = 443
	// maxCalls of one webhook are under way; further ones wait until their deadline.
	maxCalls = 256
)

// Options are what the plugins need beside the Set.
type Options struct {
	// Resolve finds the addresses of Services. nil: the cluster's DNS does.
	Resolve webhookclient.Resolve
	// MutatingCredentials and ValidatingCredentials are the users as which the webhooks are
	// called. nil: without credentials.
	MutatingCredentials, ValidatingCredentials *webhookclient.Credentials
	// Authorizer answers the authorizer checks of match conditions. Required.
	Authorizer auth.Authorizer
	// Conditions count the evaluations of match conditions, unless nil.
	Conditions *expressions.ConditionMetrics
	Logger     *slog.Logger
}

// Plugin calls the webhooks that are configured. It is safe for concurrent use.
type Plugin struct {
	set        *registry.Set
	opts       Options
	metrics    *metrics
	namespaces namespaces

	mutating, validating *configurations
	follower             *follower.Follower
}

// New returns the Plugin of a Set whose caches have the configurations.
func New(set *registry.Set, opts Options) (*Plugin, error) {
	p := &Plugin{set: set, opts: opts, metrics: newMetrics(), namespaces: namespaces{set}}
	p.mutating = &configurations{plugin: p, plural: "mutatingwebhookconfigurations", decode: decodeMutating, credentials: opts.MutatingCredentials}
	p.validating = &configurations{plugin: p, plural: "validatingwebhookconfigurations", decode: decodeValidating, credentials: opts.ValidatingCredentials}
	var kinds []follower.Kind
	for _, c := range []*configurations{p.mutating, p.validating} {
		var ok bool
		if c.registry, ok = set.Lookup(admissionv1.GroupName, "v1", c.plural); !ok || c.registry.Cache() == nil {
			return nil, fmt.Errorf("admission webhooks: %s are not served", c.plural)
		}
		c.hooks.Store(new([]*hook))
		kinds = append(kinds, follower.Kind{Registry: c.registry, Replace: c.replace, Apply: c.apply})
	}
	p.follower = follower.New(opts.Logger, kinds...)
	return p, nil
}

// Run follows the configurations until ctx ends, so that writes seldom have to. It closes
// idle connections then.
func (p *Plugin) Run(ctx context.Context) {
	p.follower.Run(ctx)
	for _, c := range []*configurations{p.mutating, p.validating} {
		closeUnused(*c.hooks.Load(), nil)
	}
}

// current returns the webhooks of a kind as the caches have them: a client that has
// written a configuration finds it in force.
func (p *Plugin) current(ctx context.Context, of *configurations) ([]*hook, error) {
	err := p.follower.CatchUp(ctx)
	if errors.Is(err, auth.ErrNotReady) {
		err = p.awaitCaches(ctx)
	}
	if err != nil {
		return nil, notReady(err)
	}
	return *of.hooks.Load(), nil
}

// readyWait bounds how long a write waits for caches that are filled for the first time.
const readyWait = 5 * time.Second

func (p *Plugin) awaitCaches(ctx context.Context) error {
	wait, cancel := context.WithTimeout(ctx, readyWait)
	defer cancel()
	for _, c := range []*configurations{p.mutating, p.validating} {
		if err := c.registry.Cache().WaitReady(wait); err != nil {
			return auth.ErrNotReady
		}
	}
	return p.follower.CatchUp(ctx)
}

// hook is one webhook of a configuration, compiled. It is immutable but for its client's
// connections and its conditions.
type hook struct {
	spec
	configuration string
	matcher       *rules.Matcher
	// conditions compiles the match conditions when it is first called: by a request that all else matches. All
	// writes wait while a configuration is read, and the conditions of one may take seconds.
	conditions func() *expressions.Conditions // which returns nil if there are none
	version    string                         // of AdmissionReview; "" if none of the webhook's is known
	timeout    time.Duration
	ignore     bool // failurePolicy
	client     *webhookclient.Client
	broken     error         // why it cannot be called; nil if it can
	calls      chan struct{} // of length maxCalls
}

// spec is what mutating and validating webhooks have in common.
type spec struct {
	Name               string
	ClientConfig       admissionv1.WebhookClientConfig
	Rules              []admissionv1.RuleWithOperations
	FailurePolicy      *admissionv1.FailurePolicyType
	MatchPolicy        *admissionv1.MatchPolicyType
	NamespaceSelector  *metav1.LabelSelector
	ObjectSelector     *metav1.LabelSelector
	SideEffects        *admissionv1.SideEffectClass
	TimeoutSeconds     *int32
	ReviewVersions     []string
	ReinvocationPolicy *admissionv1.ReinvocationPolicyType // of mutating ones
	MatchConditions    []admissionv1.MatchCondition
}

// id names a hook among all of its kind.
func (h *hook) id() string { return h.configuration + "/" + h.Name }

// supportsDryRun reports whether the webhook may be called for a dry run.
func (h *hook) supportsDryRun() bool {
	return h.SideEffects != nil && (*h.SideEffects == admissionv1.SideEffectClassNone || *h.SideEffects == admissionv1.SideEffectClassNoneOnDryRun)
}

// configurations are those of one kind.
type configurations struct {
	plugin   *Plugin
	plural   string
	registry registry.Registry
	decode   func(ctx context.Context, r registry.Registry, o *watchcache.Object) ([]spec, error)
	// credentials are the users as which the webhooks are called.
	credentials *webhookclient.Credentials

	mu     sync.Mutex
	byName map[string][]*hook
	hooks  atomic.Pointer[[]*hook] // all, by the names of their configurations
}

func decodeMutating(ctx context.Context, r registry.Registry, o *watchcache.Object) ([]spec, error) {
	c, err := registry.DecodeAs[*admissionv1.MutatingWebhookConfiguration](ctx, r, o)
	if err != nil {
		return nil, err
	}
	specs := make([]spec, len(c.Webhooks))
	for i, w := range c.Webhooks {
		specs[i] = spec{
			w.Name, w.ClientConfig, w.Rules, w.FailurePolicy, w.MatchPolicy, w.NamespaceSelector, w.ObjectSelector,
			w.SideEffects, w.TimeoutSeconds, w.AdmissionReviewVersions, w.ReinvocationPolicy, w.MatchConditions,
		}
	}
	return specs, nil
}

func decodeValidating(ctx context.Context, r registry.Registry, o *watchcache.Object) ([]spec, error) {
	c, err := registry.DecodeAs[*admissionv1.ValidatingWebhookConfiguration](ctx, r, o)
	if err != nil {
		return nil, err
	}
	specs := make([]spec, len(c.Webhooks))
	for i, w := range c.Webhooks {
		specs[i] = spec{
			w.Name, w.ClientConfig, w.Rules, w.FailurePolicy, w.MatchPolicy, w.NamespaceSelector, w.ObjectSelector,
			w.SideEffects, w.TimeoutSeconds, w.AdmissionReviewVersions, nil, w.MatchConditions,
		}
	}
	return specs, nil
}

func (c *configurations) replace(ctx context.Context, objects watchcache.Snapshot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.byName
	c.byName = map[string][]*hook{}
	for o := range objects.Range("", "") {
		c.byName[o.Key] = c.compile(ctx, o, before[o.Key])
		delete(before, o.Key)
	}
	for _, gone := range before {
		closeUnused(gone, nil)
	}
	c.publish()
}

func (c *configurations) apply(ctx context.Context, events []watchcache.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range events {
		o := events[i].Object
		if events[i].Type == watchcache.Deleted {
			closeUnused(c.byName[o.Key], nil)
			delete(c.byName, o.Key)
		} else {
			c.byName[o.Key] = c.compile(ctx, o, c.byName[o.Key])
		}
	}
	c.publish()
}

// publish is called while mu is held.
func (c *configurations) publish() {
	names := make([]string, 0, len(c.byName))
	for name := range c.byName {
		names = append(names, name)
	}
	slices.Sort(names)
	var all []*hook
	used := map[string]bool{}
	for _, name := range names {
		for _, h := range c.byName[name] {
			all = append(all, h)
			used[h.Name] = true
		}
	}
	var gone []string
	for _, h := range *c.hooks.Swap(&all) {
		if !used[h.Name] {
			used[h.Name] = true
			gone = append(gone, h.Name)
		}
	}
	c.plugin.metrics.forget(gone, c.kind(), len(all))
	c.plugin.opts.Conditions.Forget(gone, "webhook", c.kind(), len(all))
}

// kind is what metrics call the webhooks of the configurations.
func (c *configurations) kind() string {
	if c.plural == "validatingwebhookconfigurations" {
		return "validating"
	}
	return "admit"
}

// compile returns the hooks of a configuration. Those that have not changed stay the
// same, with their connections.
func (c *configurations) compile(ctx context.Context, o *watchcache.Object, before []*hook) []*hook {
	specs, err := c.decode(ctx, c.registry, o)
	if err != nil {
		c.plugin.opts.Logger.Error("a webhook configuration cannot be read, and stays as it was", "configuration", o.Key, "error", err)
		return before
	}
	hooks, known := make([]*hook, len(specs)), make(map[string]*hook, len(before))
	for _, h := range before {
		if known[h.Name] == nil { // of a repeated name the first
			known[h.Name] = h
		}
	}
	for i, s := range specs {
		old := known[s.Name]
		if old != nil && equality.Semantic.DeepEqual(old.spec, s) {
			hooks[i] = old
			continue
		}
		hooks[i] = c.newHook(strings.Clone(o.Key), s, old)
	}
	closeUnused(before, hooks)
	return hooks
}

// closeUnused closes the connections of hooks that are not used by others.
func closeUnused(before, now []*hook) {
	for _, client := range unused(before, now) {
		client.Close()
	}
}

// unused returns the connections of hooks that are not used by others.
func unused(before, now []*hook) (clients []*webhookclient.Client) {
	used := make(map[*webhookclient.Client]bool, len(now))
	for _, h := range now {
		used[h.client] = true
	}
	for _, h := range before {
		if h.client != nil && !used[h.client] {
			clients = append(clients, h.client)
		}
	}
	return clients
}

// newHook compiles a webhook; an error in it is the answer to each of its calls. old is
// what it was before, or nil: its connections are kept if it is called at the same place.
func (c *configurations) newHook(configuration string, s spec, old *hook) *hook {
	h := &hook{
		spec: s, configuration: configuration, timeout: defaultTimeout,
		ignore: s.FailurePolicy != nil && *s.FailurePolicy == admissionv1.Ignore,
	}
	if s.TimeoutSeconds != nil {
		h.timeout = time.Duration(*s.TimeoutSeconds) * time.Second
	}
	if i := slices.IndexFunc(s.ReviewVersions, func(v string) bool { return v == "v1" || v == "v1beta1" }); i >= 0 {
		h.version = s.ReviewVersions[i]
	}
	var err error
	if h.matcher, err = rules.ForWebhook(s.Rules, s.MatchPolicy, s.NamespaceSelector, s.ObjectSelector); err != nil {
		h.matcher, _ = rules.ForWebhook(s.Rules, s.MatchPolicy, nil, nil)
		h.broken = err
	}
	h.conditions = sync.OnceValue(func() *expressions.Conditions { return compileConditions(s, c.kind()) })
	if old != nil && old.client != nil && equality.Semantic.DeepEqual(old.ClientConfig, s.ClientConfig) {
		h.client, h.calls = old.client, old.calls
		return h
	}
	h.calls = make(chan struct{}, maxCalls)
	target, err := targetOf(&s.ClientConfig)
	if err == nil {
		target.Credentials = c.credentials
		h.client, err = webhookclient.New(target, c.plugin.opts.Resolve)
	}
	if h.broken == nil {
		h.broken = err
	}
	return h
}

var errNoTarget = errors.New("its clientConfig has neither url nor service")

func targetOf(c *admissionv1.WebhookClientConfig) (webhookclient.Target, error) {
	target := webhookclient.Target{CABundle: c.CABundle}
	switch {
	case c.URL != nil:
		target.URL = *c.URL
	case c.Service != nil:
		target.Service = &webhookclient.Service{Namespace: c.Service.Namespace, Name: c.Service.Name, Port: defaultPort}
		if c.Service.Port != nil {
			target.Service.Port = *c.Service.Port
		}
		if c.Service.Path != nil {
			target.Service.Path = *c.Service.Path
		}
	default:
		return target, errNoTarget
	}
	return target, nil
}
