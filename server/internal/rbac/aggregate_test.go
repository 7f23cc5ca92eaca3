package rbac

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/watchcache"
)

// TestAggregation: an aggregated role has the rules of the roles with its label, in
// several steps too, and loses them with these.
func TestAggregation(t *testing.T) {
	f := newFixture(t)
	f.start()
	x := f.index()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	var running sync.WaitGroup
	running.Go(func() { x.NewAggregator().Run(ctx) })
	defer running.Wait()
	defer cancel()
	labelled := func(name, label string, rules ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
		role := clusterRole(name, rules...)
		role.Labels = map[string]string{label: "true"}
		return role
	}
	aggregated := func(role *rbacv1.ClusterRole, label string) *rbacv1.ClusterRole {
		role.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{label: "true"}}}}
		return role
	}
	f.create("clusterroles", aggregated(clusterRole("admin"), "to-admin"))
	f.create("clusterroles", aggregated(labelled("edit", "to-admin"), "to-edit"))
	f.create("clusterroles", labelled("editor", "to-edit", rule("update", "", "pods")))
	f.create("clusterrolebindings", &rbacv1.ClusterRoleBinding{
		ObjectMeta: named("", "admins"), RoleRef: roleRef("ClusterRole", "admin"), Subjects: []rbacv1.Subject{user("jane")},
	})
	asked := auth.Attributes{User: auth.User{Name: "jane"}, Verb: "update", Resource: "pods"}
	f.await(ctx, x, asked, auth.Allow)
	f.create("clusterroles", labelled("other", "to-edit", rule("update", "", "pods"), rule("get", "", "nodes")))
	f.await(ctx, x, auth.Attributes{User: asked.User, Verb: "get", Resource: "nodes"}, auth.Allow)
	f.delete("clusterroles", "", "other")
	f.await(ctx, x, auth.Attributes{User: asked.User, Verb: "get", Resource: "nodes"}, auth.NoOpinion)
	f.delete("clusterroles", "", "editor")
	f.await(ctx, x, asked, auth.NoOpinion)
	role, err := registry.GetAs[*rbacv1.ClusterRole](ctx, f.of("clusterroles"), "", "edit")
	must(t, err)
	owned := slices.ContainsFunc(role.ManagedFields, func(m metav1.ManagedFieldsEntry) bool { return m.Manager == aggregationManager })
	if len(role.Rules) != 0 || !owned {
		t.Errorf("%+v", role)
	}
}

// TestLateAggregation: a server that aggregated what it read earlier leaves what another one has
// written since, of newer parts. Rights of a part that was gone counted again before.
func TestLateAggregation(t *testing.T) {
	f := newFixture(t)
	f.start()
	role := clusterRole("edit")
	role.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"to-edit": "true"}}}}
	f.create("clusterroles", role)
	ctx := t.Context()
	read := func() *rbacv1.ClusterRole {
		role, err := registry.GetAs[*rbacv1.ClusterRole](ctx, f.of("clusterroles"), "", "edit")
		must(t, err)
		return role
	}
	a := f.index().NewAggregator()
	earlier := read()
	newer, older := []rbacv1.PolicyRule{rule("get", "", "pods")}, []rbacv1.PolicyRule{rule("update", "", "pods")}
	must(t, a.write(ctx, earlier, newer))
	written := read()
	must(t, a.write(ctx, earlier, older))
	if got := read(); got.ResourceVersion != written.ResourceVersion || !slices.EqualFunc(got.Rules, newer, equalRules) {
		t.Errorf("version %s, rules %v; the first write made version %s and rules %v", got.ResourceVersion, got.Rules, written.ResourceVersion, newer)
	}
	must(t, a.write(ctx, written, older))
	if got := read(); !slices.EqualFunc(got.Rules, older, equalRules) {
		t.Errorf("rules %v of the newest version", got.Rules)
	}
}

// await waits until roles change so that a decision is as wanted.
func (f *fixture) await(ctx context.Context, x *Index, a auth.Attributes, want auth.Decision) {
	f.Helper()
	w, err := f.of("clusterroles").Watch(ctx, nil)
	must(f, err)
	defer w.Close()
	var events [eventBatch]watchcache.Event
	for {
		for n := 1; n > 0; {
			n, err = w.Read(events[:])
			must(f, err)
		}
		got, _, err := x.Authorize(ctx, a)
		must(f, err)
		if got == want {
			return
		}
		select {
		case <-w.Ready():
		case <-ctx.Done():
			f.Fatalf("%s %s: decision %d, want %d", a.Verb, a.Resource, got, want)
		}
	}
}
