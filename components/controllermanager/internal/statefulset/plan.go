package statefulset

import (
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/levelwire/levelwire/components/controllermanager/internal/pods"
)

// plan is one step for a set.
type plan struct {
	create []int // ordinals
	delete []*corev1.Pod
}

func (p plan) empty() bool { return len(p.create)+len(p.delete) == 0 }

func replicas(set *appsv1.StatefulSet) int {
	if set.Spec.Replicas == nil {
		return 1
	}
	return int(*set.Spec.Replicas)
}

// firstOrdinal is where the numbers begin (KEP-3335).
func firstOrdinal(set *appsv1.StatefulSet) int {
	if set.Spec.Ordinals == nil {
		return 0
	}
	return int(set.Spec.Ordinals.Start)
}

// ordinalOf reads a pod's number from its name; false if it is no name of the
// set's.
func ordinalOf(set *appsv1.StatefulSet, pod *corev1.Pod) (int, bool) {
	text, ok := strings.CutPrefix(pod.Name, set.Name+"-")
	n, err := strconv.Atoi(text)
	return n, ok && err == nil && n >= 0 && strconv.Itoa(n) == text
}

// slots are the places of a set's pods, by ordinals from its first one on: as many as the set wants, which may be two
// billions. A walk ends soon after it has met more empty ones than it can fill.
type slots struct {
	n    int
	pods map[int]*corev1.Pod // nil: empty
}

// next decides the step. update is the name of the revision that all pods are
// to get.
func next(set *appsv1.StatefulSet, owned []*corev1.Pod, update string, now time.Time) plan {
	first, s := firstOrdinal(set), slots{n: replicas(set), pods: map[int]*corev1.Pod{}}
	var surplus []*corev1.Pod
	for _, pod := range owned {
		n, ok := ordinalOf(set, pod)
		switch {
		case !ok:
		case n >= first && n < first+s.n:
			s.pods[n-first] = pod
		default:
			surplus = append(surplus, pod)
		}
	}
	if parallel(set) {
		return nextParallel(set, s, surplus, update, now)
	}
	return nextOrdered(set, s, surplus, update, now)
}

func parallel(set *appsv1.StatefulSet) bool {
	return set.Spec.PodManagementPolicy == appsv1.ParallelPodManagement
}

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

// healthy pods let the next one take its turn.
func healthy(set *appsv1.StatefulSet, pod *corev1.Pod, now time.Time) bool {
	available, _ := pods.Available(pod, set.Spec.MinReadySeconds, now)
	return pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil && available
}

// nextOrdered does one thing at a time: the lowest missing pod, when those
// before it are healthy; then the highest surplus one; then updates.
func nextOrdered(set *appsv1.StatefulSet, s slots, surplus []*corev1.Pod, update string, now time.Time) plan {
	for i := range s.n {
		pod := s.pods[i]
		switch {
		case pod == nil:
			return plan{create: []int{firstOrdinal(set) + i}}
		case pod.DeletionTimestamp != nil:
			return plan{}
		case ended(pod):
			return plan{delete: []*corev1.Pod{pod}}
		case !healthy(set, pod, now):
			// An update may replace a pod that will never be healthy.
			if len(surplus) > 0 {
				return plan{}
			}
			return outdated(set, s, update, now)
		}
	}
	if len(surplus) > 0 {
		last := slices.MaxFunc(surplus, func(a, b *corev1.Pod) int {
			x, _ := ordinalOf(set, a)
			y, _ := ordinalOf(set, b)
			return x - y
		})
		if last.DeletionTimestamp != nil {
			return plan{}
		}
		return plan{delete: []*corev1.Pod{last}}
	}
	return outdated(set, s, update, now)
}

// nextParallel creates and deletes everything at once, up to pods.Burst; updates stay in order.
func nextParallel(set *appsv1.StatefulSet, s slots, surplus []*corev1.Pod, update string, now time.Time) plan {
	var p plan
	for i := 0; i < s.n && len(p.create)+len(p.delete) < pods.Burst; i++ {
		pod := s.pods[i]
		switch {
		case pod == nil:
			p.create = append(p.create, firstOrdinal(set)+i)
		case pod.DeletionTimestamp == nil && ended(pod):
			p.delete = append(p.delete, pod)
		}
	}
	for _, pod := range surplus {
		if pod.DeletionTimestamp == nil && len(p.create)+len(p.delete) < pods.Burst {
			p.delete = append(p.delete, pod)
		}
	}
	if !p.empty() {
		return p
	}
	return outdated(set, s, update, now)
}

// outdated deletes the highest pod of an old revision, down to the partition,
// once those above it are healthy. Created anew it gets the new revision.
func outdated(set *appsv1.StatefulSet, s slots, update string, now time.Time) plan {
	if set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType {
		return plan{}
	}
	for i := s.n - 1; i >= max(partition(set)-firstOrdinal(set), 0); i-- {
		pod := s.pods[i]
		switch {
		case pod == nil || pod.DeletionTimestamp != nil:
			return plan{}
		case pod.Labels[appsv1.StatefulSetRevisionLabel] != update:
			return plan{delete: []*corev1.Pod{pod}}
		case !healthy(set, pod, now):
			return plan{}
		}
	}
	return plan{}
}

func partition(set *appsv1.StatefulSet) int {
	rolling := set.Spec.UpdateStrategy.RollingUpdate
	if rolling == nil || rolling.Partition == nil {
		return 0
	}
	return int(*rolling.Partition)
}

// revisionFor is which revision a pod that is created now gets: below the
// partition the one that the set had, which is update if there was none.
func revisionFor(set *appsv1.StatefulSet, ordinal int, update string) string {
	old := set.Status.CurrentRevision
	if set.Spec.UpdateStrategy.Type != appsv1.OnDeleteStatefulSetStrategyType && old != "" && ordinal < partition(set) {
		return old
	}
	return update
}
