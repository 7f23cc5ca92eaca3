package builtin_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin"
)

// TestStrategyFlags compares what the strategies and storages of Kubernetes say with yes or no.
func TestStrategyFlags(t *testing.T) {
	kinds := func(names string) func(*resource.Resource) bool {
		set := strings.Fields(names)
		return func(r *resource.Resource) bool { return slices.Contains(set, r.Kind) }
	}
	for what, tt := range map[string]struct {
		ours     func(s *resource.Strategy) bool
		upstream func(*resource.Resource) bool
	}{
		"AllowCreateOnUpdate": {func(s *resource.Strategy) bool { return s.UpsertOnUpdate }, kinds(
			"RuntimeClass Role RoleBinding ClusterRole ClusterRoleBinding Lease LimitRange Event Service Endpoints")},
		"no AllowUnconditionalUpdate": {func(s *resource.Strategy) bool { return !s.UnconditionalUpdate }, kinds(
			"ValidatingWebhookConfiguration MutatingWebhookConfiguration ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding " +
				"MutatingAdmissionPolicy MutatingAdmissionPolicyBinding CustomResourceDefinition APIService ClusterTrustBundle " +
				"PodCertificateRequest Lease RuntimeClass PodDisruptionBudget DeviceTaintRule CSIDriver CSINode CSIStorageCapacity " +
				"VolumeAttachment StorageVersionMigration")},
		"ReturnDeletedObject": {func(s *resource.Strategy) bool { return s.ReturnDeleted }, kinds(
			"ResourceClaim ResourceClaimTemplate ResourceSlice DeviceClass CSIDriver StorageClass VolumeAttachment CSINode " +
				"VolumeAttributesClass ResourceQuota PersistentVolume PersistentVolumeClaim ServiceAccount Namespace Pod Service PodTemplate")},
		"OrphanDependents":                   {func(s *resource.Strategy) bool { return s.OrphanByDefault }, kinds("Job ReplicationController")},
		"no garbage collection":              {func(s *resource.Strategy) bool { return s.NoDependents }, kinds("Event")},
		"a generateName that stays":          {func(s *resource.Strategy) bool { return s.WholeGenerateName }, kinds("IPAddress")},
		"a name for an object that has none": {func(s *resource.Strategy) bool { return s.NamesUnnamed }, kinds("LimitRange")},
		"Validate that leaves out the metadata": {func(s *resource.Strategy) bool { return s.MetadataIfValid }, func(r *resource.Resource) bool {
			return r.Kind == "PodDisruptionBudget" || r.Kind == "Event" && r.Group == ""
		}},
		"PrepareForCreate leaves the status": {func(s *resource.Strategy) bool { return s.CreateWithStatus }, kinds("Node")},
	} {
		for _, r := range builtin.Resources() {
			if ours, upstream := tt.ours(&r.Strategy), tt.upstream(r); ours != upstream {
				t.Errorf("%s of %s: %t, in Kubernetes %t", what, r.GroupVersionKind(), ours, upstream)
			}
		}
	}
}
