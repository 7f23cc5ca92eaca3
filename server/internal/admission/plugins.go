package admission

import (
	"fmt"
	"slices"
	"strings"

	"github.com/levelwire/levelwire/server/internal/registry"
)

// The names of the plugins that this server has.
const (
	NamespaceLifecycle       = "NamespaceLifecycle"
	LimitRanger              = "LimitRanger"
	ServiceAccount           = "ServiceAccount"
	Priority                 = "Priority"
	DefaultTolerationSeconds = "DefaultTolerationSeconds"
	DefaultStorageClass      = "DefaultStorageClass"
)

// unsupportedPlugins are the plugins of Kubernetes that this server does not have.
// Disabling one of them is no error: it is off.
var unsupportedPlugins = []string{
	"AlwaysAdmit", "AlwaysDeny", "AlwaysPullImages", "CertificateApproval", "CertificateSigning",
	"CertificateSubjectRestriction", "ClusterTrustBundleAttest", "DefaultIngressClass", "DenyServiceExternalIPs",
	"EventRateLimit", "ExtendedResourceToleration", "ImagePolicyWebhook", "LimitPodHardAntiAffinityTopology",
	"MutatingAdmissionPolicy", "MutatingAdmissionWebhook", "NamespaceAutoProvision", "NamespaceExists",
	"NodeRestriction", "OwnerReferencesPermissionEnforcement", "PersistentVolumeClaimResize", "PodNodeSelector",
	"PodSecurity", "PodTolerationRestriction", "PodTopologyLabels", "ResourceQuota", "RuntimeClass",
	"StorageObjectInUseProtection", "TaintNodesByCondition", "ValidatingAdmissionPolicy", "ValidatingAdmissionWebhook",
}

// Names returns the names of the plugins in the order in which they are called.
func Names() []string {
	return []string{NamespaceLifecycle, LimitRanger, ServiceAccount, Priority, DefaultTolerationSeconds, DefaultStorageClass}
}

// CheckNames refuses names that are not those of plugins of Kubernetes.
func CheckNames(names []string) error {
	for _, name := range names {
		if !slices.Contains(Names(), name) && !slices.Contains(unsupportedPlugins, name) {
			return fmt.Errorf("%q is no admission plugin: there are %s", name, strings.Join(Names(), ", "))
		}
	}
	return nil
}

// Chain returns the plugins of a set in their order, without the disabled ones.
// lifecycle and accounts are the two plugins that other packages implement.
func Chain(set *registry.Set, lifecycle, accounts registry.Admission, disabled []string) []registry.Admission {
	plugins := map[string]registry.Admission{
		NamespaceLifecycle:       lifecycle,
		LimitRanger:              limits{set}.admit,
		ServiceAccount:           accounts,
		Priority:                 priorities{set}.admit,
		DefaultTolerationSeconds: addTolerations,
		DefaultStorageClass:      storageClasses{set}.admit,
	}
	var chain []registry.Admission
	for _, name := range Names() {
		if !slices.Contains(disabled, name) {
			chain = append(chain, plugins[name])
		}
	}
	return chain
}
