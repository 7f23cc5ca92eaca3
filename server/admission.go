package server

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/levelwire/levelwire/server/internal/admission"
	"github.com/levelwire/levelwire/server/internal/admission/csr"
	"github.com/levelwire/levelwire/server/internal/admission/eventratelimit"
	"github.com/levelwire/levelwire/server/internal/admission/noderestriction"
	"github.com/levelwire/levelwire/server/internal/admission/podrules"
	"github.com/levelwire/levelwire/server/internal/admission/podsecurity"
	"github.com/levelwire/levelwire/server/internal/admission/policy"
	"github.com/levelwire/levelwire/server/internal/admission/resourcequota"
	"github.com/levelwire/levelwire/server/internal/admission/webhook"
	"github.com/levelwire/levelwire/server/internal/registry/namespace"
)

// admit sets the hooks that all writes pass: the admission plugins that are configured,
// and what belongs to every server.
func (s *Server) admit(w *writePath, a *authorization) error {
	plugins, err := s.admissionPlugins(w, a)
	if err != nil {
		return err
	}
	if w.policies, err = s.newAdmissionPolicies(w, a, plugins); err != nil {
		return err
	}
	mutate, validate := admission.Chain(w.set, plugins, admission.Disabled(s.config.EnableAdmissionPlugins, s.config.DisableAdmissionPlugins))
	w.set.CheckStatus(admission.ClaimStatusRights(a.authorizer))
	w.set.Validate(csr.New(a.authorizer).EndPodRequest(w.set.Now))
	w.set.Admit(s.traceAdmission("mutating admission", mutate))
	w.set.Validate(s.traceAdmission("validating admission", validate))
	w.set.Admit(w.services.Admit, admission.CertificateRequester(w.set))
	w.set.Admit(policy.AuthorizeParams(w.set, a.authorizer))
	if a.preventEscalation != nil {
		w.set.Admit(a.preventEscalation)
	}
	return nil
}

// admissionPlugins makes the plugins that need more than the set of registries, or are
// packages of their own.
func (s *Server) admissionPlugins(w *writePath, a *authorization) (admission.Plugins, error) {
	podSecurity, err := podsecurity.New(w.set, s.plugins.PodSecurity)
	if err != nil {
		return nil, fmt.Errorf("admission plugin PodSecurity: %w", err)
	}
	w.podSecurity = podSecurity
	w.webhooks, err = webhook.New(w.set, webhook.Options{
		Resolve: w.resolve, Authorizer: a.authorizer, Conditions: w.conditions, Logger: s.config.Logger,
		MutatingCredentials: s.plugins.Mutating, ValidatingCredentials: s.plugins.Validating,
	})
	if err != nil {
		return nil, err
	}
	tolerations := podrules.NewTolerationRestriction(w.set, s.plugins.Tolerations)
	selectors := podrules.NewNodeSelectors(w.set, s.plugins.NodeSelectors)
	requests, classes, nodes := csr.New(a.authorizer), podrules.NewRuntimeClasses(w.set), podrules.NewNodeFeatures(w.set)
	plugins := admission.Plugins{
		admission.NamespaceLifecycle: {Mutate: namespace.Lifecycle(w.set)},
		admission.ServiceAccount:     {Mutate: w.accounts.Admit, Validate: w.accounts.Validate},
		admission.ResourceQuota:      {Validate: resourcequota.New(w.set, s.plugins.Limited).Admit},
		admission.PodSecurity:        {Validate: podSecurity.Validate},

		admission.MutatingAdmissionWebhook:   {Mutate: w.webhooks.Mutate},
		admission.ValidatingAdmissionWebhook: {Validate: w.webhooks.Validate},

		admission.AlwaysPullImages:                 {Mutate: podrules.AlwaysPullImages},
		admission.ExtendedResourceToleration:       {Mutate: podrules.ExtendedResourceToleration},
		admission.LimitPodHardAntiAffinityTopology: {Validate: podrules.LimitHardAntiAffinity},
		admission.NodeDeclaredFeatureValidator:     {Validate: nodes.ValidateFeatures},
		admission.PodNodeSelector:                  {Mutate: selectors.Mutate, Validate: selectors.Validate},
		admission.PodResizeValidator:               {Validate: nodes.ValidateResize},
		admission.PodTopologyLabels:                {Mutate: podrules.NewTopologyLabels(w.set).Mutate},
		admission.PodTolerationRestriction:         {Mutate: tolerations.Mutate, Validate: tolerations.Validate},
		admission.RuntimeClass:                     {Mutate: classes.Mutate, Validate: classes.Validate},

		admission.CertificateApproval:                  {Validate: requests.Approve},
		admission.CertificateSigning:                   {Validate: requests.Sign},
		admission.CertificateSubjectRestriction:        {Validate: requests.RestrictSubject},
		admission.ClusterTrustBundleAttest:             {Validate: requests.Attest},
		admission.OwnerReferencesPermissionEnforcement: {Validate: admission.OwnerReferencesPermissions(w.set, a.authorizer)},
	}
	if s.plugins.Events != nil {
		plugins[admission.EventRateLimit] = admission.Plugin{Validate: eventratelimit.New(s.plugins.Events, s.config.Now).Validate}
	}
	if s.config.hasMode(modeNode) {
		plugins[admission.NodeRestriction] = admission.Plugin{Mutate: noderestriction.New(w.set, a.authorizer).Admit}
	}
	return plugins, nil
}

// admissionPolicies are the policies that users of the cluster define; nil if both plugins
// are disabled.
type admissionPolicies struct{ policies *policy.Policies }

// newAdmissionPolicies makes the policies and adds their plugins.
func (s *Server) newAdmissionPolicies(w *writePath, a *authorization, plugins admission.Plugins) (*admissionPolicies, error) {
	names := []string{admission.MutatingAdmissionPolicy, admission.ValidatingAdmissionPolicy}
	if !slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(s.config.DisableAdmissionPlugins, name) }) {
		return &admissionPolicies{}, nil
	}
	policies, err := policy.New(w.set, a.authorizer, w.conditions, s.config.Logger)
	if err != nil {
		return nil, err
	}
	plugins[admission.MutatingAdmissionPolicy] = admission.Plugin{Mutate: policies.Mutate}
	plugins[admission.ValidatingAdmissionPolicy] = admission.Plugin{Validate: policies.Validate}
	return &admissionPolicies{policies}, nil
}

// run keeps the policies in step with the caches, and their types checked, until ctx ends.
func (p *admissionPolicies) run(ctx context.Context) error {
	if p.policies == nil {
		return nil
	}
	var following sync.WaitGroup
	following.Go(func() { p.policies.Run(ctx) })
	following.Go(func() { p.policies.CheckTypes(ctx) })
	following.Wait()
	return nil
}

func (p *admissionPolicies) collectors() []prometheus.Collector {
	if p.policies == nil {
		return nil
	}
	return p.policies.Collectors()
}
