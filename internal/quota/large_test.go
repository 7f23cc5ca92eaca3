package quota

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestManySidecars: what the containers of a large pod need is added up, and not more often than once.
func TestManySidecars(t *testing.T) {
	e, _ := For(schema.GroupResource{Resource: "pods"})
	for n, want := range map[int]string{100: "101", 30_000: "30001"} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}}}}}}
		for i := range n {
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{
				Name: fmt.Sprint("n", i), RestartPolicy: new(corev1.ContainerRestartPolicyAlways),
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1"), corev1.ResourceName(fmt.Sprint("example.com/r", i)): resource.MustParse("1")}},
			})
		}
		used := e.Usage(pod, time.Unix(0, 0))
		if got := used["requests.cpu"]; got.String() != want || len(used) != n+4 {
			t.Errorf("%d sidecars: cpu %s, want %s; %d amounts", n, got.String(), want, len(used))
		}
	}
}
