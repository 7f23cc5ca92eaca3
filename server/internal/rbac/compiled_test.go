package rbac

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/levelwire/levelwire/internal/testwait"
	"github.com/levelwire/levelwire/server/internal/auth"
)

// roomPolicy is a policy with room for that many keys of compiled rules in the first namespace that needs it.
func roomPolicy(keys int) *policy {
	return newPolicy(newCompiledRoom(2 * namespaceShare * keys * keyBytes))
}

// roleOfKeys gives users a role whose rules are compiled to that many keys, for the resources r0, r1 and so on.
func (p *policy) roleOfKeys(key objectKey, keys int, users ...string) {
	p.setRole(key, []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{key.name}, Resources: numbered("r", keys)}})
	var subjects []rbacv1.Subject
	for _, name := range users {
		subjects = append(subjects, user(name))
	}
	p.bind(key, key, subjects)
}

// ask makes decisions about a role of roleOfKeys: what it allows is allowed, and nothing else.
func (p *policy) ask(t *testing.T, key objectKey, keys int, name string) {
	t.Helper()
	a := auth.Attributes{User: auth.User{Name: name}, Verb: "get", Group: key.name, Version: "v1", Namespace: key.namespace, Resource: fmt.Sprint("r", keys-1)}
	if _, allowed, _ := p.decide(&a); !allowed {
		t.Errorf("%s may not do what role %v allows", name, key)
	}
	a.Resource = fmt.Sprint("r", keys)
	if _, allowed, _ := p.decide(&a); allowed {
		t.Errorf("%s may do what role %v does not allow", name, key)
	}
}

// TestCompiledRulesAreBounded: whoever may write roles in a namespace may write hundreds, each of megabytes. Those
// for which there is no room are asked as they are, and there is room left for the roles of others.
func TestCompiledRulesAreBounded(t *testing.T) {
	const room, keys, roles = 10_000, 1_000, 100
	p := roomPolicy(room)
	for i := range roles {
		key := objectKey{"greedy", fmt.Sprint("role", i)}
		p.roleOfKeys(key, keys, fmt.Sprint("user", i))
		p.ask(t, key, keys, fmt.Sprint("user", i))
	}
	if compiled := p.compiledRoles(); compiled == 0 || compiled > room/keys {
		t.Errorf("%d roles of %d keys each are compiled, with room for %d keys", compiled, keys, room)
	}
	for _, other := range []objectKey{{"other", "editor"}, {"", "reader"}} {
		p.roleOfKeys(other, keys, "jane")
		p.ask(t, other, keys, "jane")
		if p.roles[other].compiled.compiled.Load() == nil {
			t.Errorf("there is no room for role %v beside those of a namespace", other)
		}
	}
}

func (p *policy) compiledRoles() (n int) {
	for _, r := range p.roles {
		if r.compiled.compiled.Load() != nil {
			n++
		}
	}
	return n
}

// TestMergedRulesAreBounded: the roles of a subject are compiled together for each subject, and a binding has thousands.
func TestMergedRulesAreBounded(t *testing.T) {
	const keys, roles, users, room = 10, 2 * fewRoles, 100, 2_000
	p := roomPolicy(room)
	names := numbered("user", users)
	for i := range roles {
		p.roleOfKeys(objectKey{"one", fmt.Sprint("role", i)}, keys, names...)
	}
	merged := 0
	for _, name := range names {
		for range 2 * scansBeforeMerge {
			p.ask(t, objectKey{"one", fmt.Sprint("role", roles-1)}, keys, name)
		}
		if p.users[name].at("one").merged.Load() != nil {
			merged++
		}
	}
	if merged == 0 || merged > room/(roles*keys) {
		t.Errorf("the roles of %d users, of %d keys, are compiled together, with room for %d keys", merged, roles*keys, room)
	}
}

// TestRoomIsGivenBack when nothing needs the compiled rules any more.
func TestRoomIsGivenBack(t *testing.T) {
	const keys = 1_000
	p := roomPolicy(keys * 3 / 2)
	for version := range 3 {
		key := objectKey{"one", fmt.Sprint("role", version)}
		p.roleOfKeys(key, keys, "jane")
		p.ask(t, key, keys, "jane")
		if p.roles[key].compiled.compiled.Load() == nil {
			t.Fatalf("there is no room after %d roles have gone", version)
		}
		p.removeBinding(key)
		p.removeRole(key)
		testwait.Stable(t, "the room of what has gone to be free", func() (bytes int, free bool) {
			runtime.GC()
			p.room.mu.Lock()
			defer p.room.mu.Unlock()
			return p.room.bytes, p.room.bytes == 0 && p.room.namespaces == 0 && len(p.room.byNamespace) == 0
		})
	}
}

// TestLargeRolesAreAskedLater: all changes, and with them other decisions, wait while a decision holds the lock. It asks
// and compiles few rules meanwhile, whether they are one role's that was bound after it was written, or many roles'.
func TestLargeRolesAreAskedLater(t *testing.T) {
	for _, roles := range []int{1, 20} {
		f := newFixture(t)
		f.start()
		x := f.index()
		must(t, x.catchUp(t.Context()))
		keys := 2 * maxLockedKeys / roles
		for i := range roles {
			x.policy.roleOfKeys(objectKey{"one", fmt.Sprint("role", i)}, keys, "jane")
		}
		a := auth.Attributes{User: auth.User{Name: "jane"}, Verb: "get", Group: fmt.Sprint("role", roles-1), Version: "v1", Namespace: "one", Resource: fmt.Sprint("r", keys-1)}
		var later unasked
		if _, allowed, _ := x.policy.decideQuickly(&a, &later); allowed || x.policy.compiledRoles()*keys > maxLockedKeys {
			t.Errorf("of %d roles of %d keys, %d were compiled while the lock is held", roles, keys, x.policy.compiledRoles())
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if _, allowed, err := later.ask(ended, &a, x.prepared.room); allowed || !errors.Is(err, context.Canceled) {
			t.Errorf("a request that has ended is allowed: %v (%v)", allowed, err)
		}
		f.expect(x, a, auth.Allow, fmt.Sprintf(`RBAC: allowed by RoleBinding "role%d/one" of Role "role%[1]d" to User "jane"`, roles-1))
		if n := x.policy.compiledRoles(); n != roles {
			t.Errorf("%d of %d roles are compiled", n, roles)
		}
		a.Resource = fmt.Sprint("r", keys)
		f.expect(x, a, auth.NoOpinion, "")
	}
}

// TestCompiledRulesTakeWhatIsCounted, whatever they consist of: what they take together is bounded by that.
func TestCompiledRulesTakeWhatIsCounted(t *testing.T) {
	const many = 20_000
	get, core := []string{"get"}, []string{""}
	var small, square []rbacv1.PolicyRule
	for i := range many {
		small = append(small, rule("get", "", fmt.Sprint("r", i)))
		if i < many/64 {
			square = append(square, rbacv1.PolicyRule{Verbs: get, APIGroups: numbered("g", 8), Resources: numbered(fmt.Sprint("r", i, "-"), 8)})
		}
	}
	for name, rules := range map[string][]rbacv1.PolicyRule{
		"one rule":             small[:1],
		"small rules":          small,
		"groups and resources": square,
		"names":                {{Verbs: get, APIGroups: core, Resources: []string{"pods"}, ResourceNames: numbered("n", many)}},
		"URLs":                 {{Verbs: get, NonResourceURLs: numbered("/", many)}},
		"prefixes":             {{Verbs: get, NonResourceURLs: suffixed(numbered("/", many), "/*")}},
		"verbs":                {{Verbs: numbered("v", many), APIGroups: core, Resources: []string{"pods"}}},
		"a wide rule":          {{Verbs: get, APIGroups: numbered("g", many), Resources: numbered("r", many), ResourceNames: numbered("n", many)}},
	} {
		copies := 5 + 2_000/(1+keysOf(rules)) // so that what else changes in the heap does not count
		sets := make([]*ruleSet, copies)
		before := heapInUse()
		for i := range sets {
			sets[i] = compile(rules)
		}
		each := (heapInUse() - before) / copies
		runtime.KeepAlive(sets)
		counted := compiledBytes + keysOf(rules)*keyBytes
		if each > counted {
			t.Errorf("%s: %d bytes are counted as %d", name, each, counted)
		}
	}
}

func suffixed(names []string, suffix string) []string {
	for i := range names {
		names[i] += suffix
	}
	return names
}

func heapInUse() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
