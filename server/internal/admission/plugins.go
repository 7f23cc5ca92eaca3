package admission

import (
	"fmt"
	"slices"
	"strings"

	"github.com/levelwire/levelwire/server/internal/registry"
)

// The names of the plugins that there are.
const (
	NamespaceLifecycle       = "NamespaceLifecycle"
	LimitRanger              = "LimitRanger"
	ServiceAccount           = "ServiceAccount"
	Priority                 = "Priority"
	DefaultTolerationSeconds = "DefaultTolerationSeconds"
	DefaultStorageClass      = "DefaultStorageClass"
)

// elsewhere are the plugins of Kubernetes that there are not: whoever switches
// one off has it off.
var elsewhere = []string{
	"AlwaysAdmit", "AlwaysDeny", "AlwaysPullImages", "CertificateApproval", "CertificateSigning",
	"CertificateSubjectRestriction", "ClusterTrustBundleAttest", "DefaultIngressClass", "DenyServiceExternalIPs",
	"EventRateLimit", "ExtendedResourceToleration", "ImagePolicyWebhook", "LimitPodHardAntiAffinityTopology",
	"MutatingAdmissionPolicy", "MutatingAdmissionWebhook", "NamespaceAutoProvision", "NamespaceExists",
	"NodeRestriction", "OwnerReferencesPermissionEnforcement", "PersistentVolumeClaimResize", "PodNodeSelector",
	"PodSecurity", "PodTolerationRestriction", "PodTopologyLabels", "ResourceQuota", "RuntimeClass",
	"StorageObjectInUseProtection", "TaintNodesByCondition", "ValidatingAdmissionPolicy", "ValidatingAdmissionWebhook",
}

// Names lists the plugins that there are, in the order in which they are asked.
func Names() []string {
	return []string{NamespaceLifecycle, LimitRanger, ServiceAccount, Priority, DefaultTolerationSeconds, DefaultStorageClass}
}

// CheckNames refuses names that are not even Kubernetes'.
func CheckNames(names []string) error {
	for _, name := range names {
		if !slices.Contains(Names(), name) && !slices.Contains(elsewhere, name) {
			return fmt.Errorf("%q is no admission plugin: there are %s", name, strings.Join(Names(), ", "))
		}
	}
	return nil
}

// Chain returns the plugins of a set in their order, without those that are
// disabled. lifecycle and accounts are the two that belong to others.
func Chain(set *registry.Set, lifecycle, accounts registry.Admission, disabled []string) []registry.Admission {
	plugins := map[string]registry.Admission{
		NamespaceLifecycle:       lifecycle,
		LimitRanger:              limits{set}.admit,
		ServiceAccount:           accounts,
		Priority:                 priorities{set}.admit,
		DefaultTolerationSeconds: tolerate,
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
