package encoding

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/resource/builtin"
)

// TestRowsOfFinishedPods: a row says that its pod is finished; that of a
// running one has no conditions.
func TestRowsOfFinishedPods(t *testing.T) {
	pods := builtin.Table().Lookup("", "v1", "pods")
	for phase, want := range map[corev1.PodPhase]int{corev1.PodRunning: 0, corev1.PodSucceeded: 1, corev1.PodFailed: 1} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Status: corev1.PodStatus{Phase: phase}}
		data, err := appendRow(nil, pods, "v1", metav1.IncludeNone, pod, nil)
		if err != nil {
			t.Fatal(err)
		}
		var row metav1.TableRow
		if err := json.Unmarshal(data, &row); err != nil {
			t.Fatal(err)
		}
		if len(row.Conditions) != want || want > 0 && (row.Conditions[0].Type != metav1.RowCompleted || row.Conditions[0].Reason != string(phase)) {
			t.Errorf("%s: %s", phase, data)
		}
	}
}
