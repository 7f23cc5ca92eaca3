package rbac

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/watchcache"
)

// TestDecisionsFollowWrites: a right that has been granted holds for the next request,
// and one that has been taken away does not.
func TestDecisionsFollowWrites(t *testing.T) {
	f := newFixture(t)
	f.start()
	x := f.index()
	jane := auth.Attributes{User: auth.User{Name: "jane"}, Verb: "get", Resource: "pods", Namespace: "a"}
	f.expect(x, jane, auth.NoOpinion, "")
	for range 50 {
		f.create("clusterrolebindings", &rbacv1.ClusterRoleBinding{
			ObjectMeta: named("", "readers"), RoleRef: roleRef("ClusterRole", "reader"), Subjects: []rbacv1.Subject{user("jane")},
		})
		f.expect(x, jane, auth.NoOpinion, `RBAC: clusterrole.rbac.authorization.k8s.io "reader" not found`)
		f.create("clusterroles", clusterRole("reader", rule("get", "", "pods")))
		f.expect(x, jane, auth.Allow, `RBAC: allowed by ClusterRoleBinding "readers" of ClusterRole "reader" to User "jane"`)
		f.delete("clusterrolebindings", "", "readers")
		f.expect(x, jane, auth.NoOpinion, "")
		f.create("roles", &rbacv1.Role{ObjectMeta: named("a", "reader"), Rules: []rbacv1.PolicyRule{rule("get", "", "pods")}})
		f.create("rolebindings", &rbacv1.RoleBinding{
			ObjectMeta: named("a", "readers"), RoleRef: roleRef("Role", "reader"), Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "x"}, user("jane")},
		})
		f.expect(x, jane, auth.Allow, `RBAC: allowed by RoleBinding "readers/a" of Role "reader" to User "jane"`)
		account := jane
		account.User.Name = "system:serviceaccount:a:x"
		f.expect(x, account, auth.Allow, `RBAC: allowed by RoleBinding "readers/a" of Role "reader" to ServiceAccount "x/a"`)
		elsewhere := jane
		elsewhere.Namespace = "b"
		f.expect(x, elsewhere, auth.NoOpinion, "")
		f.delete("roles", "a", "reader")
		f.expect(x, jane, auth.NoOpinion, `RBAC: role.rbac.authorization.k8s.io "reader" not found`)
		f.delete("rolebindings", "a", "readers")
		f.delete("clusterroles", "", "reader")
	}
}

// TestDecisionsWaitForTheCaches: before these are filled there is no decision, and a
// request that gives up learns why.
func TestDecisionsWaitForTheCaches(t *testing.T) {
	f := newFixture(t)
	x := f.index()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	decision, _, err := x.Authorize(ctx, auth.Attributes{User: auth.User{Name: "jane"}, Verb: "get", Path: "/metrics"})
	if decision != auth.NoOpinion || !errors.Is(err, auth.ErrNotReady) {
		t.Errorf("decision %d, %v", decision, err)
	}
	f.create("clusterroles", clusterRole("metrics", rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: []string{"/metrics"}}))
	f.create("clusterrolebindings", &rbacv1.ClusterRoleBinding{
		ObjectMeta: named("", "metrics"), RoleRef: roleRef("ClusterRole", "metrics"), Subjects: []rbacv1.Subject{user("jane")},
	})
	f.start()
	f.expect(x, auth.Attributes{User: auth.User{Name: "jane"}, Verb: "get", Path: "/metrics"}, auth.Allow,
		`RBAC: allowed by ClusterRoleBinding "metrics" of ClusterRole "metrics" to User "jane"`)
}

// TestDecisionsAfterARefill: what has gone while the cache lost its events is gone for
// decisions too.
func TestDecisionsAfterARefill(t *testing.T) {
	f := newFixture(t)
	f.start()
	x := f.index()
	for _, name := range []string{"jane", "joe"} {
		f.create("clusterroles", clusterRole(name, rule("get", "", "pods")))
		f.create("clusterrolebindings", &rbacv1.ClusterRoleBinding{
			ObjectMeta: named("", name), RoleRef: roleRef("ClusterRole", name), Subjects: []rbacv1.Subject{user(name)},
		})
	}
	asks := func(name string) auth.Attributes {
		return auth.Attributes{User: auth.User{Name: name}, Verb: "get", Resource: "pods"}
	}
	f.expect(x, asks("joe"), auth.Allow, `RBAC: allowed by ClusterRoleBinding "joe" of ClusterRole "joe" to User "joe"`)
	bindings := f.of("clusterrolebindings").Cache()
	var kept []*watchcache.Object
	for o := range bindings.Current().Range("", "") {
		if o.Attributes.Name != "joe" {
			kept = append(kept, o)
		}
	}
	if _, err := bindings.Refill(kept, bindings.Reached()+1, true); err != nil {
		t.Fatal(err)
	}
	f.expect(x, asks("joe"), auth.NoOpinion, "")
	f.expect(x, asks("jane"), auth.Allow, `RBAC: allowed by ClusterRoleBinding "jane" of ClusterRole "jane" to User "jane"`)
}

// TestConcurrentDecisions asks while roles and bindings change and Run follows them.
func TestConcurrentDecisions(t *testing.T) {
	f := newFixture(t)
	f.start()
	x := f.index()
	ctx, cancel := context.WithCancel(t.Context())
	var done, running sync.WaitGroup
	running.Go(func() { x.Run(ctx) })
	for i := range 4 {
		done.Go(func() {
			name := fmt.Sprint("user", i)
			asked := auth.Attributes{User: auth.User{Name: name, Groups: []string{"all"}}, Verb: "get", Resource: "pods", Namespace: "a"}
			for n := range 30 {
				if _, err := f.of("roles").Create(ctx, "a", &rbacv1.Role{
					ObjectMeta: named("a", fmt.Sprint(name, n)), Rules: []rbacv1.PolicyRule{rule("get", "", "pods")},
				}, registry.WriteOptions{}); err != nil {
					t.Error(err)
				}
				if _, err := f.of("rolebindings").Create(ctx, "a", &rbacv1.RoleBinding{
					ObjectMeta: named("a", fmt.Sprint(name, n)), RoleRef: roleRef("Role", fmt.Sprint(name, n)), Subjects: []rbacv1.Subject{user(name)},
				}, registry.WriteOptions{}); err != nil {
					t.Error(err)
				}
				if decision, reason, err := x.Authorize(ctx, asked); decision != auth.Allow || err != nil {
					t.Errorf("%s after %d grants: %d, %q, %v", name, n+1, decision, reason, err)
				}
			}
			for n := range 30 {
				if _, err := f.of("rolebindings").Delete(ctx, "a", fmt.Sprint(name, n), nil); err != nil {
					t.Error(err)
				}
			}
			if decision, reason, err := x.Authorize(ctx, asked); decision != auth.NoOpinion || err != nil {
				t.Errorf("%s after all grants were taken away: %d, %q, %v", name, decision, reason, err)
			}
		})
	}
	done.Go(func() {
		for range 2000 {
			_ = x.Rules(ctx, auth.User{Name: "user1"}, "a")
		}
	})
	done.Wait()
	cancel()
	running.Wait()
}

// TestChangesAreReported: without any request, once Run has applied them, so that a
// decision that is asked for then shows them.
func TestChangesAreReported(t *testing.T) {
	f := newFixture(t)
	f.start()
	x := f.index()
	changed := make(chan struct{}, 1)
	stop := x.OnChange(func(string) {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	var running sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	defer running.Wait()
	defer cancel()
	defer stop()
	running.Go(func() { x.Run(ctx) })
	allowed := func() bool {
		x.mu.RLock() // what has been applied: Authorize would apply the rest
		defer x.mu.RUnlock()
		_, allowed, _ := x.policy.decide(&auth.Attributes{User: auth.User{Name: "jane"}, Verb: "get", Resource: "pods"})
		return allowed
	}
	await := func(want bool) {
		t.Helper()
		for deadline := time.After(3 * time.Minute); allowed() != want; {
			select {
			case <-changed:
			case <-deadline:
				t.Fatalf("no change was reported that makes the decision %v", want)
			}
		}
	}
	f.create("clusterroles", clusterRole("reader", rule("get", "", "pods")))
	for range 20 {
		f.create("clusterrolebindings", &rbacv1.ClusterRoleBinding{
			ObjectMeta: named("", "readers"), RoleRef: roleRef("ClusterRole", "reader"), Subjects: []rbacv1.Subject{user("jane")},
		})
		await(true)
		f.delete("clusterrolebindings", "", "readers")
		await(false)
	}
}

// TestUnreadableRoles allow nothing, and break nothing else.
func TestUnreadableRoles(t *testing.T) {
	p := newPolicy(newCompiledRoom(maxCompiledBytes))
	p.setBinding(objectKey{"", "b"}, roleRef("ClusterRole", "r"), []rbacv1.Subject{{Kind: "Robot", Name: "x"}, user("jane")})
	a := auth.Attributes{User: auth.User{Name: "jane"}, Verb: "get", Resource: "pods"}
	if _, allowed, errs := p.decide(&a); allowed || len(errs) != 1 {
		t.Errorf("%v %v", allowed, errs)
	}
}
