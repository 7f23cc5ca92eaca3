package scheduler

import corev1 "k8s.io/api/core/v1"

// score rates a node that fits, higher is better: room left on its fullest
// resource spreads pods, preferred node affinity and soft taints move the
// balance. Pods without requests count through the share of pod slots.
func (r *request) score(candidate *account) float64 {
	node, offers, taken := candidate.node, &candidate.offers, &candidate.taken
	pods := share(taken.pods+1, offers.pods)
	fullest := max(
		share(taken.milliCPU+r.amounts.milliCPU, offers.milliCPU),
		share(taken.memory+r.amounts.memory, offers.memory),
		pods,
	)
	// The share of pods breaks ties between nodes whose fullest resource is
	// the same.
	score := 100 * (1 - fullest)
	score -= pods
	score += float64(r.preferred.Score(node))
	for i := range node.Spec.Taints {
		taint := &node.Spec.Taints[i]
		if taint.Effect == corev1.TaintEffectPreferNoSchedule && !r.tolerations.Tolerate(taint) {
			score -= 100
		}
	}
	return score
}

func share(used, of int64) float64 {
	if of <= 0 {
		return 0
	}
	return float64(used) / float64(of)
}
