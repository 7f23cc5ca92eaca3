package podspec

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// RoundAmounts rounds amounts up to thousandths, which is what Kubernetes stores of smaller ones.
func RoundAmounts(lists ...corev1.ResourceList) {
	for _, list := range lists {
		for name, amount := range list {
			if exact := amount.RoundUp(resource.Milli); !exact {
				list[name] = amount
			}
		}
	}
}

// Rounded returns a spec that is stored with its amounts rounded. Servers before this rule stored
// them as they were: what does not change of such a spec still counts as unchanged.
func Rounded(spec *corev1.PodSpec) *corev1.PodSpec {
	spec = spec.DeepCopy()
	roundAmounts(spec)
	return spec
}

func roundAmounts(spec *corev1.PodSpec) {
	RoundAmounts(spec.Overhead)
	if spec.Resources != nil {
		RoundAmounts(spec.Resources.Limits, spec.Resources.Requests)
	}
	for i := range spec.Volumes {
		if v := spec.Volumes[i].Ephemeral; v != nil && v.VolumeClaimTemplate != nil {
			RoundClaim(&v.VolumeClaimTemplate.Spec)
		}
	}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			RoundAmounts(containers[i].Resources.Limits, containers[i].Resources.Requests)
		}
	}
	for i := range spec.EphemeralContainers {
		r := &spec.EphemeralContainers[i].Resources
		RoundAmounts(r.Limits, r.Requests)
	}
}

// RoundClaim rounds what a claim for a volume asks for.
func RoundClaim(spec *corev1.PersistentVolumeClaimSpec) {
	RoundAmounts(spec.Resources.Limits, spec.Resources.Requests)
}

// RoundClaimStatus rounds what a claim has.
func RoundClaimStatus(status *corev1.PersistentVolumeClaimStatus) {
	RoundAmounts(status.Capacity, status.AllocatedResources)
}
