package pods

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Active reports whether the pod counts for its owner: it has not ended and is
// not being deleted.
func Active(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}

// readySince returns since when the pod has been Ready, and whether it is.
func readySince(pod *corev1.Pod) (time.Time, bool) {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady {
			return c.LastTransitionTime.Time, c.Status == corev1.ConditionTrue
		}
	}
	return time.Time{}, false
}

// Ready reports whether the pod's Ready condition is true.
func Ready(pod *corev1.Pod) bool {
	_, ready := readySince(pod)
	return ready
}

// Available reports whether the pod has been Ready for minReadySeconds, and if
// it is Ready but has not, how long that will take yet.
func Available(pod *corev1.Pod, minReadySeconds int32, now time.Time) (available bool, in time.Duration) {
	since, ready := readySince(pod)
	if !ready {
		return false, 0
	}
	left := since.Add(time.Duration(minReadySeconds) * time.Second).Sub(now)
	if minReadySeconds == 0 || left <= 0 {
		return true, 0
	}
	return false, left
}

// SortForDeletion puts first the pods whose loss costs least: those without a
// node, pending, not ready, cheap by annotation, crowded on their node, ready
// for a shorter time, restarted more often, created later.
func SortForDeletion(pods []*corev1.Pod) {
	perNode := map[string]int{}
	for _, pod := range pods {
		perNode[pod.Spec.NodeName]++
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(
			falseFirst(a.Spec.NodeName != "", b.Spec.NodeName != ""),
			cmp.Compare(phaseRank(a), phaseRank(b)),
			falseFirst(Ready(a), Ready(b)),
			cmp.Compare(deletionCost(a), deletionCost(b)),
			cmp.Compare(perNode[b.Spec.NodeName], perNode[a.Spec.NodeName]),
			laterReadyFirst(a, b),
			cmp.Compare(restarts(b), restarts(a)),
			b.CreationTimestamp.Compare(a.CreationTimestamp.Time),
			cmp.Compare(a.Name, b.Name),
		)
	})
}

func falseFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

func phaseRank(pod *corev1.Pod) int {
	switch pod.Status.Phase {
	case corev1.PodRunning:
		return 2
	case corev1.PodUnknown:
		return 1
	}
	return 0
}

func laterReadyFirst(a, b *corev1.Pod) int {
	sinceA, readyA := readySince(a)
	sinceB, readyB := readySince(b)
	if !readyA || !readyB {
		return 0
	}
	return sinceB.Compare(sinceA)
}

func restarts(pod *corev1.Pod) (most int32) {
	for i := range pod.Status.ContainerStatuses {
		most = max(most, pod.Status.ContainerStatuses[i].RestartCount)
	}
	return most
}

// deletionCost reads the annotation controller.kubernetes.io/pod-deletion-cost
// (KEP-2255); what is not a number counts as 0.
func deletionCost(pod *corev1.Pod) int {
	var cost int
	sign := 1
	text := pod.Annotations[corev1.PodDeletionCost]
	if len(text) > 0 && text[0] == '-' {
		sign, text = -1, text[1:]
	}
	for _, c := range text {
		if c < '0' || c > '9' || cost > 1<<31 {
			return 0
		}
		cost = cost*10 + int(c-'0')
	}
	return sign * cost
}
