package builtin_test

import (
	"slices"
	"strings"
	"testing"
)

// TestValidateWorkloads: all that is wrong with a workload is told, in kube-apiserver's order and at
// its paths, which differ from kind to kind.
func TestValidateWorkloads(t *testing.T) {
	const labels, selector = "Invalid spec.template.metadata.labels", "Invalid spec.selector"
	for _, tt := range []struct {
		manifest string
		edits    []string
		want     []string
	}{
		{"deployment", []string{"spec.selector-"}, []string{"Required spec.selector", labels}},
		{"replicaset", []string{"spec.selector={}"}, []string{selector}},
		{"daemonset", []string{"spec.selector-"}, []string{labels}},
		{"daemonset", []string{"spec.selector={}"}, []string{selector}},
		{"job", []string{"spec.selector={matchLabels: {a: b}}", "spec.manualSelector=true"}, []string{labels}},
		// One that cannot be used ends the checks of the template.
		{"deployment", []string{"spec.selector={matchExpressions: [{key: app, operator: Is}]}", "spec.template.spec.containers=[]"},
			[]string{"Invalid spec.selector.matchExpressions[0].operator", selector}},
		{"statefulset", []string{"spec.selector={matchExpressions: [{key: app, operator: Is}]}", "spec.template.spec.containers=[]"},
			[]string{"Invalid spec.selector.matchExpressions[0].operator", selector}},
		{"daemonset", []string{"spec.selector={matchExpressions: [{key: app, operator: Is}]}", "spec.template.spec.containers=[]"},
			[]string{"Invalid spec.selector.matchExpressions[0].operator", "Required spec.template.spec.containers"}},
		{"deployment", []string{"spec.strategy={type: Sometimes}"}, []string{"NotSupported spec.strategy"}},
		{"daemonset", []string{"spec.updateStrategy={type: Sometimes}", "spec.revisionHistoryLimit=-1"}, []string{"NotSupported spec.updateStrategy", "Invalid spec.revisionHistoryLimit"}},
		{"statefulset", []string{"spec.updateStrategy={type: Sometimes}"}, []string{"Invalid spec.updateStrategy"}},
		{"statefulset", []string{"spec.podManagementPolicy=Sometimes"}, []string{"Invalid spec.podManagementPolicy"}},
		{"statefulset", []string{"spec.serviceName=a b", "spec.ordinals={start: -1}"}, []string{"Invalid spec.ordinals.start", "Invalid spec.serviceName"}},
		{"statefulset", []string{"spec.template.spec.hostname=a b", "spec.template.spec.subdomain=a b"}, nil}, // the controller's
		{"deployment", []string{"spec.template.spec.hostname=a b"}, []string{"Invalid spec.template.spec.hostname"}},
	} {
		t.Run(tt.manifest+" "+strings.Join(tt.edits, " "), func(t *testing.T) {
			r, obj := manifest(t, tt.manifest, tt.edits...)
			if got := complaints(validateNew(r, obj)); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
