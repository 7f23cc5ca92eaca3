package builtin

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/server/internal/resource"
)

// inactive are the kinds that are stored, and on which nothing here acts. Clients
// that write one are warned with the sentence. A kind leaves this table when
// something acts on it.
var inactive = map[schema.GroupKind]string{
	{Group: "", Kind: "PersistentVolume"}:                               noVolumes,
	{Group: "", Kind: "PersistentVolumeClaim"}:                          noVolumes,
	{Group: "certificates.k8s.io", Kind: "CertificateSigningRequest"}:   "no signer issues certificates here: a CertificateSigningRequest that is approved keeps an empty status.certificate",
	{Group: "certificates.k8s.io", Kind: "PodCertificateRequest"}:       "no signer issues certificates here: a PodCertificateRequest stays pending unless a signer of yours ends it",
	{Group: "networking.k8s.io", Kind: "Ingress"}:                       "no Ingress controller runs here: an Ingress routes nothing",
	{Group: "networking.k8s.io", Kind: "NetworkPolicy"}:                 "a NetworkPolicy is not enforced here",
	{Group: "networking.k8s.io", Kind: "ServiceCIDR"}:                   "a ServiceCIDR adds no addresses here: Services get theirs from --service-cluster-ip-range",
	{Group: "resource.k8s.io", Kind: "DeviceClass"}:                     noDevices,
	{Group: "resource.k8s.io", Kind: "DeviceTaintRule"}:                 noDevices,
	{Group: "resource.k8s.io", Kind: "ResourceClaim"}:                   noDevices,
	{Group: "resource.k8s.io", Kind: "ResourceClaimTemplate"}:           noDevices,
	{Group: "resource.k8s.io", Kind: "ResourceSlice"}:                   noDevices,
	{Group: "storagemigration.k8s.io", Kind: "StorageVersionMigration"}: "Levelwire's controllers migrate no storage: a StorageVersionMigration waits for a kube-controller-manager",
	{Group: "storage.k8s.io", Kind: "CSIDriver"}:                        noVolumes,
	{Group: "storage.k8s.io", Kind: "CSINode"}:                          noVolumes,
	{Group: "storage.k8s.io", Kind: "CSIStorageCapacity"}:               noVolumes,
	{Group: "storage.k8s.io", Kind: "VolumeAttachment"}:                 noVolumes,
	{Group: "storage.k8s.io", Kind: "VolumeAttributesClass"}:            noVolumes,
}

const (
	noVolumes = "volumes are neither provisioned, bound nor attached here: pods are simulated, and run without them"
	noDevices = "devices are not allocated here: pods are simulated, and are scheduled without them"
)

// Inactive returns the warning about a kind on which nothing acts; "" for others.
func Inactive(kind schema.GroupKind) string { return inactive[kind] }

// warnOfInactive adds the warning to those of the kind.
func warnOfInactive(r *resource.Resource) {
	warning := Inactive(r.GroupVersionKind().GroupKind())
	if warning == "" {
		return
	}
	others := r.Strategy.Warnings
	r.Strategy.Warnings = func(obj, old resource.Object) []string {
		warnings := []string{warning}
		if others != nil {
			warnings = append(warnings, others(obj, old)...)
		}
		return warnings
	}
}
