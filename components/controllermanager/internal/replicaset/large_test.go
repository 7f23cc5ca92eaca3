package replicaset

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestLargeTemplates: pods are counted without a copy of the template's labels.
func TestLargeTemplates(t *testing.T) {
	set := &appsv1.ReplicaSet{}
	set.Spec.Template.Labels = map[string]string{}
	for i := range 10_000 {
		set.Spec.Template.Labels[fmt.Sprint("k", i)] = "v"
	}
	full := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: set.Spec.Template.Labels}}
	part := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"k0": "v"}}}
	if n := testing.AllocsPerRun(10, func() {
		if status, _ := count(set, []*corev1.Pod{full, part}, time.Unix(0, 0)); status.FullyLabeledReplicas != 1 || status.Replicas != 2 {
			t.Errorf("%+v", status)
		}
	}); n > 1000 { // of the whole process; one for each label were 10,000
		t.Errorf("%v allocations", n)
	}
}
