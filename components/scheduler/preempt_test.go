package scheduler

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// important gives a pod a priority, and has it run since so many minutes after noon.
func important(priority int32, minute int) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.Priority = &priority
		pod.Status.StartTime = &metav1.Time{Time: time.Date(2026, 1, 1, 12, minute, 0, 0, time.UTC)}
	}
}

func (s *Scheduler) preemptionOf(pod *corev1.Pod) string {
	request := newRequest(pod)
	p := s.ledger.preemptionFor(&request)
	if p == nil {
		return ""
	}
	var names []string
	for _, victim := range p.victims {
		names = append(names, victim.Name)
	}
	slices.Sort(names)
	return p.node + ": " + strings.Join(names, " ")
}

// TestPreemptions: of all ways to make room by less important pods, the one that does the least harm is taken. Nodes have two
// processors and room for four pods.
func TestPreemptions(t *testing.T) {
	type running struct {
		node, name, cpu string
		change          func(*corev1.Pod)
	}
	cordoned := newNode("a", func(n *corev1.Node) { n.Spec.Unschedulable = true })
	for name, c := range map[string]struct {
		nodes   []*corev1.Node
		running []running
		cpu     string
		want    string
	}{
		"nothing less important":                      {nil, []running{{"a", "p", "2", important(10, 0)}, {"b", "q", "2", important(11, 0)}}, "1", ""},
		"no room even without them":                   {nil, []running{{"a", "p", "1", important(1, 0)}, {"a", "q", "1", important(10, 0)}, {"b", "r", "2", important(10, 0)}}, "2", ""},
		"only what has to leave":                      {nil, []running{{"a", "p", "1", important(1, 0)}, {"a", "q", "500m", important(2, 0)}, {"a", "r", "500m", important(3, 0)}, {"b", "s", "2", important(10, 0)}}, "1", "a: p"},
		"the lowest highest priority":                 {nil, []running{{"a", "p", "2", important(5, 0)}, {"b", "q", "1", important(4, 0)}, {"b", "r", "1", important(4, 0)}}, "2", "b: q r"},
		"then the lowest sum":                         {nil, []running{{"a", "p", "1", important(5, 0)}, {"a", "q", "1", important(4, 0)}, {"b", "r", "1", important(5, 0)}, {"b", "s", "1", important(1, 0)}}, "2", "b: r s"},
		"fewer":                                       {nil, []running{{"a", "p", "1", important(5, 0)}, {"a", "q", "1", important(5, 0)}, {"b", "r", "2", important(5, 0)}}, "2", "b: r"},
		"then what began last":                        {nil, []running{{"a", "p", "2", important(5, 3)}, {"b", "q", "2", important(5, 9)}}, "2", "b: q"},
		"then the name":                               {nil, []running{{"a", "p", "2", important(5, 3)}, {"b", "q", "2", important(5, 3)}}, "2", "a: p"},
		"of pods as important, those that began last": {nil, []running{{"a", "p", "1", important(5, 3)}, {"a", "q", "1", important(5, 9)}, {"b", "r", "2", important(10, 0)}}, "1", "a: q"},
		"a node on which it may not run":              {[]*corev1.Node{cordoned}, []running{{"a", "p", "2", important(1, 0)}}, "1", ""},
		"pods of a node that is gone":                 {[]*corev1.Node{newNode("b", nil)}, []running{{"a", "p", "2", important(1, 0)}, {"b", "q", "2", important(10, 0)}}, "1", ""},
	} {
		if c.nodes == nil {
			c.nodes = []*corev1.Node{newNode("a", nil), newNode("b", nil)}
		}
		s := schedulerOver(c.nodes...)
		for _, r := range c.running {
			pod := newPod(r.name, r.cpu, r.change)
			pod.Spec.NodeName = r.node
			s.ledger.observe(pod)
		}
		if got := s.preemptionOf(newPod("important", c.cpu, important(10, 0))); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestNominations: the room for which pods leave is kept free for the pod for which they do, from those that are not more
// important.
func TestNominations(t *testing.T) {
	s := schedulerOver(newNode("a", nil))
	low := newPod("low", "2", important(1, 0))
	low.Spec.NodeName = "a"
	s.ledger.observe(low)
	nominated := newPod("nominated", "1500m", important(10, 0))
	if got := s.preemptionOf(nominated); got != "a: low" {
		t.Fatalf("%q", got)
	}
	s.ledger.nominate(nominated, "a", low)
	if !s.ledger.awaitsVictims(nominated) {
		t.Error("it does not wait for the pod that is about to leave")
	}
	fits := func(what string, pod *corev1.Pod, want bool) {
		t.Helper()
		if node, why := s.placed(pod); (node == "a") != want {
			t.Errorf("%s: %q, %s", what, node, why)
		}
	}
	fits("while the victim is there", nominated, false)
	s.ledger.release(low.UID)
	if s.ledger.awaitsVictims(nominated) {
		t.Error("it waits for a pod that has left")
	}
	fits("the nominated pod", nominated, true)
	fits("one that is as important", newPod("same", "1", important(10, 0)), false)
	fits("one in the room beside it", newPod("small", "500m", important(1, 0)), true)
	fits("a more important one", newPod("more", "2", important(11, 0)), true)

	s.ledger.assume(nominated, "a")
	fits("one beside it, now that it is placed", newPod("small", "500m", important(1, 0)), true)
	fits("one too many", newPod("same", "1", important(10, 0)), false)
	s.ledger.release(nominated.UID)
	fits("all of it, now that it is gone", newPod("all", "2", important(1, 0)), true)

	s.ledger.nominate(newPod("gone", "2", important(10, 0)), "a")
	if freed := s.ledger.release("gone"); !freed {
		t.Error("a nominated pod that goes gives no room back")
	}
	if len(s.ledger.nominations) != 0 || len(s.ledger.nodes["a"].nominated) != 0 || len(s.ledger.priorities) != 0 {
		t.Errorf("left behind: %v, %v, %v", s.ledger.nominations, s.ledger.nodes["a"].nominated, s.ledger.priorities)
	}
}
