package rbac

import (
	"fmt"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/levelwire/levelwire/server/internal/auth"
)

// TestRepeatedSubjects: a binding gives a role to a subject once, however often it names it. When each time counted,
// a change of one of two bindings looked at those of the other for each of its own: 2 s for 50,000 subjects, which is
// what fits into a request, and all decisions waited for it.
func TestRepeatedSubjects(t *testing.T) {
	p := newPolicy(newCompiledRoom(maxCompiledBytes))
	role := objectKey{"one", "role"}
	p.setRole(role, []rbacv1.PolicyRule{rule("get", "", "pods")})
	subjects := slices.Repeat([]rbacv1.Subject{{Kind: rbacv1.UserKind, Name: "jane"}, {Kind: rbacv1.GroupKind, Name: "dev"}, {Kind: rbacv1.ServiceAccountKind, Name: "a"}}, 100)
	subjects = append(subjects, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: "a", Namespace: "one"}, rbacv1.Subject{Kind: rbacv1.UserKind, Name: auth.ServiceAccountName("one", "a")})
	a, b := objectKey{"one", "a"}, objectKey{"one", "b"}
	p.bind(a, role, subjects)
	p.bind(b, role, subjects)
	p.bind(a, role, subjects)
	grants := func() (n []int) {
		for _, of := range []*grants{p.users["jane"], p.groups["dev"], p.users[auth.ServiceAccountName("one", "a")]} {
			n = append(n, len(of.at("one").roles[0].by))
		}
		return n
	}
	if got := grants(); !slices.Equal(got, []int{2, 2, 2}) {
		t.Errorf("two bindings make %v grants, want 2 of each subject", got)
	}
	p.removeBinding(b)
	if got := grants(); !slices.Equal(got, []int{1, 1, 1}) {
		t.Errorf("one binding makes %v grants, want 1 of each subject", got)
	}
	p.removeBinding(a)
	if len(p.users) != 0 || len(p.groups) != 0 || len(p.roles[role].scopes) != 0 {
		t.Errorf("%d users and %d groups have roles without bindings", len(p.users), len(p.groups))
	}
}

// TestManyMergedRules: the rules of a user with very many are asked role by role, and not compiled together after each
// change of one of them: a decision holds up changes, and these all others.
func TestManyMergedRules(t *testing.T) {
	p := newPolicy(newCompiledRoom(maxCompiledBytes))
	for i := range 2 * fewRoles {
		var rules []rbacv1.PolicyRule
		for n := range maxCompiledKeys / fewRoles {
			rules = append(rules, rule("get", "", fmt.Sprintf("r%d-%d", i, n)))
		}
		role := objectKey{"one", fmt.Sprint("role", i)}
		p.setRole(role, rules)
		p.bind(objectKey{"one", fmt.Sprint("binding", i)}, role, []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: "jane"}})
	}
	for range 2 * scansBeforeMerge {
		a := auth.Attributes{User: auth.User{Name: "jane"}, Verb: "get", Version: "v1", Namespace: "one", Resource: fmt.Sprintf("r%d-7", 2*fewRoles-1)}
		if _, allowed, _ := p.decide(&a); !allowed {
			t.Fatal("a rule of the last role does not count")
		}
	}
	if p.users["jane"].at("one").merged.Load() != nil {
		t.Errorf("%d rules were compiled together", 2*maxCompiledKeys)
	}
}
