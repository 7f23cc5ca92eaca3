package scheduler

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
)

// important gives a pod a priority, and has it run since so many minutes after noon.
func important(priority int32, minute int) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.Priority = &priority
		pod.Status.StartTime = &metav1.Time{Time: time.Date(2026, 1, 1, 12, minute, 0, 0, time.UTC)}
	}
}

func (s *Scheduler) preemptionOf(pod *corev1.Pod, budgets ...*policyv1.PodDisruptionBudget) string {
	request := newRequest(pod)
	p := s.ledger.preemptionFor(&request, budgets)
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
	request := newRequest(nominated)
	if !s.ledger.awaitsVictims(&request) {
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
	if s.ledger.awaitsVictims(&request) {
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
	if len(s.ledger.nominations) != 0 || len(s.ledger.nodes["a"].nominated) != 0 || len(s.ledger.priorities) != 0 ||
		len(s.ledger.nodes["a"].byPriority) != 0 || len(s.ledger.nodes["a"].leaving) != 0 {
		t.Errorf("left behind: %v, %v, %v", s.ledger.nominations, s.ledger.nodes["a"].nominated, s.ledger.priorities)
	}
}

// TestNominationsEnd: no room is kept free for a pod that needs none any more.
func TestNominationsEnd(t *testing.T) {
	for name, change := range map[string]func(*corev1.Pod){
		"deleted, and kept by a finalizer": func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Now()} },
		"ended":                            func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed },
		"bound elsewhere by another":       func(p *corev1.Pod) { p.Spec.NodeName = "b" },
	} {
		s, err := New(nil, Options{})
		if err != nil {
			t.Fatal(err)
		}
		s.ledger.setNode(newNode("a", nil))
		pod := newPod("p", "2", func(p *corev1.Pod) { p.Spec.SchedulerName = corev1.DefaultSchedulerName })
		s.ledger.nominate(pod, "a")
		changed := pod.DeepCopy()
		change(changed)
		rooms := s.waiting.roomsSeen()
		s.podChanged(pod, changed)
		if node, why := s.placed(newPod("other", "2", nil)); node != "a" {
			t.Errorf("%s: another pod is refused: %s", name, why)
		}
		if s.waiting.roomsSeen() == rooms {
			t.Errorf("%s: pods that wait are not tried again", name)
		}
	}
}

// TestPodThatGoesDuringItsDecision: when the informer has delivered already that a pod has gone, none leaves for it, and no room
// is kept free.
func TestPodThatGoesDuringItsDecision(t *testing.T) {
	s, err := New(nil, Options{}) // its informer knows no pod
	if err != nil {
		t.Fatal(err)
	}
	s.ledger.setNode(newNode("a", nil))
	low := newPod("low", "2", important(1, 0))
	low.Spec.NodeName = "a"
	s.ledger.observe(low)
	if _, err := s.preempt(t.Context(), newPod("gone", "2", important(10, 0)), 0); err != nil {
		t.Error(err)
	}
	if len(s.ledger.nominations) != 0 || s.ledger.pods["low"].leaving {
		t.Errorf("%v, the other pod leaves: %t", s.ledger.nominations, s.ledger.pods["low"].leaving)
	}
}

// TestNominationThatHelpsNoMore: when a more important pod has taken the room, and there is no other, the rest of it is for all.
func TestNominationThatHelpsNoMore(t *testing.T) {
	s, err := New(nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.ledger.setNode(newNode("a", nil))
	pod := newPod("nominated", "1500m", important(10, 0))
	s.ledger.nominate(pod, "a")
	s.ledger.assume(newPod("more", "1", important(11, 0)), "a")
	if _, err := s.preempt(t.Context(), pod, 0); err != nil {
		t.Error(err)
	}
	if node, why := s.placed(newPod("small", "1", important(1, 0))); node != "a" {
		t.Error(why)
	}
}

// TestNominationsThatAreOutranked: for a pod for which others leave a node, less important ones that wait for that node look for
// another one; those that are as important keep it.
func TestNominationsThatAreOutranked(t *testing.T) {
	s := schedulerOver(newNode("a", nil), newNode("b", nil))
	for name, priority := range map[string]int32{"less": 5, "as much": 10} {
		s.ledger.nominate(newPod(name, "500m", important(priority, 0)), "a")
	}
	s.ledger.nominate(newPod("elsewhere", "500m", important(5, 0)), "b")
	if !s.ledger.withdrawBelow("a", 10) || s.ledger.withdrawBelow("a", 10) {
		t.Error("the less important pod is withdrawn once")
	}
	for name, node := range map[string]string{"less": "", "as much": "a", "elsewhere": "b"} {
		if got := s.ledger.nominatedFor(types.UID(name)); got != node {
			t.Errorf("%s is nominated for %q, want %q", name, got, node)
		}
	}
}

// TestNodeThatKeepsItsVictims: a pod does not wait for those that leave a node on which it may not run any more. One that does
// not answer keeps them until somebody removes it.
func TestNodeThatKeepsItsVictims(t *testing.T) {
	s := schedulerOver(newNode("a", nil), newNode("b", nil))
	for node, minute := range map[string]int{"a": 9, "b": 3} {
		low := newPod("on-"+node, "2", important(1, minute))
		low.Spec.NodeName = node
		s.ledger.observe(low)
	}
	pod := newPod("nominated", "2", important(10, 0))
	s.ledger.nominate(pod, "a", s.ledger.pods["on-a"].pod)
	request := newRequest(pod)
	if !s.ledger.awaitsVictims(&request) {
		t.Error("it does not wait for the pod that leaves")
	}
	s.ledger.setNode(newNode("a", func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoSchedule}}
	}))
	if s.ledger.awaitsVictims(&request) {
		t.Error("it waits for a node that does not answer")
	}
	if got := s.preemptionOf(pod); got != "b: on-b" {
		t.Errorf("%q", got)
	}
}

// TestVictimsThatNeedNotLeave: when one victim cannot be deleted, or the pod has found room elsewhere, no further one is.
func TestVictimsThatNeedNotLeave(t *testing.T) {
	for name, c := range map[string]struct {
		refused   string // to be deleted
		nominated string
		want      []string // are deleted
	}{
		"all leave":                    {"", "a", []string{"first", "second", "third"}},
		"one cannot be deleted":        {"second", "a", []string{"first"}},
		"the pod has found other room": {"", "b", nil},
	} {
		t.Run(name, func(t *testing.T) {
			var deleted []string
			api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				name := path.Base(r.URL.Path)
				switch {
				case r.Method == http.MethodDelete && name == c.refused:
					w.WriteHeader(http.StatusForbidden)
					_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`))
					return
				case r.Method == http.MethodDelete:
					deleted = append(deleted, name)
				}
				_, _ = w.Write([]byte(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p"}}`))
			}))
			defer api.Close()
			cl, err := client.New(&rest.Config{Host: api.URL}, client.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer cl.CloseIdleConnections()
			s, err := New(cl, Options{Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			p := &preemption{node: "a"}
			for _, name := range []string{"first", "second", "third"} {
				victim := newPod(name, "1", func(p *corev1.Pod) { p.Spec.NodeName = "a" })
				s.ledger.observe(victim)
				p.victims = append(p.victims, victim)
			}
			pod := newPod("important", "3", important(10, 0))
			s.ledger.nominate(pod, c.nominated, p.victims...)
			s.evict(t.Context(), pod, p)
			if !slices.Equal(deleted, c.want) {
				t.Errorf("deleted: %q, want %q", deleted, c.want)
			}
			for _, victim := range p.victims {
				if s.ledger.pods[victim.UID].leaving != slices.Contains(c.want, victim.Name) {
					t.Errorf("%s leaves: %t", victim.Name, s.ledger.pods[victim.UID].leaving)
				}
			}
		})
	}
}

// TestFutilePreemptionLooksAtNoPod: what is allocated to learn that no preemption helps does not grow with the pods.
func TestFutilePreemptionLooksAtNoPod(t *testing.T) {
	futile := func(pods int) uint64 {
		s := schedulerOver(newNode("a", func(n *corev1.Node) { n.Status.Allocatable[corev1.ResourcePods] = resource.MustParse("100k") }))
		for i := range pods {
			low := newPod(fmt.Sprint("p", i), "", important(int32(i%3), 0))
			low.Spec.NodeName = "a"
			s.ledger.observe(low)
		}
		pod := newPod("large", "3", important(10, 0))
		return allocated(func() {
			if got := s.preemptionOf(pod); got != "" {
				t.Error(got)
			}
		})
	}
	if few, many := futile(10), futile(10_000); many > 2*few {
		t.Errorf("%d bytes for 10 pods, %d for 10,000", few, many)
	}
}

// TestPreemptionsWithinBudgets: of all ways to make room, those that violate the fewest budgets come first; if there is no other,
// a budget keeps no pod.
func TestPreemptionsWithinBudgets(t *testing.T) {
	s := schedulerOver(newNode("a", nil), newNode("b", nil))
	for _, r := range []struct {
		node, name, app string
		priority        int32
	}{{"a", "p", "kept", 1}, {"a", "q", "kept", 1}, {"b", "r", "other", 5}, {"b", "s", "", 3}} {
		pod := newPod(r.name, "1", important(r.priority, 0))
		pod.Spec.NodeName = r.node
		if r.app != "" {
			pod.Labels = map[string]string{"app": r.app}
		}
		s.ledger.observe(pod)
	}
	budget := func(allowed int32, app string) *policyv1.PodDisruptionBudget {
		return &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: app},
			Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}},
			Status:     policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed},
		}
	}
	elsewhere, empty := budget(0, "kept"), budget(0, "kept")
	elsewhere.Namespace, empty.Spec.Selector = "elsewhere", &metav1.LabelSelector{}
	disrupted := budget(0, "kept")
	disrupted.Status.DisruptedPods = map[string]metav1.Time{"p": {}, "q": {}}
	for name, c := range map[string]struct {
		budgets []*policyv1.PodDisruptionBudget
		cpu     string
		want    string
	}{
		"no budget":                        {nil, "1", "a: q"},
		"one that allows none":             {[]*policyv1.PodDisruptionBudget{budget(0, "kept")}, "1", "b: s"},
		"one that allows one":              {[]*policyv1.PodDisruptionBudget{budget(1, "kept")}, "1", "a: p"},
		"one that allows one of two":       {[]*policyv1.PodDisruptionBudget{budget(1, "kept")}, "2", "b: r s"},
		"no other way":                     {[]*policyv1.PodDisruptionBudget{budget(0, "kept"), budget(0, "other")}, "2", "b: r s"},
		"one of another namespace":         {[]*policyv1.PodDisruptionBudget{elsewhere}, "1", "a: q"},
		"one that selects nothing":         {[]*policyv1.PodDisruptionBudget{empty}, "1", "a: q"},
		"one that counts the pods as gone": {[]*policyv1.PodDisruptionBudget{disrupted}, "1", "a: q"},
	} {
		if got := s.preemptionOf(newPod("important", c.cpu, important(10, 0)), c.budgets...); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
