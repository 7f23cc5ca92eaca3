package rbac

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/auth/rbac/validation"

	"github.com/levelwire/levelwire/server/internal/auth"
)

// numbered returns names that begin with prefix.
func numbered(prefix string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprint(prefix, i)
	}
	return names
}

// TestWideRules: rules with more combinations than fit into memory mean what others do.
func TestWideRules(t *testing.T) {
	const many = 20_000
	for name, rule := range map[string]rbacv1.PolicyRule{
		"groups and resources": {Verbs: []string{"get", "own"}, APIGroups: numbered("g", many), Resources: append(numbered("r", many), "p/s", "*/t")},
		"and names":            {Verbs: []string{"get", "own"}, APIGroups: numbered("g", many), Resources: numbered("r", many), ResourceNames: numbered("n", many)},
		"every group":          {Verbs: []string{"*"}, APIGroups: append(numbered("g", many), "*"), Resources: numbered("r", many)},
		"every resource":       {Verbs: []string{"get"}, APIGroups: numbered("g", many), Resources: append(numbered("r", many), "*")},
	} {
		rules := []rbacv1.PolicyRule{{Verbs: []string{"list"}, APIGroups: []string{"g1"}, Resources: []string{"r1"}}, rule}
		set := compile(rules)
		if len(set.wide) != 1 {
			t.Errorf("%s: %d rules are not compiled", name, len(set.wide))
		}
		for _, verb := range []string{"get", "own", "list", "*"} {
			for _, group := range []string{"g1", "other"} {
				for _, resource := range []string{"r1", "p", "other"} {
					for _, subresource := range []string{"", "s", "t", "u"} {
						for _, object := range []string{"", "n1", "x"} {
							a := auth.Attributes{Verb: verb, Group: group, Version: "v1", Resource: resource, Subresource: subresource, Name: object}
							want := ruleAllows(rules[0], a) || ruleAllows(rules[1], a)
							q := questionOf(&a)
							if got := set.allows(&q) != notFound; got != want {
								t.Errorf("%s: %+v is %v, want %v", name, a, got, want)
							}
						}
					}
				}
			}
		}
	}
}

// TestWideRulesTakeLittle: rules are not compiled to the square of what they are.
func TestWideRulesTakeLittle(t *testing.T) {
	for _, side := range []int{20, 70, 223} {
		rule := rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: numbered("g", side), Resources: numbered("r", side)}
		rules := slices.Repeat([]rbacv1.PolicyRule{rule}, 3)
		if n := len(compile(rules).resources); n > combinationsPerString*2*side {
			t.Errorf("a rule of %d groups and resources is compiled to %d keys", side, n)
		}
	}
	narrow := compile([]rbacv1.PolicyRule{manyResources(), {Verbs: []string{"get"}, APIGroups: numbered("g", 8), Resources: numbered("r", 8)}})
	if len(narrow.wide) > 0 || len(narrow.resources) != 1064 {
		t.Errorf("%d rules of many resources or of a few groups and resources are not compiled", len(narrow.wide))
	}
}

// TestManyRules: rules about one resource, or one URL, are not copied for each other, and roles that
// are aggregated are compared by what they have.
func TestManyRules(t *testing.T) {
	const many = 20_000
	var same, urls []rbacv1.PolicyRule
	for i := range many {
		same = append(same, rbacv1.PolicyRule{Verbs: []string{fmt.Sprint("v", i)}, APIGroups: []string{""}, Resources: []string{"pods"}})
		urls = append(urls, rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: []string{fmt.Sprint("/", i, "/*")}})
	}
	q := questionOf(&auth.Attributes{Verb: fmt.Sprint("v", many-1), Version: "v1", Resource: "pods"})
	if compile(same).allows(&q) == notFound {
		t.Error("the last verb is not allowed")
	}
	q = questionOf(&auth.Attributes{Verb: "get", Path: fmt.Sprint("/", many-1, "/x")})
	if compile(urls).allows(&q) == notFound {
		t.Error("the last URL is not allowed")
	}
	role := clusterRole("all")
	role.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{}}}
	if n := len(AggregatedRules(role, []*rbacv1.ClusterRole{clusterRole("a", same...), clusterRole("b", urls...), clusterRole("c", same...)})); n != 2*many {
		t.Errorf("%d rules, want %d", n, 2*many)
	}
}

// TestUncovered: what the library says, for roles that it can take apart. Of others, it is only said
// that they are granted as a whole.
func TestUncovered(t *testing.T) {
	pods := rbacv1.PolicyRule{Verbs: []string{"get", "list"}, APIGroups: []string{""}, Resources: []string{"pods", "*/log"}}
	urls := rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: []string{"/a/*", "/b"}}
	one := rbacv1.PolicyRule{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"secrets"}, ResourceNames: []string{"n"}}
	for name, has := range map[string][]rbacv1.PolicyRule{"nothing": nil, "pods": {pods}, "urls": {urls}, "some": {pods, urls, one}, "all": everything} {
		for i, wanted := range [][]rbacv1.PolicyRule{
			nil, {pods}, {urls}, {one}, {pods, urls, one}, everything, {rule("get", "", "pods/log")}, {rule("watch", "", "pods")}, {rule("get", "", "nodes/log")}, {rule("*", "", "pods")},
			{rule("get", "*", "secrets")}, {{Verbs: []string{"get"}, APIGroups: []string{"x"}, Resources: []string{"secrets"}, ResourceNames: []string{"n", "m"}}},
			{{Verbs: []string{"get"}, NonResourceURLs: []string{"/a/b", "/b", "/c"}}}, {{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}, NonResourceURLs: []string{"/b"}}},
			{{APIGroups: []string{""}, Resources: []string{"pods"}}},
		} {
			_, want := validation.Covers(has, wanted)
			got, err := uncovered(has, wanted)
			if err != nil || fmt.Sprint(got) != fmt.Sprint(append([]rbacv1.PolicyRule(nil), want...)) {
				t.Errorf("%s, %d: %v (%v), want %v", name, i, got, err, want)
			}
		}
	}

	const many = 20_000
	wide := rbacv1.PolicyRule{Verbs: numbered("v", many), APIGroups: numbered("g", many), Resources: numbered("r", many), ResourceNames: numbered("n", many)}
	if missing, err := uncovered(everything, []rbacv1.PolicyRule{wide}); err != nil || len(missing) > 0 {
		t.Errorf("a wide rule for a user who has all: %d missing (%v)", len(missing), err)
	}
	one = rbacv1.PolicyRule{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: wide.Resources[1:]}
	if _, err := uncovered([]rbacv1.PolicyRule{pods, one}, []rbacv1.PolicyRule{wide}); !errors.Is(err, errTooManyParts) {
		t.Errorf("a wide rule for a user who has most: %v", err)
	}
	var small []rbacv1.PolicyRule
	for i := range many {
		small = append(small, rule("get", "", fmt.Sprint("r", i)))
	}
	if _, err := uncovered(small, small); !errors.Is(err, errTooManyParts) {
		t.Errorf("many rules for a user who has many: %v", err)
	}
	if missing, err := uncovered([]rbacv1.PolicyRule{pods}, small); err != nil || len(missing) != many {
		t.Errorf("many rules for a user who has few: %d missing (%v)", len(missing), err)
	}
}
