package scheduler

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/levelwire/levelwire/internal/nodeaffinity"
	"github.com/levelwire/levelwire/internal/tolerations"
)

// request is one pod's demands, worked out once and held against every node.
type request struct {
	pod         *corev1.Pod
	priority    int
	amounts     amounts
	ports       portSet // those of amounts
	tolerations tolerations.Index
	required    nodeaffinity.Required
	preferred   nodeaffinity.Preferred
}

func newRequest(pod *corev1.Pod) request {
	r := request{
		pod: pod, priority: priority(pod), amounts: amountsOf(pod), tolerations: tolerations.Of(pod.Spec.Tolerations),
		required: nodeaffinity.RequiredBy(&pod.Spec), preferred: nodeaffinity.PreferredBy(&pod.Spec),
	}
	for _, port := range r.amounts.ports {
		r.ports.add(port, 1)
	}
	return r
}

// refusal returns why the pod cannot run on the node, in the words people
// know from kubectl describe, or "" if it can.
func (r *request) refusal(candidate *account) string {
	if why := r.unfit(candidate.node); why != "" {
		return why
	}
	return r.lacking(candidate.keptFree(r))
}

// unfit is refusal by what pods that leave the node do not change.
func (r *request) unfit(node *corev1.Node) string {
	if node.DeletionTimestamp != nil {
		return "node(s) were being deleted"
	}
	if node.Spec.Unschedulable && !r.tolerations.Tolerate(&corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}) {
		return "node(s) were unschedulable"
	}
	for i := range node.Spec.Taints {
		taint := &node.Spec.Taints[i]
		if taint.Effect != corev1.TaintEffectPreferNoSchedule && !r.tolerations.Tolerate(taint) {
			return fmt.Sprintf("node(s) had untolerated taint {%s: %s}", taint.Key, taint.Value)
		}
	}
	if !r.required.Matches(node) {
		return "node(s) didn't match Pod's node affinity/selector"
	}
	return ""
}

// lacking names the first resource the node does not have enough of.
func (r *request) lacking(candidate *account) string {
	offers, taken := &candidate.offers, &candidate.taken
	if taken.pods+1 > offers.pods {
		return "Too many pods"
	}
	if r.amounts.milliCPU > 0 && taken.milliCPU+r.amounts.milliCPU > offers.milliCPU {
		return "Insufficient cpu"
	}
	if r.amounts.memory > 0 && taken.memory+r.amounts.memory > offers.memory {
		return "Insufficient memory"
	}
	if r.amounts.ephemeral > 0 && taken.ephemeral+r.amounts.ephemeral > offers.ephemeral {
		return "Insufficient ephemeral-storage"
	}
	for name, want := range r.amounts.extended {
		if want > 0 && taken.extended[name]+want > offers.extended[name] {
			return "Insufficient " + string(name)
		}
	}
	if r.ports.meets(candidate.ports) {
		return "node(s) didn't have free ports for the requested pod ports"
	}
	return ""
}

// summarize turns refusals by reason into the message of a FailedScheduling
// event: "0/3 nodes are available: 2 Insufficient cpu, 1 ...".
func summarize(nodes int, refusals map[string]int) string {
	if nodes == 0 {
		return "no nodes available to schedule pods"
	}
	parts := make([]string, 0, len(refusals))
	for reason, count := range refusals {
		parts = append(parts, fmt.Sprintf("%d %s", count, reason))
	}
	slices.Sort(parts)
	return fmt.Sprintf("0/%d nodes are available: %s.", nodes, strings.Join(parts, ", "))
}
