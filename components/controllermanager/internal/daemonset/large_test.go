package daemonset

import (
	"fmt"
	"runtime"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// TestLargeTemplates: a reconciliation reads the template once, in linear time, and not for each node.
func TestLargeTemplates(t *testing.T) {
	reconcile := func(requirements, nodes int) uint64 {
		set := &appsv1.DaemonSet{}
		var term corev1.NodeSelectorTerm
		for i := range requirements {
			term.MatchExpressions = append(term.MatchExpressions, corev1.NodeSelectorRequirement{Key: fmt.Sprint("key-", i), Operator: corev1.NodeSelectorOpDoesNotExist})
		}
		set.Spec.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}},
		}}
		var all []*corev1.Node
		for i := range nodes {
			all = append(all, nodeOfName(fmt.Sprint("n", i), nil))
		}
		return allocated(func() {
			sites := sitesOf(set, all)
			if p := place(set, sites, nil, ""); len(p.create) != nodes {
				t.Errorf("%d pods for %d nodes", len(p.create), nodes)
			}
			if status, _ := count(set, sites, nil, "", epoch); status.DesiredNumberScheduled != int32(nodes) {
				t.Errorf("%d wanted for %d nodes", status.DesiredNumberScheduled, nodes)
			}
		})
	}
	small, middle, large := reconcile(1000, 1), reconcile(2000, 1), reconcile(4000, 1)
	if large > 3*middle && middle > 3*small {
		t.Errorf("%d, %d, %d bytes for 1,000, 2,000 and 4,000 requirements", small, middle, large)
	}
	if many := reconcile(1000, 20); many > 2*small {
		t.Errorf("%d bytes for one node, %d for twenty", small, many)
	}
}

// allocated returns how many bytes a function allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
