package kubelet

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestManyContainers: a step of a pod reads its containers, their statuses and what it says of them once. When each was
// compared with each, this took an hour, beyond the time of all tests of the package, in which the other pods of the node waited.
func TestManyContainers(t *testing.T) {
	const many = 200_000
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
		"batch.kubernetes.io/job-completion-index": "7", AnnotationExitCodeOfIndex: strings.Repeat("1=1,", 50_000) + "7=3",
	}}}
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	for i := range many {
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{Name: fmt.Sprint("i", i)})
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: fmt.Sprint("c", i), Command: []string{"sleep", "5"}})
		pod.OwnerReferences = append(pod.OwnerReferences, metav1.OwnerReference{Kind: "Job", Name: fmt.Sprint("j", i)})
	}
	opts := options(t)
	var seen times
	pod.Status = accepted(pod, netip.MustParseAddr("10.0.0.1"), noon)
	for i, now := range []time.Time{noon.Add(time.Second), noon.Add(6 * time.Second)} {
		slices.Reverse(pod.Status.InitContainerStatuses) // others may write them in any order
		slices.Reverse(pod.Status.ContainerStatuses)
		seen.remember(&opts, pod, noon)
		if next := opts.next(pod, seen, now); next.stage != stageMove || next.wait > 0 {
			t.Fatalf("step %d: %+v", i, next)
		}
		pod.Status = played(pod, *opts.play(pod, seen, now).status, now)
		seen.remember(&opts, pod, now)
	}
	for i := range many {
		if s := &pod.Status.ContainerStatuses[i]; s.Name != pod.Spec.Containers[i].Name || s.State.Terminated == nil || s.State.Terminated.ExitCode != 3 {
			t.Fatalf("container %d: %+v", i, s)
		}
	}
	if pod.Status.Phase != corev1.PodFailed || len(pod.Status.ContainerStatuses) != many || len(pod.Status.InitContainerStatuses) != many {
		t.Errorf("%s, %d and %d containers", pod.Status.Phase, len(pod.Status.InitContainerStatuses), len(pod.Status.ContainerStatuses))
	}
}

// TestManyGates: each readiness gate is looked up in what is open. To search for it took hours.
func TestManyGates(t *testing.T) {
	const many = 200_000
	pod := &corev1.Pod{}
	for i := range many {
		kind := corev1.PodConditionType(fmt.Sprint("example.com/", i))
		pod.Spec.ReadinessGates = append(pod.Spec.ReadinessGates, corev1.PodReadinessGate{ConditionType: kind})
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue})
	}
	for range 100 {
		if !gatesOpen(pod) {
			t.Fatal("they are closed")
		}
	}
	pod.Status.Conditions[many-1].Status = corev1.ConditionFalse
	if gatesOpen(pod) {
		t.Error("the last one is open")
	}
}

// TestAlignedStatuses has the statuses of containers in any order.
func TestAlignedStatuses(t *testing.T) {
	for statuses, want := range map[string]string{
		"": "a b c", "a b c": "a b c", "c b a": "a b c", "b": "a b c", "a b c x": "a b c x", "x c": "a b c x", "a c x b y": "a b c x y", "b a a": "a b c a",
	} {
		var containers []corev1.Container
		for _, name := range []string{"a", "b", "c"} {
			containers = append(containers, corev1.Container{Name: name})
		}
		var given []corev1.ContainerStatus
		for _, name := range strings.Fields(statuses) {
			given = append(given, corev1.ContainerStatus{Name: name, RestartCount: 1})
		}
		var got []string
		for i, s := range aligned(containers, given) {
			got = append(got, s.Name)
			if there := slices.ContainsFunc(given, func(g corev1.ContainerStatus) bool { return g.Name == s.Name }); there != (s.RestartCount == 1) {
				t.Errorf("%q: status %d is %+v", statuses, i, s)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %q, want %q", statuses, got, want)
		}
	}
}
