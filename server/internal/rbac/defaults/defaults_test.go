package defaults

import (
	"os"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/registry/namespace"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin"
	"github.com/levelwire/levelwire/storage/memory"
)

// TestDefaultsAreThoseOfKubernetes compares the tables with the listing of what
// Kubernetes 1.37 publishes: per role, resource by resource, and per binding, subject by
// subject.
func TestDefaultsAreThoseOfKubernetes(t *testing.T) {
	file, err := os.ReadFile(published)
	if err != nil {
		t.Fatal(err)
	}
	want := entries(strings.Split(strings.TrimSpace(string(file)), "\n"))
	got := entries(listing(own()))
	for head, lines := range want {
		if is, ok := got[head]; !ok {
			t.Errorf("missing: %s", head)
		} else if !slices.Equal(is, lines) {
			t.Errorf("%s:\n got %s\nwant %s", head, strings.Join(is, "\n     "), strings.Join(lines, "\n     "))
		}
	}
	for head := range got {
		if _, ok := want[head]; !ok {
			t.Errorf("not in Kubernetes: %s", head)
		}
	}
}

type fixture struct {
	*testing.T
	set *registry.Set
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	store, err := memory.Open(memory.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, store.Close()) })
	set, err := registry.NewSet(registry.Config{Store: store, Resources: builtin.Table()})
	must(t, err)
	for _, name := range namespace.System() {
		must(t, namespace.Ensure(t.Context(), set, name))
	}
	return &fixture{t, set}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (f *fixture) ensure() {
	f.Helper()
	must(f.T, Ensure(f.Context(), f.set))
}

func get[T resource.Object](f *fixture, like T) T {
	f.Helper()
	r, err := registryOf(f.set, like)
	must(f.T, err)
	obj, err := registry.GetAs[T](f.Context(), r, like.GetNamespace(), like.GetName())
	must(f.T, err)
	return obj
}

func change[T resource.Object](f *fixture, like T, change func(T)) {
	f.Helper()
	r, err := registryOf(f.set, like)
	must(f.T, err)
	_, err = r.Update(f.Context(), like.GetNamespace(), like.GetName(), func(current resource.Object) (resource.Object, error) {
		obj := current.DeepCopyObject().(T)
		change(obj)
		return obj, nil
	}, registry.UpdateOptions{WriteOptions: registry.ServerWrites, Unconditional: true})
	must(f.T, err)
}

// TestReconciliation: what is missing comes back, what was added stays, and what is
// protected stays as it is.
func TestReconciliation(t *testing.T) {
	f := newFixture(t)
	f.ensure()
	dns, basic := clusterRole("system:kube-dns"), clusterRoleBinding("system:basic-user")
	change(f, dns, func(r *rbacv1.ClusterRole) {
		r.Labels = map[string]string{"mine": "1"}
		r.Rules = []rbacv1.PolicyRule{on("list", "core", "services"), on("get", "example.com", "tests")}
	})
	change(f, basic, func(b *rbacv1.ClusterRoleBinding) { b.Subjects = []rbacv1.Subject{user("jane")} })
	proxy := clusterRole("system:node-proxier")
	change(f, proxy, func(r *rbacv1.ClusterRole) {
		r.Annotations[rbacv1.AutoUpdateAnnotationKey] = "false"
		r.Rules = nil
	})
	node := clusterRoleBinding("system:node", group("my-nodes"))
	change(f, node, func(b *rbacv1.ClusterRoleBinding) { b.Subjects = node.Subjects })
	r, err := registryOf(f.set, dns)
	must(t, err)
	_, err = r.Delete(t.Context(), "", "view", nil)
	must(t, err)
	r, err = registryOf(f.set, basic)
	must(t, err)
	_, err = r.Delete(t.Context(), "", "system:discovery", nil)
	must(t, err)
	other := clusterRoleBinding("system:discovery", user("joe"))
	other.RoleRef.Name = "cluster-admin"
	_, err = r.Create(t.Context(), "", other, registry.ServerWrites)
	must(t, err)

	f.ensure()
	role := get(f, dns)
	if got := strings.Join(permissions(role.Rules), ""); got != "\tendpoints.: list watch\tservices.: list watch\ttests.example.com: get" {
		t.Errorf("the role has %s", got)
	}
	if role.Labels["mine"] != "1" || role.Labels[bootstrappingLabel] != bootstrappingValue {
		t.Errorf("the role has the labels %v", role.Labels)
	}
	if got := get(f, basic).Subjects; !slices.Equal(got, []rbacv1.Subject{user("jane"), group("system:authenticated")}) {
		t.Errorf("the binding has %v", got)
	}
	if got := get(f, proxy).Rules; len(got) != 0 {
		t.Errorf("the protected role has %v", got)
	}
	if got := get(f, node).Subjects; !slices.Equal(got, node.Subjects) {
		t.Errorf("the binding without subjects of its own has %v", got)
	}
	if get(f, clusterRole("view")).AggregationRule == nil {
		t.Error("view is not aggregated")
	}
	if got := get(f, other); got.RoleRef.Name != "system:discovery" || !slices.Equal(got.Subjects, []rbacv1.Subject{group("system:authenticated")}) {
		t.Errorf("the binding of another role became %v of %v", got.Subjects, got.RoleRef)
	}
	before := role.ResourceVersion
	f.ensure()
	if after := get(f, dns).ResourceVersion; after != before {
		t.Errorf("a start without anything to do wrote %s after %s", after, before)
	}
}

// TestAggregatedRolesBeginWithTheirRules: a new cluster's aggregated roles have the rules
// of their parts at once, without an aggregation; but not if a part was there, because an
// administrator may have taken rules out of it.
func TestAggregatedRolesBeginWithTheirRules(t *testing.T) {
	f := newFixture(t)
	f.ensure()
	view, edit, admin := get(f, clusterRole("view")), get(f, clusterRole("edit")), get(f, clusterRole("admin"))
	if len(view.Rules) == 0 || len(edit.Rules) <= len(view.Rules) || len(admin.Rules) <= len(edit.Rules) {
		t.Errorf("view, edit and admin have %d, %d and %d rules", len(view.Rules), len(edit.Rules), len(admin.Rules))
	}
	part := clusterRole("system:aggregate-to-view")
	change(f, part, func(r *rbacv1.ClusterRole) {
		r.Annotations[rbacv1.AutoUpdateAnnotationKey] = "false"
		r.Rules = nil
	})
	r, err := registryOf(f.set, view)
	must(t, err)
	_, err = r.Delete(t.Context(), "", "view", nil)
	must(t, err)
	change(f, edit, func(r *rbacv1.ClusterRole) { r.Rules = r.Rules[:1] })
	f.ensure()
	if view, edit := get(f, clusterRole("view")), get(f, clusterRole("edit")); len(view.Rules) != 0 || len(edit.Rules) != 1 {
		t.Errorf("view has %v and edit %v, want none and one until they are aggregated", view.Rules, edit.Rules)
	}
}
