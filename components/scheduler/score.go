package scheduler

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// score rates a node that fits, higher is better: room left on its fullest
// resource spreads pods, preferred node affinity and soft taints move the
// balance. Pods without requests count through the share of pod slots.
func (r *request) score(node *corev1.Node, taken *amounts) float64 {
	allocatable := node.Status.Allocatable
	fullest := max(
		share(taken.milliCPU+r.amounts.milliCPU, allocatable.Cpu().MilliValue()),
		share(taken.memory+r.amounts.memory, allocatable.Memory().Value()),
		share(taken.pods+1, allocatable.Pods().Value()),
	)
	// The share of pods breaks ties between nodes whose fullest resource is
	// the same.
	score := 100 * (1 - fullest)
	score -= share(taken.pods+1, allocatable.Pods().Value())
	score += r.preference(node)
	for i := range node.Spec.Taints {
		taint := &node.Spec.Taints[i]
		if taint.Effect == corev1.TaintEffectPreferNoSchedule && !r.tolerates(taint) {
			score -= 100
		}
	}
	return score
}

func (r *request) preference(node *corev1.Node) float64 {
	affinity := r.pod.Spec.Affinity
	if affinity == nil || affinity.NodeAffinity == nil || len(affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution) == 0 {
		return 0
	}
	terms, err := nodeaffinity.NewPreferredSchedulingTerms(affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	if err != nil {
		// A preference that cannot be parsed prefers nothing; what is
		// required has been checked by the filter.
		return 0
	}
	return float64(terms.Score(node))
}

func share(used, of int64) float64 {
	if of <= 0 {
		return 0
	}
	return float64(used) / float64(of)
}
