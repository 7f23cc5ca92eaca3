package apiserver

import (
	"encoding/json"
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
