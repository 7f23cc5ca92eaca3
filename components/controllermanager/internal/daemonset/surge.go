package daemonset

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/levelwire/levelwire/components/controllermanager/internal/pods"
)

// current reports whether a pod is of the revision that all are to have.
func current(pod *corev1.Pod, revision string) bool {
	return pod.Labels[appsv1.DefaultDaemonSetUniqueLabelKey] == revision
}

// surges reports whether the set updates by starting the new pod of a node
// before the old one stops (KEP-1591).
func surges(set *appsv1.DaemonSet) bool {
	rolling := set.Spec.UpdateStrategy.RollingUpdate
	if set.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType || rolling == nil || rolling.MaxSurge == nil {
		return false
	}
	return *rolling.MaxSurge != intstr.FromInt32(0) && *rolling.MaxSurge != intstr.FromString("0%")
}

// surge is the step of such an update: an old pod goes when the new one beside
// it is available; new ones come where the old one is unavailable anyhow, and
// besides on as many nodes as maxSurge allows.
func surge(set *appsv1.DaemonSet, sites []site, groups map[string][]*corev1.Pod, revision string, now time.Time) (plan, error) {
	var p plan
	var wanted, surging int
	var waiting []string
	for _, site := range sites {
		if !site.run {
			continue
		}
		wanted++
		old, fresh := pair(groups[site.node.Name], revision)
		switch {
		case old == nil:
		case fresh == nil && !isAvailable(set, old, now):
			p.create = append(p.create, site.node.Name)
		case fresh == nil:
			waiting = append(waiting, site.node.Name)
		case isAvailable(set, fresh, now):
			p.delete = append(p.delete, old)
		default:
			surging++
		}
	}
	limit, err := intstr.GetScaledValueFromIntOrPercent(set.Spec.UpdateStrategy.RollingUpdate.MaxSurge, wanted, true)
	if err != nil {
		return plan{}, fmt.Errorf("maxSurge: %w", err)
	}
	slices.Sort(waiting)
	p.create = append(p.create, waiting[:min(max(limit-surging, 0), len(waiting))]...)
	slices.SortFunc(p.delete, func(a, b *corev1.Pod) int { return cmp.Compare(nodeOf(a), nodeOf(b)) })
	return p, nil
}

// pair returns a node's living pods: one of an old revision, and one of the
// new.
func pair(group []*corev1.Pod, revision string) (old, fresh *corev1.Pod) {
	for _, pod := range group {
		switch {
		case !pods.Active(pod):
		case current(pod, revision):
			fresh = pod
		default:
			old = pod
		}
	}
	return old, fresh
}

func isAvailable(set *appsv1.DaemonSet, pod *corev1.Pod, now time.Time) bool {
	available, _ := pods.Available(pod, set.Spec.MinReadySeconds, now)
	return available
}
