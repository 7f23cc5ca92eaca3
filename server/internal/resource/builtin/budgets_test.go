package builtin_test

import (
	"slices"
	"strings"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// TestBudgetStatuses: counts are not negative, and conditions are complete.
func TestBudgetStatuses(t *testing.T) {
	const budget = "{apiVersion: policy/v1, kind: PodDisruptionBudget, status: "
	checkStatuses(t, map[string][]string{
		budget + "{disruptionsAllowed: 0}}": nil,
		budget + "{disruptionsAllowed: -1, currentHealthy: -1, desiredHealthy: -1, expectedPods: -1, conditions: [{type: a b}]}}": {
			"Invalid status.conditions[0].type", "Required status.conditions[0].status", "Required status.conditions[0].lastTransitionTime", "Required status.conditions[0].reason",
			"Invalid status.disruptionsAllowed", "Invalid status.currentHealthy", "Invalid status.desiredHealthy", "Invalid status.expectedPods",
		},
	})
}

// checkStatuses compares what is wrong with statuses, as "Invalid status.a".
func checkStatuses(t *testing.T, statuses map[string][]string) {
	t.Helper()
	for object, want := range statuses {
		r, obj := decodedAsIs(t, object)
		var got []string
		for _, err := range r.Strategy.ValidateStatus(obj, obj) {
			got = append(got, strings.TrimPrefix(string(err.Type), "FieldValue")+" "+err.Field)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s\ngot  %q\nwant %q", object, got, want)
		}
	}
}

// TestBudgetsWithoutBetaLabel: the label by which policy/v1beta1 knew empty selectors goes.
func TestBudgetsWithoutBetaLabel(t *testing.T) {
	const head, label = "{apiVersion: policy/v1, kind: PodDisruptionBudget, spec: {selector: ", "pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match"
	for selector, want := range map[string]string{
		"{matchExpressions: [{key: " + label + ", operator: Exists}]}":                             "",
		"{matchExpressions: [{key: " + label + ", operator: DoesNotExist}]}":                       "{}",
		"{matchExpressions: [{key: " + label + ", operator: Exists}, {key: a, operator: Exists}]}": "{matchExpressions: [{key: a, operator: Exists}]}",
	} {
		if want == "" {
			want = selector
		}
		_, got := prepared(t, head+selector+"}}")
		_, expected := decodedAsIs(t, head+want+"}}")
		if left := got.(*policyv1.PodDisruptionBudget).Spec.Selector; !equality.Semantic.DeepEqual(left, expected.(*policyv1.PodDisruptionBudget).Spec.Selector) {
			t.Errorf("of %s is left %+v", selector, left)
		}
	}
}
