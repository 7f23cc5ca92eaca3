package admission_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestManyLimitsOfManyContainers: a range of thousands of amounts is not filled into thousands of containers.
func TestManyLimitsOfManyContainers(t *testing.T) {
	c := start(t)
	amounts := corev1.ResourceList{}
	for i := range 2_000 {
		amounts[corev1.ResourceName(fmt.Sprint("example.com/r", i))] = resource.MustParse("1")
	}
	_, err := create(c, &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "many"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{
		{Type: corev1.LimitTypeContainer, Default: amounts, DefaultRequest: amounts},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if made, err := create(c, newPod("small")); err != nil || len(made.Spec.Containers[0].Resources.Limits) != len(amounts) {
		t.Errorf("one container: %v", err)
	}
	_, err = create(c, newPod("large", func(s *corev1.PodSpec) {
		for i := range 2_000 {
			another := s.Containers[0]
			another.Name = fmt.Sprint("c", i)
			s.Containers = append(s.Containers, another)
		}
	}))
	mustSay(t, "many containers", err, "the LimitRange many has 4000 amounts, and the pod 2001 containers, for each of which they are: at most 200000 together")
}
