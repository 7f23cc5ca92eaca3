package rbac

import (
	"context"
	"fmt"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/storage"
)

// TestChangesCostWhatTheyTouch: a change is seen by the views of its subjects and of those who have its role. When every
// view went through all subjects, a binding with 50,000 of them cost 0.4 ms a view, and everything that is filtered waited.
func TestChangesCostWhatTheyTouch(t *testing.T) {
	f, ctx, h, v := followedHistory(t, "someone")
	stranger := f.unasked(h, "n0")
	group, err := h.View(ctx, auth.User{Name: "member", Groups: []string{"dev"}}, "", "pods", []string{"list"}, 0)
	must(t, err)
	defer group.Close()

	f.bind("n0", append(numbered("other", 1000), "someone")...)
	f.create("rolebindings", &rbacv1.RoleBinding{ObjectMeta: named("n1", "devs"), RoleRef: roleRef("ClusterRole", "lister"), Subjects: []rbacv1.Subject{{Kind: "Group", APIGroup: rbacv1.GroupName, Name: "dev"}}})
	must(t, h.Wait(ctx, f.setRules("lister", rule("list", "", "pods"), rule("get", "", "pods"))))
	for v, want := range map[*View][]string{v: {"n0"}, group: {"n1"}} {
		if got := v.Now().Names(); !slices.Equal(got, want) {
			t.Errorf("%s sees %v, want %v", v.user.Name, got, want)
		}
	}
	if len(stranger.policy.bindings) != 1 {
		t.Error("a view has looked at a binding of others")
	}
	if n := len(v.policy.users); n != 1 {
		t.Errorf("a view has the grants of %d users, want those of its own", n)
	}

	must(t, h.Wait(ctx, f.setRules("lister", rule("list", "", "nodes"))))
	for _, v := range []*View{v, group} {
		if got := v.Now().Names(); len(got) > 0 {
			t.Errorf("%s sees %v without a rule", v.user.Name, got)
		}
	}
	must(t, h.Wait(ctx, f.setRules("lister", rule("list", "", "pods"))))
	f.delete("rolebindings", "n1", "devs")
	must(t, h.Wait(ctx, f.bind("n2", "someone")))
	for v, want := range map[*View][]string{v: {"n0", "n2"}, group: nil} {
		if got := v.Now().Names(); !slices.Equal(got, want) {
			t.Errorf("%s sees %v, want %v", v.user.Name, got, want)
		}
	}
}

// unasked returns a view of a stranger with the binding of a namespace that f.bind makes, which it would lose if it
// looked at a change of that.
func (f *fixture) unasked(h *History, namespace string) *View {
	v := &View{history: h, subjects: subjectsOf(&auth.User{Name: "stranger", Groups: []string{"strangers"}}), policy: newPolicy(newCompiledRoom(maxCompiledBytes))}
	v.policy.bind(objectKey{namespace, "listers"}, objectKey{name: "lister"}, []rbacv1.Subject{user("stranger")})
	v.versions.Store(&[]viewVersion{{0, v.compute()}})
	h.mu.Lock()
	defer h.mu.Unlock()
	h.views.add(v)
	return v
}

// TestViewsLeaveTheIndex: a view that is closed, and not kept for the next use, is found no more.
func TestViewsLeaveTheIndex(t *testing.T) {
	_, ctx, h, v := followedHistory(t, "someone")
	for i := range 2 * maxIdleViews {
		other, err := openView(ctx, h, fmt.Sprint("user", i), 0)
		must(t, err)
		other.Close()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := len(h.views.bySubject); n != maxIdleViews+1 || len(h.views.all) != n {
		t.Errorf("%d views of %d users are kept, want %d", len(h.views.all), n, maxIdleViews+1)
	}
	if _, ok := h.views.bySubject[subject{name: v.user.Name}]; !ok {
		t.Error("a view that is open is not found")
	}
}

// setRules replaces the rules of a ClusterRole, and returns the revision of that.
func (f *fixture) setRules(name string, rules ...rbacv1.PolicyRule) storage.Revision {
	f.Helper()
	updated, err := f.of("clusterroles").Update(context.Background(), "", name, func(current resource.Object) (resource.Object, error) {
		role := current.DeepCopyObject().(*rbacv1.ClusterRole)
		role.Rules = rules
		return role, nil
	}, registry.UpdateOptions{Unconditional: true})
	must(f, err)
	return updated.Revision
}

// BenchmarkChangeBesideViews measures a change of a binding with 50,000 subjects, while 1,000 views of others are open.
func BenchmarkChangeBesideViews(b *testing.B) {
	f := newFixture(b)
	h := f.history()
	for i := range 1000 {
		v, err := openView(b.Context(), h, fmt.Sprint("viewer", i), 0)
		must(b, err)
		defer v.Close()
	}
	must(b, h.Wait(b.Context(), f.bind("n0", numbered("user", 50_000)...)))
	h.mu.Lock()
	defer h.mu.Unlock()
	changes := slices.Clone(h.changes[len(h.changes)-1:])
	b.ReportAllocs()
	for b.Loop() {
		h.applyToViews(changes[0].revision, changes)
	}
}
