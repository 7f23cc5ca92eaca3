package apiserver

import (
	"encoding/json"
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
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
		must(t, err)
		var row metav1.TableRow
		must(t, json.Unmarshal(data, &row))
		if len(row.Conditions) != want || want > 0 && (row.Conditions[0].Type != metav1.RowCompleted || row.Conditions[0].Reason != string(phase)) {
			t.Errorf("%s: %s", phase, data)
		}
	}
}

// TestTableOfScale: a Scale has columns of its own, whatever it is the scale of.
func TestTableOfScale(t *testing.T) {
	c := newWriteTargets(t)
	var table metav1.Table
	must(t, json.Unmarshal(c.send(200, "GET", deployments+"/web/scale", "", "Accept: "+tableType).body, &table))
	var columns []string
	for _, column := range table.ColumnDefinitions {
		columns = append(columns, column.Name)
	}
	if got := strings.Join(columns, " "); got != "Name Desired Available Age" || len(table.Rows) != 1 || table.Rows[0].Cells[0] != "web" {
		t.Errorf("columns %s, rows %+v", got, table.Rows)
	}
	var scale autoscalingv1.Scale
	must(t, json.Unmarshal(c.send(200, "GET", deployments+"/web/scale", "").body, &scale))
	if scale.Kind != "Scale" || scale.APIVersion != "autoscaling/v1" || scale.Name != "web" {
		t.Errorf("the scale itself is %+v", scale)
	}
}
