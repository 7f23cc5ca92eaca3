package audit

import (
	"fmt"
	"reflect"
	"testing"

	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit/policy"

	"github.com/levelwire/levelwire/server/internal/auth"
)

func groupsFrom(first, n int) []string {
	groups := make([]string, n)
	for i := range groups {
		groups[i] = fmt.Sprint("g", first+i)
	}
	return groups
}

func testPolicy() *auditinternal.Policy {
	yes, no := true, false
	return &auditinternal.Policy{
		OmitStages: []auditinternal.Stage{auditinternal.StageRequestReceived}, OmitManagedFields: true,
		Rules: []auditinternal.PolicyRule{
			{Level: auditinternal.LevelNone, UserGroups: []string{"quiet"}, Verbs: []string{"get"}},
			{Level: auditinternal.LevelRequest, UserGroups: groupsFrom(0, 50), OmitManagedFields: &no},
			{Level: auditinternal.LevelRequestResponse, Users: []string{"jane"}, OmitManagedFields: &yes, OmitStages: []auditinternal.Stage{auditinternal.StagePanic}},
			{Level: auditinternal.LevelNone, NonResourceURLs: []string{"/healthz*"}},
			{Level: auditinternal.LevelMetadata, Resources: []auditinternal.GroupResources{{Resources: []string{"pods/*"}}}},
		},
	}
}

// TestRulesAreThoseOfTheLibrary, whoever the user is.
func TestRulesAreThoseOfTheLibrary(t *testing.T) {
	ours, library := newRules(testPolicy()), policy.NewPolicyRuleEvaluator(testPolicy())
	for _, user := range []auth.User{
		{}, {Groups: []string{"quiet", "g1"}}, {Name: "jane"}, {Name: "jane", Groups: []string{"quiet"}}, {Name: "joe", Groups: []string{"x", "g49"}},
		{Name: "joe", Groups: groupsFrom(49, 100)}, {Name: "joe", Groups: groupsFrom(50, 100)}, {Name: "joe", Groups: append(groupsFrom(50, 100), "quiet")},
	} {
		for _, of := range []auth.Attributes{
			{Verb: "get", Path: "/healthz/x"}, {Verb: "get", Version: "v1", Resource: "pods", Subresource: "log"}, {Verb: "create", Version: "v1", Resource: "pods"},
		} {
			of.User = user
			got, want := ours.configFor(of), library.EvaluatePolicyRule(attributes{of})
			if len(got.OmitStages) != len(want.OmitStages) {
				t.Errorf("%+v: stages %v, want %v", of, got.OmitStages, want.OmitStages)
			}
			got.OmitStages, want.OmitStages = nil, nil // in any order
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%+v: %+v, want %+v", of, got, want)
			}
		}
	}
}

// TestManyGroups: the groups of a user, and those that a rule names, are looked up, and not compared one by one.
func TestManyGroups(t *testing.T) {
	of := testPolicy()
	r := newRules(of)
	clear(of.Rules[0].UserGroups)
	clear(of.Rules[1].UserGroups)
	groups := append(groupsFrom(1000, 5000), "g7")
	if got := r.configFor(auth.Attributes{User: auth.User{Name: "joe", Groups: groups}, Verb: "get"}).Level; got != auditinternal.LevelRequest {
		t.Errorf("a user with 5,000 groups is audited at the level %s", got)
	}
}
