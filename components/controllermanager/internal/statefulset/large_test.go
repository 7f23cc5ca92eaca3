package statefulset

import (
	"runtime"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/levelwire/levelwire/components/controllermanager/internal/pods"
)

// TestManyReplicas: a step's memory is bounded by the pods that there are and those that it creates, not by how many are wanted.
func TestManyReplicas(t *testing.T) {
	for policy, want := range map[appsv1.PodManagementPolicyType]int{appsv1.OrderedReadyPodManagement: 1, appsv1.ParallelPodManagement: pods.Burst} {
		for name, owned := range map[string][]*corev1.Pod{
			"none": nil, "the first": {podOf("0 new ready")}, "the last": {podOf("9999999 new ready"), podOf("9999998 old ready")},
		} {
			set := &appsv1.StatefulSet{}
			set.Name = "db"
			set.Spec.Replicas = new(int32(10_000_000))
			set.Spec.PodManagementPolicy = policy
			var p plan
			bytes := allocated(func() { p = next(set, owned, "new", epoch) })
			if len(p.create) != want || len(p.delete) != 0 || bytes > 1<<20 {
				t.Errorf("%s, %s: %d to create, %d to delete, %d bytes", policy, name, len(p.create), len(p.delete), bytes)
			}
		}
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
