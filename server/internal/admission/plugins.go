package admission

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/registry"
)

// The names of the plugins of Kubernetes.
const (
	AlwaysAdmit                          = "AlwaysAdmit"
	NamespaceAutoProvision               = "NamespaceAutoProvision"
	NamespaceLifecycle                   = "NamespaceLifecycle"
	NamespaceExists                      = "NamespaceExists"
	LimitPodHardAntiAffinityTopology     = "LimitPodHardAntiAffinityTopology"
	LimitRanger                          = "LimitRanger"
	ServiceAccount                       = "ServiceAccount"
	NodeRestriction                      = "NodeRestriction"
	TaintNodesByCondition                = "TaintNodesByCondition"
	AlwaysPullImages                     = "AlwaysPullImages"
	ImagePolicyWebhook                   = "ImagePolicyWebhook"
	PodSecurity                          = "PodSecurity"
	PodNodeSelector                      = "PodNodeSelector"
	Priority                             = "Priority"
	DefaultTolerationSeconds             = "DefaultTolerationSeconds"
	PodTolerationRestriction             = "PodTolerationRestriction"
	EventRateLimit                       = "EventRateLimit"
	ExtendedResourceToleration           = "ExtendedResourceToleration"
	DefaultStorageClass                  = "DefaultStorageClass"
	StorageObjectInUseProtection         = "StorageObjectInUseProtection"
	PodGroupProtection                   = "PodGroupProtection"
	OwnerReferencesPermissionEnforcement = "OwnerReferencesPermissionEnforcement"
	PersistentVolumeClaimResize          = "PersistentVolumeClaimResize"
	RuntimeClass                         = "RuntimeClass"
	CertificateApproval                  = "CertificateApproval"
	CertificateSigning                   = "CertificateSigning"
	ClusterTrustBundleAttest             = "ClusterTrustBundleAttest"
	CertificateSubjectRestriction        = "CertificateSubjectRestriction"
	DefaultIngressClass                  = "DefaultIngressClass"
	DenyServiceExternalIPs               = "DenyServiceExternalIPs"
	PodTopologyLabels                    = "PodTopologyLabels"
	NodeDeclaredFeatureValidator         = "NodeDeclaredFeatureValidator"
	PodResizeValidator                   = "PodResizeValidator"
	MutatingAdmissionPolicy              = "MutatingAdmissionPolicy"
	MutatingAdmissionWebhook             = "MutatingAdmissionWebhook"
	ValidatingAdmissionPolicy            = "ValidatingAdmissionPolicy"
	ValidatingAdmissionWebhook           = "ValidatingAdmissionWebhook"
	ResourceQuota                        = "ResourceQuota"
	AlwaysDeny                           = "AlwaysDeny"
)

// order is that in which plugins are called, in each of the two phases: Kubernetes' own.
// Webhooks and policies see what the other plugins have made of the object, and quotas
// are charged for what nothing has refused.
var order = []string{
	AlwaysAdmit, NamespaceAutoProvision, NamespaceLifecycle, NamespaceExists, LimitPodHardAntiAffinityTopology,
	LimitRanger, ServiceAccount, NodeRestriction, TaintNodesByCondition, AlwaysPullImages, ImagePolicyWebhook,
	PodSecurity, PodNodeSelector, Priority, DefaultTolerationSeconds, PodTolerationRestriction, EventRateLimit,
	ExtendedResourceToleration, DefaultStorageClass, StorageObjectInUseProtection, PodGroupProtection,
	OwnerReferencesPermissionEnforcement, PersistentVolumeClaimResize, RuntimeClass, CertificateApproval,
	CertificateSigning, ClusterTrustBundleAttest, CertificateSubjectRestriction, DefaultIngressClass,
	DenyServiceExternalIPs, PodTopologyLabels, NodeDeclaredFeatureValidator, PodResizeValidator,
	MutatingAdmissionPolicy, MutatingAdmissionWebhook, ValidatingAdmissionPolicy, ValidatingAdmissionWebhook,
	ResourceQuota, AlwaysDeny,
}

// unsupportedPlugins are the plugins of Kubernetes that this server does not have.
// Disabling one of them is no error: it is off.
var unsupportedPlugins = []string{ImagePolicyWebhook, PodGroupProtection}

// onInKubernetes are those of them that kube-apiserver has on by default. Enabling one is no
// error: it is how the default list is written out.
var onInKubernetes = []string{PodGroupProtection}

// offByDefault are the plugins that run only if they are enabled, as in Kubernetes.
var offByDefault = []string{
	AlwaysAdmit, AlwaysDeny, AlwaysPullImages, DenyServiceExternalIPs, EventRateLimit, ExtendedResourceToleration,
	LimitPodHardAntiAffinityTopology, NamespaceAutoProvision, NamespaceExists, OwnerReferencesPermissionEnforcement, PodNodeSelector,
	PodTolerationRestriction,
}

// configured are the plugins by which users of the cluster decide about the requests of
// others. They are asked neither about what the server itself writes, nor about a write
// that follows from a request that they have admitted (registry.Request.Admitted).
var configured = []string{MutatingAdmissionPolicy, MutatingAdmissionWebhook, ValidatingAdmissionPolicy, ValidatingAdmissionWebhook}

// Names returns the names of the plugins of this server in the order in which they are
// called.
func Names() []string {
	return slices.DeleteFunc(slices.Clone(order), func(name string) bool { return slices.Contains(unsupportedPlugins, name) })
}

// CheckNames refuses names that are not those of plugins of Kubernetes.
func CheckNames(names []string) error {
	for _, name := range names {
		if !slices.Contains(order, name) {
			return fmt.Errorf("%q is no admission plugin: there are %s", name, strings.Join(Names(), ", "))
		}
	}
	return nil
}

// CheckEnabled refuses names that are not those of plugins that this server has, but for
// those that are on by default in Kubernetes.
func CheckEnabled(names []string) error {
	for _, name := range names {
		if !slices.Contains(onInKubernetes, name) && slices.Contains(unsupportedPlugins, name) {
			return fmt.Errorf("the admission plugin %s does not exist here: there are %s", name, strings.Join(Names(), ", "))
		}
	}
	return CheckNames(names)
}

// Disabled returns the plugins that do not run: those that are disabled, and of those
// that are off by default the ones that are not enabled.
func Disabled(enable, disable []string) []string {
	disabled := slices.Clone(disable)
	for _, name := range offByDefault {
		if !slices.Contains(enable, name) {
			disabled = append(disabled, name)
		}
	}
	return disabled
}

// Plugin is what an admission plugin does in each phase; nil is nothing.
type Plugin struct {
	// Mutate may change the object (registry.Config.Admission). It may be called twice
	// for a request (registry.Request.Reinvoked).
	Mutate registry.Admission
	// Validate sees the object as it will be written (registry.Config.Validation).
	Validate registry.Admission
}

// Plugins are admission plugins by their names. A plugin that is not among them, such as
// NodeRestriction if no kubelets are authorized as such, has no say.
type Plugins map[string]Plugin

// Chain returns the two phases of the plugins of a set: those of this package and others,
// in their order, without the disabled ones.
func Chain(set *registry.Set, others Plugins, disabled []string) (mutate, validate registry.Admission) {
	plugins := Plugins{
		LimitRanger:              {Mutate: limits{set}.fill, Validate: limits{set}.check},
		Priority:                 {Mutate: priorities{set}.admit, Validate: priorities{set}.check},
		DefaultTolerationSeconds: {Mutate: addTolerations},
		DefaultStorageClass:      {Mutate: storageClasses{set}.admit},

		TaintNodesByCondition:        {Mutate: taintNewNode},
		StorageObjectInUseProtection: {Mutate: protectStorage},

		AlwaysDeny:                  {Validate: alwaysDeny},
		NamespaceAutoProvision:      {Mutate: namespaceExistence{set}.provide},
		NamespaceExists:             {Validate: namespaceExistence{set}.require},
		PersistentVolumeClaimResize: {Validate: claimResizes{set}.check},
		DefaultIngressClass:         {Mutate: ingressClasses{set}.admit},
		DenyServiceExternalIPs:      {Validate: denyExternalIPs},
	}
	for name, plugin := range others {
		plugins[name] = plugin
	}
	var mutating, validating phase
	for _, name := range order {
		if slices.Contains(disabled, name) {
			continue
		}
		mutating.add(name, plugins[name].Mutate)
		validating.add(name, plugins[name].Validate)
	}
	return func(ctx context.Context, q *registry.Request) error {
		err := mutating.call(ctx, q)
		if err == nil && q.TakeAgain() {
			err = mutating.call(ctx, q)
		}
		return err
	}, validating.call
}

// phase is the hooks of one phase in their order: those before and those after the
// configured plugins.
type phase struct{ before, configured, after []registry.Admission }

func (p *phase) add(name string, hook registry.Admission) {
	switch {
	case hook == nil:
	case slices.Contains(configured, name):
		p.configured = append(p.configured, hook)
	case slices.Index(order, name) < slices.Index(order, configured[0]):
		p.before = append(p.before, hook)
	default:
		p.after = append(p.after, hook)
	}
}

func (p *phase) call(ctx context.Context, q *registry.Request) error {
	if err := callAll(ctx, q, p.before); err != nil {
		return err
	}
	if len(p.configured) > 0 && !q.Admitted && q.Operation != registry.Remove {
		if _, ok := auth.UserFrom(ctx); ok {
			if err := callAll(ctx, q, p.configured); err != nil {
				return err
			}
		}
	}
	return callAll(ctx, q, p.after)
}

func callAll(ctx context.Context, q *registry.Request, hooks []registry.Admission) error {
	for _, hook := range hooks {
		if err := hook(ctx, q); err != nil {
			return err
		}
	}
	return nil
}
