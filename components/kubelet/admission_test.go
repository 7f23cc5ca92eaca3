package kubelet

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// asking is a pod that asks for resources, named and given in turn.
func asking(resources ...string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		requests := corev1.ResourceList{}
		for i := 0; i < len(resources); i += 2 {
			requests[corev1.ResourceName(resources[i])] = resource.MustParse(resources[i+1])
		}
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Resources: corev1.ResourceRequirements{Requests: requests}})
	}
}

// onPort has a pod be at a port of the node, at an address or at all.
func onPort(address string, protocol corev1.Protocol, port int32) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{
			Ports: []corev1.ContainerPort{{HostIP: address, Protocol: protocol, HostPort: port}, {ContainerPort: port}},
		})
	}
}

func podWith(uid string, changes ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid)}}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

func nodeForAdmission() *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"zone": "a"}},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{
			{Key: "away", Effect: corev1.TaintEffectNoExecute}, {Key: "full", Effect: corev1.TaintEffectNoSchedule},
		}},
		Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
			"cpu": resource.MustParse("2"), "memory": resource.MustParse("1000"), "pods": resource.MustParse("3"), "example.com/gpu": resource.MustParse("2"),
		}},
	}
}

func tolerating(pod *corev1.Pod) {
	pod.Spec.Tolerations = []corev1.Toleration{{Key: "away", Operator: corev1.TolerationOpExists}}
}

func TestAdmission(t *testing.T) {
	selecting := func(zone string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { pod.Spec.NodeSelector = map[string]string{"zone": zone} }
	}
	always := corev1.ContainerRestartPolicyAlways
	besideOnPort := func(pod *corev1.Pod) {
		pod.Spec.InitContainers = []corev1.Container{{RestartPolicy: &always, Ports: []corev1.ContainerPort{{Protocol: "TCP", HostPort: 80}}}}
	}
	ports := refusal{"NodePorts", "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"}
	for name, c := range map[string]struct {
		before []func(*corev1.Pod) // a pod each
		pod    []func(*corev1.Pod)
		want   refusal
	}{
		"one that asks for nothing": {},
		"all that there is":         {pod: []func(*corev1.Pod){asking("cpu", "1500m"), asking("cpu", "500m", "memory", "1000")}},
		"too much cpu": {pod: []func(*corev1.Pod){asking("cpu", "2001m", "memory", "1001")},
			want: refusal{"OutOfcpu", "Node didn't have enough resource: cpu, requested: 2001, used: 0, capacity: 2000"}},
		"too much memory beside others": {before: []func(*corev1.Pod){asking("memory", "600")}, pod: []func(*corev1.Pod){asking("cpu", "1", "memory", "401")},
			want: refusal{"OutOfmemory", "Node didn't have enough resource: memory, requested: 401, used: 600, capacity: 1000"}},
		"too many pods": {before: []func(*corev1.Pod){asking(), asking(), asking()},
			want: refusal{"OutOfpods", "Node didn't have enough resource: pods, requested: 1, used: 3, capacity: 3"}},
		"too much of a device": {pod: []func(*corev1.Pod){asking("example.com/gpu", "3")},
			want: refusal{"OutOfexample.com/gpu", "Node didn't have enough resource: example.com/gpu, requested: 3, used: 0, capacity: 2"}},
		"a device that is not the node's": {pod: []func(*corev1.Pod){asking("example.com/quantum", "3")}},
		"a resource that the node has not": {pod: []func(*corev1.Pod){asking("hugepages-2Mi", "4Mi")},
			want: refusal{"OutOfhugepages-2Mi", "Node didn't have enough resource: hugepages-2Mi, requested: 4194304, used: 0, capacity: 0"}},
		"the node's label":     {pod: []func(*corev1.Pod){selecting("a")}},
		"another node's label": {pod: []func(*corev1.Pod){selecting("b")}, want: refusal{"NodeAffinity", "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"}},
		"a taint":              {pod: []func(*corev1.Pod){func(pod *corev1.Pod) { pod.Spec.Tolerations = nil }}, want: refusal{"TaintToleration", "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate"}},
		"a port":               {pod: []func(*corev1.Pod){onPort("", "TCP", 80)}},
		"a port that is taken": {before: []func(*corev1.Pod){onPort("", "TCP", 80)}, pod: []func(*corev1.Pod){onPort("", "TCP", 80)}, want: ports},
		"another port":         {before: []func(*corev1.Pod){onPort("", "TCP", 80)}, pod: []func(*corev1.Pod){onPort("", "TCP", 81)}},
		"another protocol":     {before: []func(*corev1.Pod){onPort("", "TCP", 80)}, pod: []func(*corev1.Pod){onPort("", "UDP", 80)}},
		"the same address":     {before: []func(*corev1.Pod){onPort("10.0.0.1", "TCP", 80)}, pod: []func(*corev1.Pod){onPort("10.0.0.1", "TCP", 80)}, want: ports},
		"another address":      {before: []func(*corev1.Pod){onPort("10.0.0.1", "TCP", 80)}, pod: []func(*corev1.Pod){onPort("10.0.0.2", "TCP", 80)}},
		"every address":        {before: []func(*corev1.Pod){onPort("10.0.0.1", "TCP", 80)}, pod: []func(*corev1.Pod){onPort("0.0.0.0", "TCP", 80)}, want: ports},
		"one of every address": {before: []func(*corev1.Pod){onPort("", "TCP", 80)}, pod: []func(*corev1.Pod){onPort("10.0.0.1", "TCP", 80)}, want: ports},
		"a sidecar's port":     {before: []func(*corev1.Pod){besideOnPort}, pod: []func(*corev1.Pod){onPort("", "TCP", 80)}, want: ports},
	} {
		a := newAllocations()
		for i, change := range c.before {
			if why := a.admit(podWith(fmt.Sprint(i), tolerating, change), nodeForAdmission()); why != nil {
				t.Errorf("%s: pod %d before it: %+v", name, i, why)
			}
		}
		why := a.admit(podWith("p", append([]func(*corev1.Pod){tolerating}, c.pod...)...), nodeForAdmission())
		if why == nil {
			why = &refusal{}
		}
		if *why != c.want {
			t.Errorf("%s: %+v, want %+v", name, *why, c.want)
		}
	}
}

// What a pod holds counts once, until it has ended or gone.
func TestAllocationsAreGivenBack(t *testing.T) {
	a, node := newAllocations(), nodeForAdmission()
	holder := podWith("a", tolerating, asking("cpu", "2"), onPort("", "TCP", 80))
	a.claim(holder)
	a.claim(holder)
	if why := a.admit(holder, node); why != nil {
		t.Errorf("what was admitted is refused: %+v", why)
	}
	other := podWith("b", tolerating, asking("cpu", "1m"), onPort("", "TCP", 80))
	if why := a.admit(other, node); why == nil || why.reason != "OutOfcpu" {
		t.Errorf("beside it: %+v", why)
	}
	a.release("a")
	a.release("a")
	a.release("b") // holds nothing
	if why := a.admit(other, node); why != nil {
		t.Errorf("after it: %+v", why)
	}
	a.release("b")
	a.claim(holder)
	if holders := a.holders(); !slices.Equal(holders, []types.UID{"a"}) {
		t.Errorf("%v hold anything", holders)
	}
	a.release("a")
	if len(a.pods)+len(a.used)+len(a.ports) > 0 {
		t.Errorf("left of all: %+v", a)
	}
}

func TestStatusOfARejectedPod(t *testing.T) {
	pod := podWith("p")
	pod.Generation = 3
	pod.Status.QOSClass = corev1.PodQOSBurstable
	status := rejected(pod, failed("NodePorts", "why"), noon)
	if status.Phase != corev1.PodFailed || status.Reason != "NodePorts" || status.Message != "Pod was rejected: Predicate NodePorts failed: why" ||
		status.ObservedGeneration != 3 || !status.StartTime.Time.Equal(noon) || status.QOSClass != corev1.PodQOSBurstable {
		t.Errorf("%+v", status)
	}
}
