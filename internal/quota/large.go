package quota

import (
	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
)

// The library adds up what init containers need at the same time by copying, for each of them, the amounts
// of all before it: of a pod of 3 MB that took minutes.
const maxCopied = 1_000_000

// PodRequests returns what a node must have for a pod, as its spec says.
func PodRequests(pod *corev1.Pod) corev1.ResourceList {
	if isLarge(pod) {
		requests, _ := allTogether(pod)
		return requests
	}
	return resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
}

// isLarge reports whether the amounts of a pod are too many for that.
func isLarge(pod *corev1.Pod) bool {
	amounts := 0
	for i := range pod.Spec.InitContainers {
		r := &pod.Spec.InitContainers[i].Resources
		amounts += len(r.Requests) + len(r.Limits)
	}
	return amounts > maxCopied/max(1, len(pod.Spec.InitContainers))
}

// allTogether returns what all containers of a pod request and limit, as if they ran at the same time. That is no
// less than what a pod uses.
func allTogether(pod *corev1.Pod) (requests, limits corev1.ResourceList) {
	requests, limits = corev1.ResourceList{}, corev1.ResourceList{}
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			Add(requests, containers[i].Resources.Requests)
			Add(limits, containers[i].Resources.Limits)
		}
	}
	if shared := pod.Spec.Resources; shared != nil {
		Add(requests, shared.Requests)
		Add(limits, shared.Limits)
	}
	Add(requests, pod.Spec.Overhead)
	Add(limits, pod.Spec.Overhead)
	return requests, limits
}
