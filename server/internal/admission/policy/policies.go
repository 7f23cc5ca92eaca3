package policy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/levelwire/levelwire/server/internal/admission/expressions"
	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/registry/follower"
	"github.com/levelwire/levelwire/server/internal/watchcache"
)

// Policies decides about requests by the policies and bindings in the caches. It is safe
// for concurrent use.
type Policies struct {
	set        *registry.Set
	authorizer auth.Authorizer
	log        *slog.Logger
	metrics    *metrics
	conditions *expressions.ConditionMetrics

	validating, mutating *index
	kinds                []registry.Registry // the first is that of ValidatingAdmissionPolicies
	follower             *follower.Follower
	opened               atomic.Bool   // the caches have been filled once
	applied              chan struct{} // of length 1; receives when an index has changed
	checks               *typeChecks
	params               paramCache
}

// New returns Policies over the caches of a set, which must have the four kinds.
// authorizer answers the expressions that ask what the user may do. conditions count the
// evaluations of match conditions, unless nil. log receives what operators should see.
func New(set *registry.Set, authorizer auth.Authorizer, conditions *expressions.ConditionMetrics, log *slog.Logger) (*Policies, error) {
	p := &Policies{
		set: set, authorizer: authorizer, log: log, metrics: newMetrics(), conditions: conditions,
		validating: newIndex(), mutating: newIndex(), checks: newTypeChecks(),
		applied: make(chan struct{}, 1),
	}
	var kinds []follower.Kind
	for _, k := range []struct {
		plural string
		index  *index
		add    func(context.Context, registry.Registry, *watchcache.Object) (policyOrBinding, error)
	}{
		{"validatingadmissionpolicies", p.validating, decodeAs(newValidatingPolicy)},
		{"validatingadmissionpolicybindings", p.validating, decodeAs(newValidatingBinding)},
		{"mutatingadmissionpolicies", p.mutating, decodeAs(newMutatingPolicy)},
		{"mutatingadmissionpolicybindings", p.mutating, decodeAs(newMutatingBinding)},
	} {
		r, ok := set.Lookup(admissionv1.GroupName, "v1", k.plural)
		if !ok || r.Cache() == nil {
			return nil, fmt.Errorf("admission policies: %s are not served", k.plural)
		}
		source := &source{index: k.index, registry: r, decode: k.add, log: log, applied: p.applied}
		source.gone = func(names []string, left int) { p.forget(k.plural, names, left) }
		if len(p.kinds) == 0 {
			source.changed = p.checks.add
		}
		p.kinds = append(p.kinds, r)
		kinds = append(kinds, follower.Kind{Registry: r, Replace: source.replace, Apply: source.apply})
	}
	p.follower = follower.New(log, kinds...)
	return p, nil
}

// Run keeps the policies in step with the caches until ctx ends, and compiles them, so that
// requests seldom have to.
func (p *Policies) Run(ctx context.Context) {
	var following sync.WaitGroup
	following.Go(func() { p.follower.Run(ctx) })
	following.Go(func() { p.compileAhead(ctx) })
	following.Wait()
}

// compileAhead compiles the bound policies after each change, one after the other: a request
// that matches one earlier compiles it itself.
func (p *Policies) compileAhead(ctx context.Context) {
	for {
		for _, x := range []*index{p.mutating, p.validating} {
			for _, h := range x.current().hooks {
				if ctx.Err() != nil {
					return
				}
				h.policy.expressions()
			}
		}
		select {
		case <-p.applied:
		case <-ctx.Done():
			return
		}
	}
}

// Collectors returns the metrics, which are those of kube-apiserver.
func (p *Policies) Collectors() []prometheus.Collector { return p.metrics.collectors() }

// readyWait bounds how long a request waits for the caches when the server starts.
const readyWait = 10 * time.Second

// catchUp applies what the caches show, and this server's own writes: a request that begins
// after a policy was answered is decided by it. The error refuses the request: without
// knowing the policies nothing may pass.
func (p *Policies) catchUp(ctx context.Context) error {
	if !p.opened.Load() {
		wait, cancel := context.WithTimeout(ctx, readyWait)
		defer cancel()
		for _, r := range p.kinds {
			if err := r.Cache().WaitReady(wait); err != nil {
				return unavailable(errors.Join(auth.ErrNotReady, ctx.Err()))
			}
		}
		p.opened.Store(true)
	}
	if err := p.follower.CatchUp(ctx); err != nil {
		return unavailable(err)
	}
	return nil
}

func unavailable(err error) error {
	return apierrors.NewServiceUnavailable("the admission policies cannot be read: " + err.Error())
}
