package podrules

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
)

// TestManyTolerations: those of a large pod are not compared each with each.
func TestManyTolerations(t *testing.T) {
	const many = 50_000
	seconds := int64(5)
	all := make([]corev1.Toleration, many)
	for i := range all {
		all[i] = corev1.Toleration{Key: fmt.Sprint("k", i), Operator: corev1.TolerationOpExists, TolerationSeconds: &seconds}
	}
	again := int64(5)
	repeated := all[0]
	repeated.TolerationSeconds = &again
	if n := len(union(append(all[:many:many], repeated))); n != many {
		t.Errorf("%d tolerations are left, want %d", n, many)
	}
	few := []corev1.Toleration{all[0], {Operator: corev1.TolerationOpExists}, repeated}
	if n := len(union(few)); n != 1 {
		t.Errorf("%d of few tolerations are left, want the one of all keys", n)
	}

	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{}}}}}}
	for i := range many {
		pod.Spec.Containers[0].Resources.Requests[corev1.ResourceName(fmt.Sprint("example.com/r", i))] = apiresource.MustParse("1")
	}
	q := &registry.Request{Resource: &resource.Resource{Plural: "pods"}, Operation: registry.Create, Object: pod}
	for range 2 {
		if err := ExtendedResourceToleration(t.Context(), q); err != nil || len(pod.Spec.Tolerations) != many {
			t.Errorf("%d tolerations of extended resources, want %d (%v)", len(pod.Spec.Tolerations), many, err)
		}
	}
}
