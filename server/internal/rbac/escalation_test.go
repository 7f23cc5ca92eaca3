package rbac

import (
	"context"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
)

// TestEscalation: users grant what they have, or what escalate and bind let them grant.
func TestEscalation(t *testing.T) {
	f := newFixture(t)
	f.start()
	x := f.index()
	f.set.Admit(x.PreventEscalation(x))
	grant := func(who, namespace string, rules ...rbacv1.PolicyRule) {
		name := strings.Join([]string{who, namespace, "grant"}, "-")
		f.create("clusterroles", clusterRole(name, rules...))
		subjects := []rbacv1.Subject{user(who)}
		if namespace == "" {
			f.create("clusterrolebindings", &rbacv1.ClusterRoleBinding{ObjectMeta: named("", name), RoleRef: roleRef("ClusterRole", name), Subjects: subjects})
		} else {
			f.create("rolebindings", &rbacv1.RoleBinding{ObjectMeta: named(namespace, name), RoleRef: roleRef("ClusterRole", name), Subjects: subjects})
		}
	}
	pods := rbacv1.PolicyRule{Verbs: []string{"get", "list"}, APIGroups: []string{""}, Resources: []string{"pods", "pods/log"}}
	grant("jane", "a", pods)
	grant("joe", "", pods)
	grant("eve", "", rule("escalate", rbacv1.GroupName, "*"), rule("bind", rbacv1.GroupName, "*"))
	grant("bob", "a", rbacv1.PolicyRule{Verbs: []string{"bind"}, APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles"}, ResourceNames: []string{"secrets"}})
	grant("root", "", everything...)
	f.create("clusterroles", clusterRole("secrets", rule("get", "", "secrets"), rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: []string{"/metrics"}}))
	f.create("clusterroles", clusterRole("pods", rule("get", "", "pods")))
	role := func(namespace string, rules ...rbacv1.PolicyRule) resource.Object {
		if namespace == "" {
			return clusterRole("new", rules...)
		}
		return &rbacv1.Role{ObjectMeta: named(namespace, "new"), Rules: rules}
	}
	binding := func(namespace, of string) resource.Object {
		if namespace == "" {
			return &rbacv1.ClusterRoleBinding{ObjectMeta: named("", "new"), RoleRef: roleRef("ClusterRole", of), Subjects: []rbacv1.Subject{user("x")}}
		}
		return &rbacv1.RoleBinding{ObjectMeta: named(namespace, "new"), RoleRef: roleRef("ClusterRole", of), Subjects: []rbacv1.Subject{user("x")}}
	}
	aggregated := clusterRole("new")
	aggregated.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"a": "b"}}}}
	const held = "is attempting to grant RBAC permissions not currently held:\n"
	for name, test := range map[string]struct {
		user string
		obj  resource.Object
		want string // of the error; "" if it is allowed
	}{
		"what the user has":                  {"jane", role("a", rule("get", "", "pods/log")), ""},
		"elsewhere":                          {"jane", role("b", rule("get", "", "pods")), `roles.rbac.authorization.k8s.io "new" is forbidden: user "jane" (groups=["dev"]) ` + held + `{APIGroups:[""], Resources:["pods"], Verbs:["get"]}`},
		"a ClusterRole":                      {"joe", role("", pods), ""},
		"more verbs":                         {"joe", role("", rbacv1.PolicyRule{Verbs: []string{"watch", "get", "delete"}, APIGroups: []string{""}, Resources: []string{"pods"}}), `clusterroles.rbac.authorization.k8s.io "new" is forbidden: user "joe" (groups=["dev"]) ` + held + `{APIGroups:[""], Resources:["pods"], Verbs:["watch" "delete"]}`},
		"any name":                           {"joe", role("", rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}, ResourceNames: []string{"x"}}), ""},
		"who may escalate":                   {"eve", role("", rule("*", "*", "*")), ""},
		"a binding of it":                    {"joe", binding("", "pods"), ""},
		"a binding in the namespace":         {"jane", binding("a", "pods"), ""},
		"a binding of more":                  {"joe", binding("a", "secrets"), `rolebindings.rbac.authorization.k8s.io "new" is forbidden: user "joe" (groups=["dev"]) ` + held + "{APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"get\"]}\n{NonResourceURLs:[\"/metrics\"], Verbs:[\"get\"]}"},
		"who may bind":                       {"eve", binding("", "secrets"), ""},
		"who may bind one there":             {"bob", binding("a", "secrets"), ""},
		"who may bind one elsewhere":         {"bob", binding("", "secrets"), held},
		"who may bind another":               {"bob", binding("a", "pods"), held},
		"a binding of what does not exist":   {"joe", binding("a", "nothing"), `clusterroles.rbac.authorization.k8s.io "nothing" not found`},
		"who may bind what does not exist":   {"eve", binding("a", "nothing"), ""},
		"an aggregated role":                 {"joe", aggregated, `clusterroles.rbac.authorization.k8s.io "new" is forbidden: must have cluster-admin privileges to use the aggregationRule`},
		"an aggregated role by who has all":  {"root", aggregated, ""},
		"an aggregated role, with escalate":  {"eve", aggregated, ""},
		"everything by who has all":          {"root", role("", rule("*", "*", "*")), ""},
		"a namespace of the administrator's": {"system:admin", role("a", rule("*", "*", "*")), ""},
	} {
		plural := ""
		switch test.obj.(type) {
		case *rbacv1.Role:
			plural = "roles"
		case *rbacv1.ClusterRole:
			plural = "clusterroles"
		case *rbacv1.RoleBinding:
			plural = "rolebindings"
		case *rbacv1.ClusterRoleBinding:
			plural = "clusterrolebindings"
		}
		u := auth.User{Name: test.user, Groups: []string{"dev"}}
		if test.user == "system:admin" {
			u.Groups = []string{auth.Masters}
		}
		ctx := auth.WithUser(t.Context(), u)
		_, err := f.of(plural).Create(ctx, test.obj.GetNamespace(), test.obj.DeepCopyObject().(resource.Object), registry.WriteOptions{DryRun: true})
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: %v, want %s", name, err, test.want)
		}
	}
}

// TestEscalationByUpdates: the same holds for changes, except those that garbage
// collection makes.
func TestEscalationByUpdates(t *testing.T) {
	f := newFixture(t)
	f.start()
	x := f.index()
	f.set.Admit(x.PreventEscalation(x))
	f.create("clusterroles", clusterRole("powerful", rule("*", "*", "*")))
	f.create("clusterrolebindings", &rbacv1.ClusterRoleBinding{ObjectMeta: named("", "powerful"), RoleRef: roleRef("ClusterRole", "powerful")})
	ctx := auth.WithUser(t.Context(), auth.User{Name: "jane"})
	update := func(ctx context.Context, plural string, change func(resource.Object)) error {
		_, err := f.of(plural).Update(ctx, "", "powerful", func(current resource.Object) (resource.Object, error) {
			obj := current.DeepCopyObject().(resource.Object)
			change(obj)
			return obj, nil
		}, registry.UpdateOptions{Unconditional: true})
		return err
	}
	for _, plural := range []string{"clusterroles", "clusterrolebindings"} {
		if err := update(ctx, plural, func(obj resource.Object) { obj.SetFinalizers([]string{"example.com/x"}) }); err != nil {
			t.Errorf("a finalizer in %s: %v", plural, err)
		}
		if err := update(ctx, plural, func(obj resource.Object) { obj.SetLabels(map[string]string{"aggregate": "me"}) }); !apierrors.IsForbidden(err) {
			t.Errorf("a label in %s: %v", plural, err)
		}
		if err := update(t.Context(), plural, func(obj resource.Object) { obj.SetLabels(map[string]string{"by": "the-server"}) }); err != nil {
			t.Errorf("the server's own write of %s: %v", plural, err)
		}
	}
	if err := update(ctx, "clusterrolebindings", func(obj resource.Object) {
		obj.(*rbacv1.ClusterRoleBinding).Subjects = []rbacv1.Subject{user("jane")}
	}); !apierrors.IsForbidden(err) {
		t.Errorf("a subject: %v", err)
	}
	if err := update(ctx, "clusterroles", func(obj resource.Object) { obj.(*rbacv1.ClusterRole).Rules = nil }); err != nil {
		t.Errorf("fewer rules: %v", err)
	}
}

func TestDescribe(t *testing.T) {
	got := describe([]rbacv1.PolicyRule{
		rule("list", "", "pods"), rule("get", "", "pods"), rule("get", "apps", "pods"), rule("get", "apps", "pods"),
		{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}, ResourceNames: []string{"x"}},
		{Verbs: []string{"get"}, NonResourceURLs: []string{"/b"}}, {Verbs: []string{"get"}, NonResourceURLs: []string{"/b"}},
	})
	want := []string{
		`{APIGroups:[""], Resources:["pods"], ResourceNames:["x"], Verbs:["get"]}`,
		`{APIGroups:[""], Resources:["pods"], Verbs:["list" "get"]}`,
		`{APIGroups:["apps"], Resources:["pods"], Verbs:["get" "get"]}`,
		`{NonResourceURLs:["/b"], Verbs:["get"]}`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
