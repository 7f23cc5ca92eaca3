package scheduler

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// grownBy are numbers of things in a pod, each twice the one before it.
var grownBy = [...]int{1000, 2000, 4000}

// TestAffinityOfManyRequirements: what is allocated for a decision grows as the pod's affinity does, and not with the
// nodes besides.
func TestAffinityOfManyRequirements(t *testing.T) {
	requirements := func(n int) corev1.NodeSelectorTerm {
		var term corev1.NodeSelectorTerm
		for i := range n {
			term.MatchExpressions = append(term.MatchExpressions, corev1.NodeSelectorRequirement{Key: fmt.Sprint("key-", i), Operator: corev1.NodeSelectorOpDoesNotExist})
		}
		return term
	}
	for name, affinity := range map[string]func(n int) *corev1.NodeAffinity{
		"required": func(n int) *corev1.NodeAffinity {
			return &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{requirements(n)}}}
		},
		"preferred": func(n int) *corev1.NodeAffinity {
			return &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 1, Preference: requirements(n)}}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			decide := func(requirements, nodes int) uint64 {
				s := schedulerOver()
				for i := range nodes {
					s.ledger.setNode(newNode(fmt.Sprint("n", i), nil))
				}
				pod := newPod("p", "", func(p *corev1.Pod) { p.Spec.Affinity = &corev1.Affinity{NodeAffinity: affinity(requirements)} })
				return allocated(func() {
					if node, why := s.placed(pod); node == "" {
						t.Error(why)
					}
				})
			}
			var bytes [len(grownBy)]uint64
			for i, n := range grownBy {
				bytes[i] = decide(n, 1)
			}
			if bytes[2] > 3*bytes[1] && bytes[1] > 3*bytes[0] {
				t.Errorf("%d bytes for %d requirements", bytes, grownBy)
			}
			if one, many := decide(1000, 1), decide(1000, 20); many > 2*one {
				t.Errorf("%d bytes for one node, %d for twenty", one, many)
			}
		})
	}
}

// TestManySidecars: what is allocated for the amounts of a large pod grows as its containers do.
func TestManySidecars(t *testing.T) {
	var bytes [len(grownBy)]uint64
	for i, n := range grownBy {
		pod := newPod("p", "1", nil)
		for j := range n {
			sidecar := corev1.Container{Name: fmt.Sprint("s", j), RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}
			sidecar.Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("1"), corev1.ResourceName(fmt.Sprint("example.com/r", j)): resource.MustParse("1")}
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, sidecar)
		}
		for j := range n {
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{Name: fmt.Sprint("i", j)})
		}
		bytes[i] = allocated(func() {
			if got, want := amountsOf(pod), int64(n+1)*1000; got.milliCPU != want || len(got.extended) != n {
				t.Errorf("%d sidecars: %d millicores, want %d; %d extended resources", n, got.milliCPU, want, len(got.extended))
			}
		})
	}
	if bytes[2] > 3*bytes[1] && bytes[1] > 3*bytes[0] {
		t.Errorf("%d bytes for %d sidecars", bytes, grownBy)
	}
}

// TestManyHostPorts: a pod's ports are looked up in those that are taken. When each was compared with each, this took
// 4,000,000,000 comparisons for each pod.
func TestManyHostPorts(t *testing.T) {
	const nodes, ports = 10, 20_000
	withPorts := func(name, ip string, first int) *corev1.Pod {
		return newPod(name, "", func(p *corev1.Pod) {
			for i := range ports {
				p.Spec.Containers[0].Ports = append(p.Spec.Containers[0].Ports, corev1.ContainerPort{HostPort: int32(first + i), HostIP: ip, Protocol: corev1.ProtocolTCP})
			}
		})
	}
	s := schedulerOver()
	for i := range nodes {
		name := fmt.Sprint("n", i)
		s.ledger.setNode(newNode(name, nil))
		s.ledger.assume(withPorts(name, "10.0.0.1", 1), name)
	}
	for want, pod := range map[bool]*corev1.Pod{
		true:  withPorts("other addresses", "10.0.0.2", 1),
		false: withPorts("one in common", "", ports),
	} {
		if node, why := s.placed(pod); (node != "") != want {
			t.Errorf("%s: %q, %q", pod.Name, node, why)
		}
	}
	s.ledger.release("n7")
	if node, why := s.placed(withPorts("one in common", "", ports)); node != "n7" {
		t.Errorf("after a release: %q, %q", node, why)
	}
}

// TestManyHostPortsOfOnePod: a node with few ports, as most are, costs a decision on a pod with many as little as one on others does.
// When each port of the pod was looked up on each node, this took an hour, beyond the time of all tests of the package.
func TestManyHostPortsOfOnePod(t *testing.T) {
	pod := newPod("p", "", func(p *corev1.Pod) {
		for i := range 60_000 {
			p.Spec.Containers[0].Ports = append(p.Spec.Containers[0].Ports, corev1.ContainerPort{HostPort: int32(i + 1), HostIP: "10.0.0.1", Protocol: corev1.ProtocolTCP})
		}
	})
	request, node := newRequest(pod), newNode("n", nil)
	node.Status.Allocatable = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("10")}
	candidate := account{node: node, offers: offersOf(node)}
	for _, port := range []hostPort{{"10.0.0.2", corev1.ProtocolTCP, 7}, {"", corev1.ProtocolUDP, 7}} {
		candidate.ports.add(port, 1)
	}
	for range 4_000_000 {
		if why := request.lacking(&candidate); why != "" {
			t.Fatal(why)
		}
	}
	candidate.ports.add(hostPort{"0.0.0.0", corev1.ProtocolTCP, 7}, 1)
	if why := request.lacking(&candidate); why == "" {
		t.Error("the port 7 of all addresses is free")
	}
}

// TestPortsOfAddresses: whichever of two pods has fewer ports, the same ones cannot be on one node.
func TestPortsOfAddresses(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{{"", "", true}, {"", "10.0.0.1", true}, {"0.0.0.0", "10.0.0.1", true}, {"10.0.0.1", "10.0.0.1", true}, {"10.0.0.1", "10.0.0.2", false}} {
		for more := range 4 {
			var a, b portSet
			a.add(hostPort{c.a, corev1.ProtocolTCP, 1}, 1)
			b.add(hostPort{c.b, corev1.ProtocolTCP, 1}, 1)
			for i := range more {
				a.add(hostPort{"", corev1.ProtocolUDP, int32(i)}, 1)
			}
			if a.meets(b) != c.want || b.meets(a) != c.want {
				t.Errorf("%q and %q with %d more: %v and %v, want %v", c.a, c.b, more, a.meets(b), b.meets(a), c.want)
			}
		}
	}
}

// TestManyTolerations: taints are looked up in the tolerations, which are read once and not for each taint of each node.
func TestManyTolerations(t *testing.T) {
	pod := newPod("p", "", func(p *corev1.Pod) {
		for i := range maxDemands {
			p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: fmt.Sprint("k", i), Operator: corev1.TolerationOpExists})
		}
	})
	request := newRequest(pod)
	clear(pod.Spec.Tolerations)
	node := newNode("n", nil)
	node.Status.Allocatable = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("10")}
	for i := range maxDemands {
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: fmt.Sprint("k", i), Value: "v", Effect: corev1.TaintEffectNoSchedule})
	}
	if why := request.refusal(&account{node: node, offers: offersOf(node)}); why != "" {
		t.Error(why)
	}
}

// TestZeroAmounts: a node is not asked for resources of which the pod wants nothing.
func TestZeroAmounts(t *testing.T) {
	pod := newPod("p", "", func(p *corev1.Pod) {
		requests := corev1.ResourceList{"example.com/one": resource.MustParse("1")}
		for i := range 1000 {
			requests[corev1.ResourceName(fmt.Sprint("example.com/zero-", i))] = resource.MustParse("0")
		}
		p.Spec.Containers[0].Resources.Requests = requests
	})
	if got := amountsOf(pod).extended; len(got) != 1 || got["example.com/one"] != 1 {
		t.Errorf("it wants %d resources", len(got))
	}
}

// TestInventedResources: the names of resources that pods have invented go with them.
func TestInventedResources(t *testing.T) {
	l := newLedger()
	l.setNode(newNode("a", nil))
	for i := range 100 {
		pod := newPod("p", "", func(p *corev1.Pod) {
			p.Spec.NodeName = "a"
			p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{
				corev1.ResourceName(fmt.Sprint("example.com/zero-", i)): resource.MustParse("0"),
				corev1.ResourceName(fmt.Sprint("example.com/one-", i)):  resource.MustParse("1"),
			}
		})
		l.observe(pod)
		if taken := l.nodes["a"].taken.extended; len(taken) != 1 || taken[corev1.ResourceName(fmt.Sprint("example.com/one-", i))] != 1 {
			t.Fatalf("pod %d has taken %v", i, taken)
		}
		l.release(pod.UID)
	}
	if taken := l.nodes["a"].taken.extended; len(taken) != 0 {
		t.Errorf("%v are taken by no pod", taken)
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

// TestRefusalsOfLargePods: what is remembered of a refused pod does not depend on its size.
func TestRefusalsOfLargePods(t *testing.T) {
	s := schedulerOver(newNode("a", nil))
	before := live()
	for i := range 40 {
		pod := newPod("p", "", func(p *corev1.Pod) {
			p.Spec.NodeSelector = map[string]string{fmt.Sprint(i): strings.Repeat("x", 1<<20)}
		})
		if node, _ := s.decide(pod, 0); node != "" {
			t.Fatalf("pod %d is placed on %s", i, node)
		}
	}
	if after := live(); len(s.refused.why) != 40 || after > before+10<<20 {
		t.Errorf("%d refusals take %d bytes", len(s.refused.why), after-before)
	}
}

// TestDemandsAreBounded: a pod with too many demands is not held against nodes, and says so.
func TestDemandsAreBounded(t *testing.T) {
	terms := func(n int) (list []corev1.NodeSelectorTerm) {
		for range n {
			list = append(list, corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}}}})
		}
		return list
	}
	required := func(terms []corev1.NodeSelectorTerm) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}}
		}
	}
	names := make([]string, 10_000)
	for i := range names {
		names[i] = fmt.Sprint("n", i)
	}
	s := schedulerOver(newNode("a", nil))
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		want   string // "": it fits
	}{
		"required":           {required(terms(500)), ""},
		"required too often": {required(terms(501)), "the pod has 1002 tolerations, terms and requirements of its node, and 1000 are looked at."},
		"preferred too often": {func(p *corev1.Pod) {
			affinity := &corev1.NodeAffinity{}
			for _, term := range terms(501) {
				affinity.PreferredDuringSchedulingIgnoredDuringExecution = append(affinity.PreferredDuringSchedulingIgnoredDuringExecution, corev1.PreferredSchedulingTerm{Weight: 1, Preference: term})
			}
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: affinity}
		}, "the pod has 1002 tolerations, terms and requirements of its node, and 1000 are looked at."},
		"tolerations":         {func(p *corev1.Pod) { p.Spec.Tolerations = make([]corev1.Toleration, 1001) }, "the pod has 1001 tolerations, terms and requirements of its node, and 1000 are looked at."},
		"many names of nodes": {required([]corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpNotIn, Values: names}}}}), ""},
	} {
		if node, why := s.decide(newPod("p", "", c.change), 0); why != c.want || (node == "a") != (c.want == "") {
			t.Errorf("%s: %q, %q", name, node, why)
		}
	}
}

// live returns how many bytes are in use.
func live() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
