package daemonset

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func surgingSet(most intstr.IntOrString) *appsv1.DaemonSet {
	set := &appsv1.DaemonSet{}
	set.Spec.UpdateStrategy = appsv1.DaemonSetUpdateStrategy{
		Type:          appsv1.RollingUpdateDaemonSetStrategyType,
		RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxSurge: &most, MaxUnavailable: new(intstr.FromInt32(0))},
	}
	return set
}

func TestSurge(t *testing.T) {
	nodes := []*corev1.Node{nodeOfName("n1", nil), nodeOfName("n2", nil), nodeOfName("n3", nil), nodeOfName("n4", nil)}
	old := func(node string) *corev1.Pod { return podOn(node, "old-"+node, "old", true) }
	fresh := func(node string, ready bool) *corev1.Pod { return podOn(node, "new-"+node, "new", ready) }
	for _, c := range []struct {
		name           string
		most           intstr.IntOrString
		pods           []*corev1.Pod
		create, delete string
	}{
		{"one at a time", intstr.FromInt32(1), []*corev1.Pod{old("n1"), old("n2"), old("n3"), old("n4")}, "n1", ""},
		{"half of them", intstr.FromString("50%"), []*corev1.Pod{old("n1"), old("n2"), old("n3"), old("n4")}, "n1,n2", ""},
		{"the new one is not ready", intstr.FromInt32(1), []*corev1.Pod{old("n1"), fresh("n1", false), old("n2"), old("n3"), old("n4")}, "", ""},
		{"it is", intstr.FromInt32(1), []*corev1.Pod{old("n1"), fresh("n1", true), old("n2"), old("n3"), old("n4")}, "n2", "old-n1"},
		{"an old one that serves no client", intstr.FromInt32(1),
			[]*corev1.Pod{podOn("n4", "old-n4", "old", false), old("n1"), old("n2"), old("n3")}, "n4,n1", ""},
		{"done", intstr.FromInt32(1), []*corev1.Pod{fresh("n1", true), fresh("n2", true), fresh("n3", true), fresh("n4", true)}, "", ""},
	} {
		set, groups := surgingSet(c.most), byNode(c.pods)
		if p := place(set, sitesOf(set, nodes), groups, "new"); len(p.create)+len(p.delete) != 0 {
			t.Errorf("%s: two pods on a node are one too many: %+v", c.name, p)
		}
		p, err := surge(set, sitesOf(set, nodes), groups, "new", epoch)
		var gone []string
		for _, pod := range p.delete {
			gone = append(gone, pod.Name)
		}
		if err != nil || strings.Join(p.create, ",") != c.create || strings.Join(gone, ",") != c.delete {
			t.Errorf("%s: create %v, delete %v, %v", c.name, p.create, gone, err)
		}
	}
}

func TestOnlySurgesKeepTwo(t *testing.T) {
	sites := sitesOf(surgingSet(intstr.FromInt32(0)), []*corev1.Node{nodeOfName("n1", nil)})
	groups := byNode([]*corev1.Pod{podOn("n1", "a", "old", true), podOn("n1", "b", "new", true)})
	if p := place(surgingSet(intstr.FromInt32(0)), sites, groups, "new"); len(p.delete) != 1 || p.delete[0].Name != "b" {
		t.Errorf("without a surge: %+v", p)
	}
	three := slices.Concat(groups["n1"], []*corev1.Pod{podOn("n1", "c", "old", true)})
	if p := place(surgingSet(intstr.FromInt32(1)), sites, map[string][]*corev1.Pod{"n1": three}, "new"); len(p.delete) != 1 || p.delete[0].Name != "c" {
		t.Errorf("with a surge: %+v", p)
	}
}
