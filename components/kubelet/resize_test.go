package kubelet

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/levelwire/levelwire/client/controller"
)

// resized is a pod whose spec asks for other resources than that of a generation before.
func resized(uid string, generation int64, resources ...string) *corev1.Pod {
	pod := podWith(uid, tolerating, asking(resources...))
	pod.Namespace, pod.Name, pod.Generation = "default", uid, generation
	return pod
}

// A pod holds what it asks for as soon as the node has it, and until then what it held.
func TestAllocationsAreResized(t *testing.T) {
	a, node := newAllocations(), nodeForAdmission()
	for _, pod := range []*corev1.Pod{resized("a", 1, "cpu", "1"), resized("b", 1, "cpu", "500m")} {
		if why := a.admit(pod, node); why != nil {
			t.Fatalf("%+v", why)
		}
	}
	resize := func(pod *corev1.Pod, reason string, change bool) {
		t.Helper()
		why, changed := a.resize(pod, node)
		if why == nil {
			why = &refusal{}
		}
		if why.reason != reason || changed != change {
			t.Errorf("generation %d of %s: %+v, changed: %t", pod.Generation, pod.Name, *why, changed)
		}
	}
	resize(resized("a", 1, "cpu", "1"), "", false)
	resize(resized("a", 2, "cpu", "1200m"), "", true)
	if why, changed := a.resize(resized("a", 3, "cpu", "1200m"), &corev1.Node{}); why != nil || changed {
		t.Errorf("another change of its spec, after the node has shrunk: %+v, changed: %t", why, changed)
	}
	resize(resized("b", 2, "cpu", "801m"), corev1.PodReasonDeferred, false)
	resize(resized("b", 3, "cpu", "2001m"), corev1.PodReasonInfeasible, false)
	resize(resized("c", 2, "cpu", "1"), "", false) // was not admitted
	if waiting := a.waiting(); !slices.Equal(waiting, []controller.Key{{Namespace: "default", Name: "b"}}) {
		t.Errorf("%v wait", waiting)
	}
	if why := a.admit(resized("c", 1, "cpu", "301m"), node); why == nil || why.message != "Node didn't have enough resource: cpu, requested: 301, used: 1700, capacity: 2000" {
		t.Errorf("beside what they hold: %+v", why)
	}
	resize(resized("b", 4, "cpu", "900m"), corev1.PodReasonDeferred, false)
	resize(resized("a", 4, "cpu", "1100m"), "", true)
	resize(resized("b", 4, "cpu", "900m"), "", true)
	a.release("a")
	resize(resized("b", 5, "cpu", "3"), corev1.PodReasonInfeasible, false)
	a.release("b")
	if len(a.pods)+len(a.used)+len(a.deferred) > 0 {
		t.Errorf("left of all: %+v", a)
	}
}

// The status shows what containers have been given, and why they have not been given what they ask for.
func TestStatusOfAResizedPod(t *testing.T) {
	opts := options(t)
	pod := running(func(pod *corev1.Pod) {
		pod.Generation = 1
		pod.Spec.Containers = nil
		asking("cpu", "1")(pod)
	})
	shows := func(what, cpu, pending string) {
		t.Helper()
		s, reason := pod.Status.ContainerStatuses[0], ""
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodResizePending {
				reason = c.Reason
			}
		}
		if s.Resources == nil || s.Resources.Requests.Cpu().String() != cpu || !equality.Semantic.DeepEqual(s.AllocatedResources, s.Resources.Requests) || reason != pending {
			t.Errorf("%s: resources %+v, allocated %v, pending %q", what, s.Resources, s.AllocatedResources, reason)
		}
	}
	step := func(seen times, at time.Duration) (moved bool) {
		now := noon.Add(at)
		p := opts.play(pod, seen, now)
		if p.moved {
			pod.Status = played(pod, *p.status, now)
		}
		return p.moved
	}
	shows("started", "1", "")
	resizing := func(cpu string) {
		pod.Generation++
		pod.Spec.Containers = nil
		asking("cpu", cpu)(pod)
	}
	resizing("2")
	if !step(times{}, time.Second) || pod.Status.ObservedGeneration != 2 {
		t.Errorf("resized: %+v", pod.Status)
	}
	shows("resized", "2", "")
	if step(times{}, time.Minute) {
		t.Error("a resize is reported twice")
	}
	resizing("9")
	refused := times{refused: &refusal{corev1.PodReasonDeferred, "why"}}
	if !step(refused, time.Minute) {
		t.Error("a resize that is refused is not reported")
	}
	shows("refused", "2", "Deferred")
	if step(times{refused: &refusal{corev1.PodReasonDeferred, "another amount is free"}}, time.Hour) {
		t.Error("a refusal is reported twice")
	}
	if held := asAllocated(pod).Spec.Containers[0].Resources.Requests.Cpu().String(); held != "2" {
		t.Errorf("a restarted kubelet takes it for holding %s", held)
	}
	if !step(times{}, time.Hour) {
		t.Error("a resize that was deferred is not reported")
	}
	shows("resized later", "9", "")
}
