package scheduler

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// maxDemands bounds what each node is held against for a pod: one pod at a time is decided on, and 100,000 requirements that fit
// in a request would hold all others for seconds, again and again.
const maxDemands = 1000

// tooMany returns why a pod is not looked at, or "". It reads only how long lists are. Values do not count: a
// requirement may name thousands of nodes.
func tooMany(spec *corev1.PodSpec) (why string) {
	n := len(spec.Tolerations) + len(spec.NodeSelector)
	count := func(term *corev1.NodeSelectorTerm) { n += 1 + len(term.MatchExpressions) + len(term.MatchFields) }
	if spec.Affinity != nil && spec.Affinity.NodeAffinity != nil {
		affinity := spec.Affinity.NodeAffinity
		if required := affinity.RequiredDuringSchedulingIgnoredDuringExecution; required != nil {
			for i := range required.NodeSelectorTerms {
				count(&required.NodeSelectorTerms[i])
			}
		}
		for i := range affinity.PreferredDuringSchedulingIgnoredDuringExecution {
			count(&affinity.PreferredDuringSchedulingIgnoredDuringExecution[i].Preference)
		}
	}
	if n <= maxDemands {
		return ""
	}
	return fmt.Sprintf("the pod has %d tolerations, terms and requirements of its node, and %d are looked at.", n, maxDemands)
}
