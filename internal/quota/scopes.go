package quota

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
)

// selects reports whether a scope with an operator selects an object that has these
// values: for most objects there is one value, or none.
func selects(scope corev1.ScopedResourceSelectorRequirement, values ...string) bool {
	named := func(value string) bool { return slices.Contains(scope.Values, value) }
	switch scope.Operator {
	case corev1.ScopeSelectorOpExists:
		return len(values) > 0
	case corev1.ScopeSelectorOpDoesNotExist:
		return len(values) == 0
	case corev1.ScopeSelectorOpIn:
		return slices.ContainsFunc(values, named)
	case corev1.ScopeSelectorOpNotIn:
		return len(values) == 0 || slices.ContainsFunc(values, func(value string) bool { return !named(value) })
	}
	return false
}

// isTerminating reports whether a pod has a time after which it is ended.
func isTerminating(pod *corev1.Pod) bool {
	return pod.Spec.ActiveDeadlineSeconds != nil && *pod.Spec.ActiveDeadlineSeconds >= 0
}

// IsBestEffort reports whether a pod requests no cpu and no memory, and limits none.
func IsBestEffort(pod *corev1.Pod) bool {
	states := func(r corev1.ResourceList) bool {
		return !r.Cpu().IsZero() || !r.Memory().IsZero()
	}
	if resourcehelper.IsPodLevelResourcesSet(pod) { // they stand for those of the containers
		return !states(pod.Spec.Resources.Requests) && !states(pod.Spec.Resources.Limits)
	}
	for _, containers := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range containers {
			if states(containers[i].Resources.Requests) || states(containers[i].Resources.Limits) {
				return false
			}
		}
	}
	return true
}

// crossesNamespaces reports whether a pod wants to be near to, or away from, pods of
// other namespaces.
func crossesNamespaces(pod *corev1.Pod) bool {
	affinity := pod.Spec.Affinity
	if affinity == nil {
		return false
	}
	crosses := func(term corev1.PodAffinityTerm) bool {
		return len(term.Namespaces) > 0 || term.NamespaceSelector != nil
	}
	weighted := func(term corev1.WeightedPodAffinityTerm) bool { return crosses(term.PodAffinityTerm) }
	if near := affinity.PodAffinity; near != nil && (slices.ContainsFunc(near.RequiredDuringSchedulingIgnoredDuringExecution, crosses) ||
		slices.ContainsFunc(near.PreferredDuringSchedulingIgnoredDuringExecution, weighted)) {
		return true
	}
	away := affinity.PodAntiAffinity
	return away != nil && (slices.ContainsFunc(away.RequiredDuringSchedulingIgnoredDuringExecution, crosses) ||
		slices.ContainsFunc(away.PreferredDuringSchedulingIgnoredDuringExecution, weighted))
}
