package daemonset

import (
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

var epoch = time.Unix(1_000_000, 0)

func nodeOfName(name string, change func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"disk": "ssd"}}}
	if change != nil {
		change(n)
	}
	return n
}

func podOn(node, name, revision string, ready bool) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(epoch)}}
	prepare(pod, node, revision)
	pod.Status.Phase = corev1.PodRunning
	if ready {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(epoch)}}
	}
	return pod
}

func TestEligibleNodes(t *testing.T) {
	taint := func(key string, effect corev1.TaintEffect) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: key, Effect: effect}} }
	}
	for _, c := range []struct {
		name      string
		node      func(*corev1.Node)
		run, keep bool
	}{
		{"plain", nil, true, true},
		{"without the label", func(n *corev1.Node) { n.Labels = nil }, false, false},
		{"cordoned", taint(corev1.TaintNodeUnschedulable, corev1.TaintEffectNoSchedule), true, true},
		{"unreachable", taint(corev1.TaintNodeUnreachable, corev1.TaintEffectNoExecute), true, true},
		{"reserved", taint("gpu", corev1.TaintEffectNoSchedule), false, true},
		{"being emptied", taint("gpu", corev1.TaintEffectNoExecute), false, false},
		{"discouraged", taint("gpu", corev1.TaintEffectPreferNoSchedule), true, true},
	} {
		set := &appsv1.DaemonSet{}
		set.Spec.Template.Spec.NodeSelector = map[string]string{"disk": "ssd"}
		if got := sitesOf(set, []*corev1.Node{nodeOfName("n", c.node)})[0]; got.run != c.run || got.keep != c.keep {
			t.Errorf("%s: run %v, keep %v", c.name, got.run, got.keep)
		}
	}
}

func TestPinningKeepsTheTemplatesTerms(t *testing.T) {
	pod := &corev1.Pod{}
	pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{
			{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "disk", Operator: corev1.NodeSelectorOpExists}}}, {},
		},
	}}}
	prepare(pod, "n1", "r")
	terms := pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	for i, term := range terms {
		if len(term.MatchFields) != 1 || term.MatchFields[0].Values[0] != "n1" {
			t.Errorf("term %d would let the pod go elsewhere", i)
		}
	}
	if len(terms) != 2 || len(terms[0].MatchExpressions) != 1 || nodeOf(pod) != "n1" {
		t.Errorf("terms %+v on %q", terms, nodeOf(pod))
	}
	before := len(pod.Spec.Tolerations)
	if prepare(pod, "n1", "r"); len(pod.Spec.Tolerations) != before {
		t.Error("tolerations are added twice")
	}
}

func TestPlaces(t *testing.T) {
	deleting := podOn("n4", "d", "r", true)
	at := metav1.NewTime(epoch)
	deleting.DeletionTimestamp = &at
	failed := podOn("n3", "f", "r", false)
	failed.Status.Phase = corev1.PodFailed
	nodes := []*corev1.Node{nodeOfName("n1", nil), nodeOfName("n2", nil), nodeOfName("n3", nil), nodeOfName("n4", nil)}
	p := place(&appsv1.DaemonSet{}, sitesOf(&appsv1.DaemonSet{}, nodes), byNode([]*corev1.Pod{podOn("n2", "a", "r", true), podOn("n2", "b", "r", true), failed, deleting}), "r")
	if !slices.Equal(p.create, []string{"n1"}) {
		t.Errorf("creates on %v; where a pod stops, the next one waits", p.create)
	}
	var gone []string
	for _, pod := range p.delete {
		gone = append(gone, pod.Name)
	}
	slices.Sort(gone)
	if !slices.Equal(gone, []string{"b", "f"}) {
		t.Errorf("deletes %v, want the second pod of n2 and the failed one", gone)
	}
}

func TestUpdatesKeepNodesServed(t *testing.T) {
	for _, c := range []struct {
		name       string
		most       intstr.IntOrString
		dead, done int // old pods that are not ready, nodes that have the new one
		want       int
		onDelete   bool
	}{
		{"one at a time", intstr.FromInt32(1), 0, 0, 1, false},
		{"half", intstr.FromString("50%"), 0, 0, 5, false},
		{"dead ones are free", intstr.FromInt32(1), 3, 0, 3, false},
		{"done", intstr.FromInt32(1), 0, 10, 0, false},
		{"only by hand", intstr.FromInt32(1), 0, 0, 0, true},
	} {
		set := &appsv1.DaemonSet{}
		set.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateDaemonSet{MaxUnavailable: &c.most}
		if c.onDelete {
			set.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
		}
		var nodes []*corev1.Node
		var owned []*corev1.Pod
		for i := range 10 {
			name, revision := fmt.Sprintf("n%d", i), "old"
			if i >= 10-c.done {
				revision = "new"
			}
			nodes = append(nodes, nodeOfName(name, nil))
			owned = append(owned, podOn(name, name, revision, i >= c.dead))
		}
		got, err := outdated(set, sitesOf(set, nodes), byNode(owned), "new", epoch)
		if err != nil || len(got) != c.want {
			t.Errorf("%s: deletes %d, %v; want %d", c.name, len(got), err, c.want)
		}
	}
}
