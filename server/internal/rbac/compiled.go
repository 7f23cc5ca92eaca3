package rbac

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/runqueue"
)

const (
	// maxCompiledBytes is what the compiled rules of an Index and its History take together. Those of one role can take
	// a hundred times as much as the role, and those of a subject are compiled together, for each subject.
	maxCompiledBytes = 128 << 20
	// keyBytes is what a key of compiled rules takes, and compiledBytes what they take without any.
	keyBytes, compiledBytes = 200, 1 << 10
	// verbsPerKey is how many verbs that are not the usual ones take as much as a key.
	verbsPerKey = 8
)

// maxCompiledKeys is how many keys of a subject's roles are compiled together, and maxLockedKeys how many of roles that
// are not compiled a decision asks, or compiles, at once: meanwhile changes wait, and with them other decisions.
// Tests set them.
var maxCompiledKeys, maxLockedKeys = 20_000, 5_000

// compiledRoom bounds what compiled rules take, until the garbage collector has freed them. Those of namespaces have half
// of it, and those of one namespace a part of what the others leave: whoever may write roles in a few of them takes little
// from the others, and nothing from ClusterRoles. It is safe for concurrent use.
type compiledRoom struct {
	max int

	mu          sync.Mutex
	bytes       int            // of all
	namespaces  int            // of these, those of all namespaces
	byNamespace map[string]int // without those of ClusterRoles and ClusterRoleBindings
}

func newCompiledRoom(bytes int) *compiledRoom {
	return &compiledRoom{max: bytes, byNamespace: map[string]int{}}
}

// compile returns what build returns if there is room for so many keys, otherwise nil.
func (r *compiledRoom) compile(namespace string, keys int, build func() *ruleSet) *ruleSet {
	bytes := compiledBytes + keys*keyBytes
	if !r.reserve(namespace, bytes) {
		return nil
	}
	set := build()
	runtime.AddCleanup(set, func(bytes int) { r.resize(namespace, -bytes) }, bytes) // several policies may share it
	return set
}

func (r *compiledRoom) reserve(namespace string, bytes int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.bytes+bytes > r.max {
		return false
	}
	if namespace != "" {
		own := r.byNamespace[namespace]
		if others := r.namespaces - own; own+bytes > (r.max/2-others)/namespaceShare {
			return false
		}
	}
	r.add(namespace, bytes)
	return true
}

func (r *compiledRoom) resize(namespace string, bytes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.add(namespace, bytes)
}

// add counts bytes. mu is held.
func (r *compiledRoom) add(namespace string, bytes int) {
	r.bytes += bytes
	if namespace == "" {
		return
	}
	r.namespaces += bytes
	if r.byNamespace[namespace] += bytes; r.byNamespace[namespace] == 0 {
		delete(r.byNamespace, namespace)
	}
}

// roleRules are the rules of a role, and what they are compiled to once they were asked. Policies share them. They are
// safe for concurrent use.
type roleRules struct {
	rules     []rbacv1.PolicyRule // must not be modified
	namespace string
	keys      int // that they are compiled to

	compiling atomic.Bool
	compiled  atomic.Pointer[ruleSet]
}

func newRoleRules(namespace string, rules []rbacv1.PolicyRule) *roleRules {
	return &roleRules{rules: rules, namespace: namespace, keys: keysOf(rules)}
}

// uncompiled returns the same rules, not compiled.
func (r *roleRules) uncompiled() *roleRules {
	return &roleRules{rules: r.rules, namespace: r.namespace, keys: r.keys}
}

// allow reports whether the rules allow what is asked. They are compiled when they are first asked, and asked one by
// one if there is no room for that.
func (r *roleRules) allow(q *question, room *compiledRoom) bool {
	set := r.compiled.Load()
	if set == nil {
		set = r.compile(room)
	}
	if set == nil {
		return q.allowedBy(r.rules)
	}
	return set.allows(q) != notFound
}

// compile returns the compiled rules; nil if there is no room for them, or if somebody else is compiling them.
func (r *roleRules) compile(room *compiledRoom) *ruleSet {
	if !r.compiling.CompareAndSwap(false, true) {
		return nil
	}
	defer r.compiling.Store(false)
	if set := r.compiled.Load(); set != nil {
		return set
	}
	set := room.compile(r.namespace, r.keys, func() *ruleSet { return compile(r.rules) })
	r.compiled.Store(set)
	return set
}

// unasked are the roles of a user that a decision has not asked yet, because it would have taken long.
type unasked struct {
	roles []unaskedRole
	keys  int // of the roles that are not compiled, and of those that were asked nevertheless
}

type unaskedRole struct {
	rules *roleRules
	by    grant
}

// takes adds a role if its rules are not compiled, and these and those before have many keys. u may be nil, which
// takes none.
func (u *unasked) takes(rules *roleRules, b *boundRole) bool {
	if u == nil || rules.compiled.Load() != nil {
		return false
	}
	if u.keys += rules.keys; u.keys <= maxLockedKeys {
		return false
	}
	u.roles = append(u.roles, unaskedRole{rules, b.by[0]})
	return true
}

// ask returns the grant of a role that allows what is asked. It fails when ctx ends, and lets others run.
func (u *unasked) ask(ctx context.Context, a *auth.Attributes, room *compiledRoom) (by grant, allowed bool, err error) {
	q, task := questionOf(a), runqueue.FromContext(ctx)
	for _, r := range u.roles {
		if err := ctx.Err(); err != nil {
			return grant{}, false, err
		}
		if r.rules.allow(&q, room) {
			return r.by, true, nil
		}
		task.Yield()
	}
	return grant{}, false, nil
}

// keysOf returns how many keys rules are compiled to, and of what takes memory beside them, how many it is worth.
func keysOf(rules []rbacv1.PolicyRule) (keys int) {
	others := 0.0
	for i := range rules {
		rule := &rules[i]
		keys += len(rule.NonResourceURLs) + len(rule.Verbs)/verbsPerKey
		n := combinations(rule)
		if tooWide(rule, n, others) {
			keys += len(rule.APIGroups) + len(rule.Resources) + len(rule.ResourceNames)
			continue
		}
		others += n
	}
	return keys + int(others)
}
