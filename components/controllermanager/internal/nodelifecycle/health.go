package nodelifecycle

import (
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// heartbeats remembers when each node was last seen to change its lease or
// its status, by the controller's clock. It is safe for concurrent use.
type heartbeats struct {
	mu   sync.Mutex
	seen map[string]heartbeat
}

type heartbeat struct {
	sign string
	at   time.Time
}

// observe notes a node's sign of life and returns when it last changed.
func (h *heartbeats) observe(node, sign string, now time.Time) time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	last, ok := h.seen[node]
	if !ok || last.sign != sign {
		last = heartbeat{sign, now}
		h.seen[node] = last
	}
	return last.at
}

func (h *heartbeats) forget(node string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.seen, node)
}

// signOf is what changes when a node gives a sign of life.
func signOf(lease string, node *corev1.Node) string {
	sign := lease
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Type == corev1.NodeReady && c.Reason != unknownReason {
			sign += "/" + c.LastHeartbeatTime.UTC().Format(time.RFC3339)
		}
	}
	return sign
}

const (
	unknownReason  = "NodeStatusUnknown"
	unknownMessage = "Kubelet stopped posting node status."
	neverReason    = "NodeStatusNeverUpdated"
	neverMessage   = "Kubelet never posted node status."
)

// kubeletConditions are those a silent kubelet cannot vouch for any more.
var kubeletConditions = []corev1.NodeConditionType{
	corev1.NodeReady, corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure,
}

// unknown returns the conditions of a node that is silent: all of the
// kubelet's are Unknown.
func unknown(conditions []corev1.NodeCondition, now time.Time) []corev1.NodeCondition {
	result := slices.Clone(conditions)
	at := metav1.NewTime(now)
	for _, kind := range kubeletConditions {
		i := slices.IndexFunc(result, func(c corev1.NodeCondition) bool { return c.Type == kind })
		switch {
		case i < 0:
			result = append(result, corev1.NodeCondition{
				Type: kind, Status: corev1.ConditionUnknown, Reason: neverReason, Message: neverMessage, LastTransitionTime: at,
			})
		case result[i].Status != corev1.ConditionUnknown:
			result[i].Status, result[i].Reason, result[i].Message = corev1.ConditionUnknown, unknownReason, unknownMessage
			result[i].LastTransitionTime = at
		}
	}
	return result
}

func readyStatus(node *corev1.Node) corev1.ConditionStatus {
	for i := range node.Status.Conditions {
		if node.Status.Conditions[i].Type == corev1.NodeReady {
			return node.Status.Conditions[i].Status
		}
	}
	return corev1.ConditionUnknown
}

// conditionTaints maps conditions that are true to the taint they bring.
var conditionTaints = map[corev1.NodeConditionType]string{
	corev1.NodeMemoryPressure:     corev1.TaintNodeMemoryPressure,
	corev1.NodeDiskPressure:       corev1.TaintNodeDiskPressure,
	corev1.NodePIDPressure:        corev1.TaintNodePIDPressure,
	corev1.NodeNetworkUnavailable: corev1.TaintNodeNetworkUnavailable,
}

// ours are the taints that the node's state alone decides.
var ours = map[string]bool{
	corev1.TaintNodeNotReady: true, corev1.TaintNodeUnreachable: true, corev1.TaintNodeUnschedulable: true,
	corev1.TaintNodeMemoryPressure: true, corev1.TaintNodeDiskPressure: true,
	corev1.TaintNodePIDPressure: true, corev1.TaintNodeNetworkUnavailable: true,
}

// taintsOf returns the taints a node should have: those of others as they
// are, then ours by its conditions. A taint that stays keeps its time. With spared, pods do
// not leave a node that is not ready.
func taintsOf(node *corev1.Node, spared bool, now time.Time) []corev1.Taint {
	var taints []corev1.Taint
	for _, taint := range node.Spec.Taints {
		if !ours[taint.Key] {
			taints = append(taints, taint)
		}
	}
	add := func(key string, effect corev1.TaintEffect) {
		taint := corev1.Taint{Key: key, Effect: effect}
		if spared && isLostTaint(&taint) {
			return
		}
		for _, old := range node.Spec.Taints {
			if old.Key == key && old.Effect == effect {
				taint = old
			}
		}
		if taint.TimeAdded == nil && effect == corev1.TaintEffectNoExecute {
			at := metav1.NewTime(now)
			taint.TimeAdded = &at
		}
		taints = append(taints, taint)
	}
	switch readyStatus(node) {
	case corev1.ConditionFalse:
		add(corev1.TaintNodeNotReady, corev1.TaintEffectNoSchedule)
		add(corev1.TaintNodeNotReady, corev1.TaintEffectNoExecute)
	case corev1.ConditionUnknown:
		add(corev1.TaintNodeUnreachable, corev1.TaintEffectNoSchedule)
		add(corev1.TaintNodeUnreachable, corev1.TaintEffectNoExecute)
	}
	for i := range node.Status.Conditions {
		condition := &node.Status.Conditions[i]
		if key := conditionTaints[condition.Type]; key != "" && condition.Status == corev1.ConditionTrue {
			add(key, corev1.TaintEffectNoSchedule)
		}
	}
	if node.Spec.Unschedulable {
		add(corev1.TaintNodeUnschedulable, corev1.TaintEffectNoSchedule)
	}
	return taints
}

// sameTaints ignores order and times.
func sameTaints(a, b []corev1.Taint) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(x corev1.Taint) bool {
		return !slices.ContainsFunc(b, func(y corev1.Taint) bool { return x.MatchTaint(&y) && x.Value == y.Value })
	})
}
