package upstream

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestPodsAreCountedByALabelOfTheirNodes: those without a node are counted apart, and those that go are not.
func TestPodsAreCountedByALabelOfTheirNodes(t *testing.T) {
	var nodes []corev1.Node
	for name, zone := range map[string]string{"node-1": "a", "node-2": "a", "node-3": "b"} {
		nodes = append(nodes, corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"zone": zone}}})
	}
	var pods []corev1.Pod
	for _, node := range []string{"node-1", "node-2", "node-3", ""} {
		pods = append(pods, corev1.Pod{Spec: corev1.PodSpec{NodeName: node}})
	}
	going := corev1.Pod{Spec: corev1.PodSpec{NodeName: "node-3"}}
	going.DeletionTimestamp = &metav1.Time{}
	if got, want := countByLabel(nodes, append(pods, going), "zone"), map[string]int{"a": 2, "b": 1, "": 1}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestRangesAreRead(t *testing.T) {
	for text, want := range map[string][2]int{"0": {0, 0}, "2": {2, 2}, "2..3": {2, 3}} {
		if least, most, err := readRange(text); err != nil || [2]int{least, most} != want {
			t.Errorf("%s: %d to %d, %v", text, least, most, err)
		}
	}
	for _, text := range []string{"", "many", "2..", "..3"} {
		if _, _, err := readRange(text); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}
