package kubelet

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestUsage(t *testing.T) {
	yes := true
	pod := func(name, owner string, phase corev1.PodPhase, annotations ...string) *corev1.Pod {
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Annotations: map[string]string{}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("500m"), corev1.ResourceMemory: resource.MustParse("64Mi"),
			}}}}},
			Status: corev1.PodStatus{Phase: phase},
		}
		if owner != "" {
			p.OwnerReferences = []metav1.OwnerReference{{UID: types.UID(owner), Controller: &yes}}
		}
		for i := 0; i < len(annotations); i += 2 {
			p.Annotations[annotations[i]] = annotations[i+1]
		}
		return p
	}
	pods := []*corev1.Pod{
		pod("default", "", corev1.PodRunning),
		pod("annotated", "", corev1.PodRunning, AnnotationCPUUsage, "250m", AnnotationMemoryUsage, "100Mi"),
		pod("nonsense", "", corev1.PodRunning, AnnotationCPUUsage, "much"),
		pod("shared-1", "set", corev1.PodRunning, AnnotationCPULoad, "1"),
		pod("shared-2", "set", corev1.PodRunning, AnnotationCPULoad, "1"),
		pod("shared-3", "set", corev1.PodPending, AnnotationCPULoad, "1"),
	}
	used := Usage(pods)
	for name, want := range map[string]ContainerUsage{
		"default": {"c", 50, 32 << 20}, "annotated": {"c", 250, 100 << 20}, "nonsense": {"c", 50, 32 << 20},
		"shared-1": {"c", 500, 32 << 20}, "shared-2": {"c", 500, 32 << 20},
	} {
		if got := used[types.UID(name)]; len(got) != 1 || got[0] != want {
			t.Errorf("%s uses %+v, want %+v", name, got, want)
		}
	}
	if _, ok := used["shared-3"]; ok {
		t.Error("a pod that does not run uses something")
	}
	if got := NodeUsage(pods, used); got.MilliCPU != 50+50+250+50+500+500 {
		t.Errorf("the node uses %+v", got)
	}
}
