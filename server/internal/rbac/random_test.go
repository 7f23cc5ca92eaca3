package rbac

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/internal/testseed"
	"github.com/levelwire/levelwire/server/internal/auth"
)

var questions = flag.Int("questions", 40_000, "how many random questions TestRandomPolicies asks")

// TestRandomPolicies compares the index with two other evaluations, while roles and
// bindings come, change and go.
func TestRandomPolicies(t *testing.T) {
	r := &generator{testseed.New(t).Rand(0)}
	const perPolicy = 1_000 // 40 policies, of which some allow little
	allowed, setBounds := 0, r.randomBounds(t)
	for asked := 0; asked < *questions; {
		setBounds()
		p, d := newPolicy(newCompiledRoom(pick(r, 0, 4*compiledBytes, maxCompiledBytes))), newDocumented()
		size := 1 + r.IntN(pick(r, 60, 300))
		for i := range size {
			r.change(p, d, size, i%2 == 0)
		}
		for range perPolicy {
			if r.IntN(100) == 0 {
				r.change(p, d, size, r.IntN(2) == 0)
			}
			a := r.attributes()
			var later unasked
			by, got, _ := p.decideQuickly(&a, &later)
			if !got {
				by, got, _ = later.ask(t.Context(), &a, p.room)
			}
			want := d.allows(a)
			if got != want {
				t.Fatalf("%+v is allowed: %v, want %v by %+v", a, got, want, d.rules(a.User, a.Namespace))
			}
			if got {
				allowed++
				r.check(t, by, a)
			}
			if !strings.Contains(a.Resource, "/") && d.covers(a) != want {
				t.Fatalf("%+v is covered: %v, want %v by %+v", a, !want, want, d.rules(a.User, a.Namespace))
			}
			asked++
		}
		empty(t, p, d)
	}
	// One in eleven is allowed on the whole; 2,000 to 4,800 of 40,000 in sixty runs.
	if allowed < *questions/100 || allowed > *questions*99/100 {
		t.Errorf("%d of %d questions were allowed: the policies are not random enough", allowed, *questions)
	}
}

// randomBounds returns a function that sets how much is compiled, so that small policies are of every
// form: rules with a key for each combination and without, roles that are asked together and one by one.
func (r *generator) randomBounds(t *testing.T) (next func()) {
	few, perString, most, together, locked := fewCombinations, combinationsPerString, maxCombinations, maxCompiledKeys, maxLockedKeys
	t.Cleanup(func() {
		fewCombinations, combinationsPerString, maxCombinations, maxCompiledKeys, maxLockedKeys = few, perString, most, together, locked
	})
	return func() {
		fewCombinations = pick(r, 0, 2, few)
		combinationsPerString = pick(r, 0, 1, perString)
		maxCombinations = pick(r, 0, 8, 40, most)
		maxCompiledKeys = pick(r, 0, 30, together)
		maxLockedKeys = pick(r, 0, 10, locked)
	}
}

// check makes sure that the grant that is named does allow.
func (r *generator) check(t *testing.T, by grant, a auth.Attributes) {
	t.Helper()
	if !isSubject(by.binding.subjects[by.subject], a.User, by.binding.key.namespace) {
		t.Fatalf("%+v is allowed by a subject %+v", a, by.binding.subjects[by.subject])
	}
	for _, rule := range by.binding.role.rules {
		if ruleAllows(rule, a) {
			return
		}
	}
	t.Fatalf("%+v is allowed by %s, which does not", a, by.reason())
}

// empty removes everything and makes sure that nothing is left.
func empty(t *testing.T, p *policy, d *documented) {
	t.Helper()
	for _, b := range d.clusterRoleBindings {
		p.removeBinding(objectKey{name: b.Name})
	}
	for _, role := range d.roles {
		p.removeRole(objectKey{role.Namespace, role.Name})
	}
	for _, b := range d.roleBindings {
		p.removeBinding(objectKey{b.Namespace, b.Name})
	}
	for _, role := range d.clusterRoles {
		p.removeRole(objectKey{name: role.Name})
	}
	if n := len(p.roles) + len(p.bindings) + len(p.users) + len(p.groups) + p.missing; n != 0 {
		t.Fatalf("left of an empty policy: %+v", p)
	}
}

type generator struct{ *rand.Rand }

func pick[T any](r *generator, of ...T) T { return of[r.IntN(len(of))] }

func some[T any](r *generator, of ...T) []T {
	list := make([]T, 0, 3)
	for range 1 + r.IntN(3) {
		list = append(list, pick(r, of...))
	}
	return list
}

var (
	randomNamespaces   = []string{"a", "b", "c"}
	randomUsers        = []string{"jane", "joe", "system:serviceaccount:a:x", "system:serviceaccount:b:x", "system:serviceaccount:b:y"}
	randomGroups       = []string{"dev", "ops", "jane", "system:authenticated"}
	randomVerbs        = []string{"get", "list", "watch", "delete", "approve", "sign", "bind"}
	randomAPIGroups    = []string{"", "apps", "example.com"}
	randomResources    = []string{"pods", "deployments", "services"}
	randomSubresources = []string{"log", "scale", "status"}
	randomNames        = []string{"", "one", "two"}
	randomPaths        = []string{"/healthz", "/healthz/etcd", "/metrics", "/api", "/"}
)

// change sets or removes a role or a binding, in both.
func (r *generator) change(p *policy, d *documented, size int, role bool) {
	name := fmt.Sprint("n", r.IntN(size/3+1))
	namespace := pick(r, append(randomNamespaces, "", "")...)
	key, full := objectKey{namespace, name}, namespace+"/"+name
	remove := r.IntN(4) == 0
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
	switch {
	case role && remove:
		p.removeRole(key)
		delete(d.roles, full)
		if namespace == "" {
			delete(d.clusterRoles, name)
		}
	case role:
		rules := r.rules()
		p.setRole(key, rules)
		if namespace == "" {
			d.clusterRoles[name] = &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}
		} else {
			d.roles[full] = &rbacv1.Role{ObjectMeta: meta, Rules: rules}
		}
	case remove:
		p.removeBinding(key)
		delete(d.roleBindings, full)
		if namespace == "" {
			delete(d.clusterRoleBindings, name)
		}
	default:
		ref := rbacv1.RoleRef{Kind: "ClusterRole", Name: fmt.Sprint("n", r.IntN(size/3+1))}
		if namespace != "" && r.IntN(2) == 0 {
			ref.Kind = "Role"
		}
		subjects := r.subjects()
		p.setBinding(key, ref, subjects)
		if namespace == "" {
			d.clusterRoleBindings[name] = &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}
		} else {
			d.roleBindings[full] = &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}
		}
	}
}

func (r *generator) rules() []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for range r.IntN(4) {
		rule := rbacv1.PolicyRule{Verbs: some(r, append(randomVerbs, "*")...)}
		if r.IntN(4) == 0 {
			rule.NonResourceURLs = some(r, append(randomPaths, "*", "/healthz/*", "/m*", "/api**")...)
		} else {
			rule.APIGroups = some(r, append(randomAPIGroups, "*")...)
			rule.Resources = some(r, append(randomResources, "*", "*/scale", "*/log", "pods/log", "deployments/scale", "deployments/*", "pods/", "/log", "pods/a/b", "*/a/b")...)
			if r.IntN(3) == 0 {
				rule.ResourceNames = some(r, randomNames[1:]...)
			}
		}
		rules = append(rules, rule)
	}
	return rules
}

func (r *generator) subjects() []rbacv1.Subject {
	var subjects []rbacv1.Subject
	for range r.IntN(pick(r, 4, 12)) {
		switch r.IntN(3) {
		case 0:
			subjects = append(subjects, rbacv1.Subject{Kind: "User", Name: pick(r, randomUsers...)})
		case 1:
			subjects = append(subjects, rbacv1.Subject{Kind: "Group", Name: pick(r, append(randomGroups, fmt.Sprint("team", r.IntN(40)))...)})
		default:
			subjects = append(subjects, rbacv1.Subject{Kind: "ServiceAccount", Name: pick(r, "x", "y"), Namespace: pick(r, append(randomNamespaces, "")...)})
		}
	}
	return subjects
}

func (r *generator) attributes() auth.Attributes {
	a := auth.Attributes{User: auth.User{Name: pick(r, randomUsers...)}, Verb: pick(r, append(randomVerbs, "*", "unknown")...)}
	for range r.IntN(pick(r, 4, 4, 3*someGroups)) {
		a.User.Groups = append(a.User.Groups, pick(r, append(randomGroups, fmt.Sprint("team", r.IntN(40)))...))
	}
	if r.IntN(5) == 0 {
		a.Path = pick(r, append(randomPaths, "/healthz/", "/apis", "/m", "*")...)
		return a
	}
	a.Namespace, a.Name = pick(r, append(randomNamespaces, "")...), pick(r, randomNames...)
	a.Group, a.Resource = pick(r, append(randomAPIGroups, "*")...), pick(r, append(randomResources, "*", "other")...)
	if r.IntN(3) == 0 {
		a.Subresource = pick(r, append(randomSubresources, "*", "a/b")...)
	}
	if r.IntN(20) == 0 {
		a.Resource = pick(r, "pods/log", "pods/", "pods/a", "*/scale", "/log", "deployments/scale", "a/b")
	}
	return a
}
