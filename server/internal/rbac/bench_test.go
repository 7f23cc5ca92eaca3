package rbac

import (
	"fmt"
	"log/slog"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/levelwire/levelwire/server/internal/auth"
)

// BenchmarkAuthorize measures one decision at 10,000 bindings.
func BenchmarkAuthorize(b *testing.B) {
	const bindings = 10_000
	long := make([]rbacv1.PolicyRule, 0, 60) // a role as long as edit
	for i := range 60 {
		long = append(long, rbacv1.PolicyRule{
			Verbs: []string{"get", "list", "watch", "create", "update"}, APIGroups: []string{"", fmt.Sprint("g", i)},
			Resources: []string{fmt.Sprint("r", i), fmt.Sprint("r", i, "/status"), "pods"},
		})
	}
	everybody := rbacv1.Subject{Kind: "Group", Name: "system:authenticated"}
	for _, layout := range []struct {
		name string
		fill func(*policy)
	}{
		{"namespaces", func(p *policy) { // a user and a namespace for each binding
			p.setRole(objectKey{name: "edit"}, long)
			for i := range bindings {
				p.setBinding(objectKey{fmt.Sprint("ns", i), "edit"}, roleRef("ClusterRole", "edit"), []rbacv1.Subject{user(fmt.Sprint("user", i))})
			}
		}},
		{"one-user", func(p *policy) { // who has one role in every namespace
			p.setRole(objectKey{name: "edit"}, long)
			for i := range bindings {
				p.setBinding(objectKey{fmt.Sprint("ns", i), "edit"}, roleRef("ClusterRole", "edit"), []rbacv1.Subject{user("user7")})
			}
		}},
		{"one-group", func(p *policy) { // to which all bindings give roles of their own
			for i := range bindings {
				key := objectKey{name: fmt.Sprint("role", i)}
				p.setRole(key, []rbacv1.PolicyRule{rule("get", fmt.Sprint("g", i), "pods"), rule("list", "", fmt.Sprint("r", i))})
				p.setBinding(key, roleRef("ClusterRole", key.name), []rbacv1.Subject{everybody})
			}
			p.setRole(objectKey{name: "edit"}, long)
			p.setBinding(objectKey{"ns7", "edit"}, roleRef("ClusterRole", "edit"), []rbacv1.Subject{everybody})
		}},
	} {
		f := newFixture(b)
		f.start()
		x := f.index()
		must(b, x.catchUp(b.Context()))
		layout.fill(x.policy)
		asked := auth.Attributes{
			User: auth.User{Name: "user7", Groups: []string{"dev", "ops", "qa", "system:authenticated"}},
			Verb: "update", Group: "g40", Version: "v1", Resource: "r40", Subresource: "status", Namespace: "ns7", Name: "x",
		}
		for _, question := range []struct {
			verb string
			want auth.Decision
		}{{"update", auth.Allow}, {"delete", auth.NoOpinion}} {
			asked.Verb = question.verb
			b.Run(fmt.Sprintf("%s/%s", layout.name, map[auth.Decision]string{auth.Allow: "allowed", auth.NoOpinion: "refused"}[question.want]), func(b *testing.B) {
				for range 2 * scansBeforeMerge {
					if decision, _, err := x.Authorize(b.Context(), asked); decision != question.want || err != nil {
						b.Fatal(decision, err)
					}
				}
				b.ReportAllocs()
				for b.Loop() {
					_, _, _ = x.Authorize(b.Context(), asked)
				}
			})
		}
	}
}

// BenchmarkChange measures how long a change of a binding takes to be in force, at
// 10,000 bindings.
func BenchmarkChange(b *testing.B) {
	p := newPolicy(newCompiledRoom(maxCompiledBytes))
	p.setRole(objectKey{name: "edit"}, []rbacv1.PolicyRule{rule("get", "", "pods")})
	for i := range 10_000 {
		p.setBinding(objectKey{fmt.Sprint("ns", i), "edit"}, roleRef("ClusterRole", "edit"), []rbacv1.Subject{user(fmt.Sprint("user", i%100))})
	}
	b.ReportAllocs()
	for b.Loop() {
		p.setBinding(objectKey{"ns7", "edit"}, roleRef("ClusterRole", "edit"), []rbacv1.Subject{user("user7")})
	}
}

// TestDecisionsAllocateNothing once the reason has been made.
func TestDecisionsAllocateNothing(t *testing.T) {
	f := newFixture(t)
	f.start()
	x, err := NewIndex(f.set, slog.New(slog.DiscardHandler))
	must(t, err)
	f.create("clusterroles", clusterRole("reader", rule("get", "", "pods/log")))
	f.create("clusterrolebindings", &rbacv1.ClusterRoleBinding{
		ObjectMeta: named("", "readers"), RoleRef: roleRef("ClusterRole", "reader"), Subjects: []rbacv1.Subject{user("jane")},
	})
	for _, verb := range []string{"get", "update"} {
		asked := auth.Attributes{User: auth.User{Name: "jane", Groups: []string{"dev"}}, Verb: verb, Resource: "pods", Subresource: "log", Namespace: "a"}
		if n := testing.AllocsPerRun(100, func() { _, _, _ = x.Authorize(t.Context(), asked) }); n != 0 {
			t.Errorf("%s: %v allocations", verb, n)
		}
	}
}
