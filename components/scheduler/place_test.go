package scheduler

import (
	"fmt"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func newNode(name string, change func(*corev1.Node)) *corev1.Node {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
		Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("4Gi"), corev1.ResourcePods: resource.MustParse("4"),
		}},
	}
	if change != nil {
		change(node)
	}
	return node
}

func newPod(name, cpu string, change func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}},
	}
	if cpu != "" {
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	}
	if change != nil {
		change(pod)
	}
	return pod
}

// placed is what place says of a pod.
func (s *Scheduler) placed(pod *corev1.Pod) (node, why string) {
	request := newRequest(pod)
	return s.place(&request)
}

func schedulerOver(nodes ...*corev1.Node) *Scheduler {
	s := &Scheduler{ledger: newLedger()}
	for _, node := range nodes {
		s.ledger.setNode(node)
	}
	return s
}

func TestPlaceRefusesWithTheReason(t *testing.T) {
	tainted := func(node *corev1.Node) {
		node.Spec.Taints = []corev1.Taint{{Key: "gpu", Value: "yes", Effect: corev1.TaintEffectNoSchedule}}
	}
	cases := map[string]struct {
		node *corev1.Node
		pod  *corev1.Pod
		want string // "" for: it fits
	}{
		"fits":              {newNode("n", nil), newPod("p", "2", nil), ""},
		"too little cpu":    {newNode("n", nil), newPod("p", "2001m", nil), "0/1 nodes are available: 1 Insufficient cpu."},
		"cordoned":          {newNode("n", func(n *corev1.Node) { n.Spec.Unschedulable = true }), newPod("p", "", nil), "0/1 nodes are available: 1 node(s) were unschedulable."},
		"untolerated taint": {newNode("n", tainted), newPod("p", "", nil), "0/1 nodes are available: 1 node(s) had untolerated taint {gpu: yes}."},
		"tolerated taint": {newNode("n", tainted), newPod("p", "", func(p *corev1.Pod) {
			p.Spec.Tolerations = []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}}
		}), ""},
		"tolerated for another value": {newNode("n", tainted), newPod("p", "", func(p *corev1.Pod) {
			p.Spec.Tolerations = []corev1.Toleration{{Key: "gpu", Value: "no"}}
		}), "0/1 nodes are available: 1 node(s) had untolerated taint {gpu: yes}."},
		"node selector": {newNode("n", nil), newPod("p", "", func(p *corev1.Pod) {
			p.Spec.NodeSelector = map[string]string{"disk": "fast"}
		}), "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."},
		"extended resource": {newNode("n", nil), newPod("p", "", func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"example.com/gpu": resource.MustParse("1")}
		}), "0/1 nodes are available: 1 Insufficient example.com/gpu."},
	}
	for name, c := range cases {
		node, why := schedulerOver(c.node).placed(c.pod)
		if why != c.want || (node == "n") != (c.want == "") {
			t.Errorf("%s: %q, %q; want %q", name, node, why, c.want)
		}
	}
	if _, why := schedulerOver().placed(newPod("p", "", nil)); why != "no nodes available to schedule pods" {
		t.Errorf("without nodes: %q", why)
	}
}

func TestPlaceSpreadsAndNeverOverfills(t *testing.T) {
	s := schedulerOver(newNode("a", nil), newNode("b", nil))
	perNode := map[string]int{}
	for i := range 8 {
		pod := newPod(fmt.Sprint(i), "400m", nil)
		node, why := s.placed(pod)
		if node == "" {
			t.Fatalf("pod %d: %s", i, why)
		}
		s.ledger.assume(pod, node)
		perNode[node]++
	}
	if perNode["a"] != 4 || perNode["b"] != 4 {
		t.Errorf("placed %v", perNode)
	}
	if node, why := s.placed(newPod("last", "100m", nil)); why != "0/2 nodes are available: 2 Too many pods." {
		t.Errorf("a ninth pod: %q, %q", node, why)
	}
	s.ledger.release("0")
	if node, why := s.placed(newPod("last", "400m", nil)); node == "" {
		t.Errorf("after a release: %s", why)
	}
}

func TestHostPortsCollide(t *testing.T) {
	s := schedulerOver(newNode("a", nil))
	withPort := func(name, ip string) *corev1.Pod {
		return newPod(name, "", func(p *corev1.Pod) {
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80, HostIP: ip, Protocol: corev1.ProtocolTCP}}
		})
	}
	s.ledger.assume(withPort("first", "10.0.0.1"), "a")
	if node, _ := s.placed(withPort("other address", "10.0.0.2")); node == "" {
		t.Error("another address collides")
	}
	if node, _ := s.placed(withPort("every address", "")); node != "" {
		t.Error("every address does not collide with one")
	}
	s.ledger.release("first")
	if node, _ := s.placed(withPort("every address", "")); node == "" {
		t.Error("the port was not given back")
	}
}

// TestHostPortsOfInitContainers: those of a sidecar collide, and those of a container that ends before the others begin do not.
func TestHostPortsOfInitContainers(t *testing.T) {
	s := schedulerOver(newNode("a", nil))
	always := corev1.ContainerRestartPolicyAlways
	withInit := func(name string, policy *corev1.ContainerRestartPolicy) *corev1.Pod {
		return newPod(name, "", func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "init", RestartPolicy: policy, Ports: []corev1.ContainerPort{{HostPort: 80, Protocol: corev1.ProtocolTCP}}}}
		})
	}
	s.ledger.assume(withInit("ended", nil), "a")
	if node, why := s.placed(withInit("first", &always)); node == "" {
		t.Errorf("a container that has ended keeps its port: %s", why)
	}
	s.ledger.assume(withInit("first", &always), "a")
	if node, _ := s.placed(withInit("second", &always)); node != "" {
		t.Error("two sidecars have one port of the node")
	}
}

func TestFailedBindingGivesTheRoomBackOnce(t *testing.T) {
	l := newLedger()
	l.setNode(newNode("a", nil))
	pod := newPod("p", "1", nil)
	bound := pod.DeepCopy()
	bound.Spec.NodeName = "a"

	l.assume(pod, "a")
	l.observe(bound) // the binding did reach the server
	l.releaseAssumed(pod.UID)
	if !l.charged(pod.UID) {
		t.Error("an observed pod was given back")
	}
	bound.Status.Phase = corev1.PodSucceeded
	l.observe(bound)
	if l.charged(pod.UID) {
		t.Error("a pod that has ended holds room")
	}
}

// A binding that was observed while another decision was made about the same
// pod is not replaced by that decision, nor taken back when it fails.
func TestObservedPodIsNotAssumed(t *testing.T) {
	l := newLedger()
	l.setNode(newNode("a", nil))
	l.setNode(newNode("b", nil))
	pod := newPod("p", "1", nil)
	bound := pod.DeepCopy()
	bound.Spec.NodeName = "a"
	l.observe(bound)
	if l.assume(pod, "b") {
		t.Error("a pod that has a node was given another")
	}
	if l.releaseAssumed(pod.UID) || l.pods[pod.UID].node != "a" {
		t.Errorf("%+v, want it on a", l.pods[pod.UID])
	}
}

// Room that appears between the decision about a pod and its waiting must
// not be missed: nothing else may happen for a long time.
func TestRoomThatAppearsMeanwhileIsNotMissed(t *testing.T) {
	s, err := New(nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	pod := newPod("p", "1", nil)
	rooms := s.waiting.roomsSeen()
	_, why := s.placed(pod)
	s.retryWaiting() // a node came
	if _, err := s.postpone(t.Context(), pod, why, rooms, false); err != nil {
		t.Fatal(err)
	}
	if s.loop.Stats().Queue.Depth != 1 {
		t.Error("the pod sleeps although there is room")
	}
}

// Whatever takes a pod off a node says that there is room.
func TestRoomIsAnnounced(t *testing.T) {
	bound := newPod("p", "1", func(p *corev1.Pod) { p.Spec.NodeName = "a" })
	done := newPod("p", "1", func(p *corev1.Pod) { p.Spec.NodeName, p.Status.Phase = "a", corev1.PodSucceeded })
	smaller := newPod("p", "500m", func(p *corev1.Pod) { p.Spec.NodeName = "a" })
	for name, c := range map[string]struct {
		do   func(*ledger) bool
		want bool
	}{
		"ends":           {func(l *ledger) bool { return l.observe(done) }, true},
		"goes":           {func(l *ledger) bool { return l.release(bound.UID) }, true},
		"shrinks":        {func(l *ledger) bool { return l.observe(smaller) }, true},
		"shown again":    {func(l *ledger) bool { return l.observe(bound) }, false},
		"another goes":   {func(l *ledger) bool { return l.release("another") }, false},
		"a late failure": {func(l *ledger) bool { return l.releaseAssumed(bound.UID) }, false},
	} {
		l := newLedger()
		l.observe(bound)
		if got := c.do(l); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// Whatever comes in whatever order, the ledger's sums are those of its pods.
func TestLedgerSumsStayTrue(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	l := newLedger()
	for range 20_000 {
		pod := newPod(fmt.Sprint(random.IntN(50)), fmt.Sprintf("%dm", random.IntN(500)), nil)
		node := fmt.Sprint("n", random.IntN(4))
		switch random.IntN(7) {
		case 0:
			l.assume(pod, node)
		case 1, 2:
			pod.Spec.NodeName = node
			l.observe(pod)
		case 3:
			l.release(pod.UID)
		case 4:
			l.releaseAssumed(pod.UID)
		case 5:
			l.setNode(newNode(node, nil))
		case 6:
			l.removeNode(node)
		}
	}
	sums := map[string]int64{}
	for _, c := range l.pods {
		sums[c.node] += c.amounts.milliCPU
	}
	for name, a := range l.nodes {
		if a.taken.milliCPU != sums[name] {
			t.Errorf("%s: %d taken, its pods sum up to %d", name, a.taken.milliCPU, sums[name])
		}
	}
}

// A pod that is like one that was refused is refused without a look at the nodes, until
// room appears or the nodes are others; one that asks for something else is looked at.
func TestRefusalsAreShared(t *testing.T) {
	s := schedulerOver(newNode("a", nil))
	first, why := s.decide(newPod("first", "3", nil), 0)
	if first != "" || why == "" {
		t.Fatalf("a node for too large a pod: %q", first)
	}
	large := newNode("a", func(n *corev1.Node) { n.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("8") })
	s.ledger.setNode(large) // in a way that no handler has announced as room
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		node string
	}{
		"like it":            {newPod("second", "3", nil), ""},
		"another amount":     {newPod("p", "2500m", nil), "a"},
		"another selector":   {newPod("p", "3", func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "a"} }), "a"},
		"another toleration": {newPod("p", "3", func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Key: "x"}} }), "a"},
		"another port":       {newPod("p", "3", func(p *corev1.Pod) { p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80}} }), "a"},
		"another priority":   {newPod("p", "3", func(p *corev1.Pod) { p.Spec.Priority = new(int32(9)) }), "a"}, // room may be kept free for such pods
		"another label":      {newPod("p", "3", func(p *corev1.Pod) { p.Labels = map[string]string{"a": "b"} }), ""},
	} {
		if node, said := s.decide(c.pod, 0); node != c.node || node == "" && said != why {
			t.Errorf("%s: placed on %q, %q", name, node, said)
		}
	}
	if node, _ := s.decide(newPod("second", "3", nil), 1); node != "a" {
		t.Errorf("room has appeared, and the node is %q", node)
	}
	_, _ = s.decide(newPod("huge", "9", nil), 1)
	s.ledger.setNode(newNode("b", func(n *corev1.Node) { n.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("16") }))
	if node, _ := s.decide(newPod("huge", "9", nil), 1); node != "b" {
		t.Errorf("a node has come, and the node is %q", node)
	}
}

// BenchmarkUnschedulable decides about pods that fit on none of 250 nodes.
func BenchmarkUnschedulable(b *testing.B) {
	var nodes []*corev1.Node
	for i := range 250 {
		nodes = append(nodes, newNode(fmt.Sprintf("node-%d", i), nil))
	}
	s := schedulerOver(nodes...)
	pod := newPod("p", "3", nil)
	b.Run("looked at", func(b *testing.B) {
		for b.Loop() {
			s.placed(pod)
		}
	})
	b.Run("known", func(b *testing.B) {
		for b.Loop() {
			s.decide(pod, 0)
		}
	})
}
