package builtin_test

import (
	"slices"
	"testing"
)

func TestRolesAndBindings(t *testing.T) {
	const (
		group     = `supported values: "rbac.authorization.k8s.io"`
		selectors = "aggregationRule.clusterRoleSelectors"
	)
	checkRefusals(t, []refusal{
		{"rolebinding", []string{"roleRef={}"}, []string{
			`roleRef.kind: Unsupported value: "": supported values: "Role", "ClusterRole"`, "roleRef.name: Required value",
		}},
		{"rolebinding", []string{"roleRef={apiGroup: v1, kind: Role, name: a}"}, []string{`roleRef.apiGroup: Unsupported value: "v1": ` + group}},
		{"rolebinding", []string{"subjects=[{kind: ServiceAccount, name: A}, {kind: ServiceAccount, apiGroup: v1, name: a}, {kind: User, name: a, apiGroup: v1}, {kind: '', name: ''}]"}, []string{
			`subjects[0].name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character` +
				` (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`,
			`subjects[1].apiGroup: Unsupported value: "v1": supported values: ""`,
			`subjects[2].apiGroup: Unsupported value: "v1": ` + group,
			`subjects[3].kind: Unsupported value: "": supported values: "ServiceAccount", "User", "Group"`,
			"subjects[3].name: Required value",
		}},
		{"clusterrole", nil, nil},
		{"clusterrole", []string{selectors + "=[]", "rules=[{}, {nonResourceURLs: [/a], resources: [pods]}]"}, []string{
			"rules[0].apiGroups: Required value: resource rules must supply at least one api group",
			"rules[0].resources: Required value: resource rules must supply at least one resource",
			`rules[1].nonResourceURLs: Invalid value: ["/a"]: rules cannot apply to both regular resources and non-resource URLs`,
			selectors + ": Required value: at least one clusterRoleSelector required if aggregationRule is non-nil",
			"rules[0].verbs: Required value", "rules[1].verbs: Required value",
		}},
		{"clusterrole", []string{selectors + ".0.matchExpressions=[{key: a, operator: Near}]"}, []string{
			selectors + `[0].matchExpressions[0].operator: Invalid value: "Near": not a valid selector operator`,
			selectors + "[0]: Invalid value: null: invalid label selector.",
		}},
	})
}

// TestUpdatesOfRoles: the role of a binding stays, and selectors that were wrong may stay so.
func TestUpdatesOfRoles(t *testing.T) {
	r, old := manifest(t, "rolebinding")
	_, obj := manifest(t, "rolebinding", "roleRef.name=other")
	if got := r.Strategy.ValidateUpdate(obj, old).ToAggregate(); got == nil || got.Error() != `roleRef: Invalid value: {"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"other"}: field is immutable` {
		t.Errorf("another role: %v", got)
	}
	const wrong = "aggregationRule.clusterRoleSelectors=[{matchExpressions: [{key: a, operator: In, values: [b c]}]}]"
	r, right := manifest(t, "clusterrole")
	_, obj = manifest(t, "clusterrole", wrong)
	want := []string{"Invalid aggregationRule.clusterRoleSelectors[0]"} // kube-apiserver cannot use it
	if got := complaints(r.Strategy.ValidateUpdate(obj, obj)); !slices.Equal(got, want) {
		t.Errorf("as before: %v", got)
	}
	if got := complaints(r.Strategy.ValidateUpdate(obj, right)); len(got) != 2 {
		t.Errorf("new: %v", got)
	}
}
