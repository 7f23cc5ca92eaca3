package rbac

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/levelwire/levelwire/server/internal/auth"
)

// policy has all roles and bindings, and finds those of a user. It is not safe for
// concurrent use with its setters and removers.
type policy struct {
	roles         map[objectKey]*role    // with those that are bound and do not exist
	bindings      map[objectKey]*binding // without a namespace: ClusterRoleBindings
	users, groups map[string]*grants     // service accounts are users
	missing       int                    // roles that are bound and do not exist
	room          *compiledRoom          // of what is compiled
}

// objectKey names an object of a cluster-scoped kind by an empty namespace.
type objectKey struct{ namespace, name string }

// role is a Role or a ClusterRole.
type role struct {
	key      objectKey
	rules    []rbacv1.PolicyRule
	compiled *roleRules // the same rules; nil: the role does not exist
	bindings int
	scopes   []*scope // where some subject has the role; see boundRole.at
}

// err is why a role that does not exist gives nothing.
func (r *role) err() error {
	resource := rbacv1.Resource("clusterrole")
	if r.key.namespace != "" {
		resource = rbacv1.Resource("role")
	}
	return apierrors.NewNotFound(resource, r.key.name)
}

// binding is a RoleBinding or a ClusterRoleBinding.
type binding struct {
	key      objectKey
	role     *role
	subjects []rbacv1.Subject // distinct
	granted  []granted        // to each of the subjects
}

// granted is what a binding gives to one of its subjects.
type granted struct {
	grants *grants                // where it is
	reason atomic.Pointer[string] // nil until it is needed
}

// grants are the roles of one user or group: everywhere, in one namespace, which is all that most subjects of
// large bindings have, and in others.
type grants struct {
	cluster   scope
	namespace string
	one       *scope
	others    map[string]*scope
}

func newPolicy(room *compiledRoom) *policy {
	return &policy{
		room:  room,
		roles: map[objectKey]*role{}, bindings: map[objectKey]*binding{},
		users: map[string]*grants{}, groups: map[string]*grants{},
	}
}

func (p *policy) role(key objectKey) *role {
	r := p.roles[key]
	if r == nil {
		key = objectKey{strings.Clone(key.namespace), strings.Clone(key.name)} // which may share an object's JSON
		r = &role{key: key}
		p.roles[key] = r
		p.missing++
	}
	return r
}

// setRole adds a role or replaces its rules, which must not be modified afterwards.
func (p *policy) setRole(key objectKey, rules []rbacv1.PolicyRule) {
	p.setRules(key, newRoleRules(key.namespace, rules))
}

// setRules is setRole for rules that may be compiled already.
func (p *policy) setRules(key objectKey, rules *roleRules) {
	r := p.role(key)
	if r.compiled == nil {
		p.missing--
	}
	r.rules, r.compiled = rules.rules, rules
	r.changed()
}

func (p *policy) removeRole(key objectKey) {
	r := p.roles[key]
	if r == nil || r.compiled == nil {
		return
	}
	r.rules, r.compiled = nil, nil
	p.missing++
	r.changed()
	p.dropUnused(r)
}

func (r *role) changed() {
	for _, s := range r.scopes {
		s.changed()
	}
}

func (p *policy) dropUnused(r *role) {
	if r.compiled == nil && r.bindings == 0 {
		delete(p.roles, r.key)
		p.missing--
	}
}

// setBinding adds a binding or replaces it. subjects must not be modified
// afterwards.
func (p *policy) setBinding(key objectKey, ref rbacv1.RoleRef, subjects []rbacv1.Subject) {
	p.bind(key, roleOf(ref, key.namespace), subjects)
}

// roleOf returns the key of the role that a binding in a namespace refers to.
func roleOf(ref rbacv1.RoleRef, namespace string) objectKey {
	key := objectKey{name: ref.Name}
	if ref.Kind == "Role" {
		key.namespace = namespace
	}
	return key
}

// bind is setBinding by the role's key.
func (p *policy) bind(key, roleKey objectKey, subjects []rbacv1.Subject) {
	p.bindDistinct(key, roleKey, distinct(subjects, key.namespace))
}

// bindDistinct is bind for subjects that are distinct. Those that keep their role cost little: it is
// given to them again before it is taken away.
func (p *policy) bindDistinct(key, roleKey objectKey, subjects []rbacv1.Subject) {
	before := p.bindings[key]
	r := p.role(roleKey)
	r.bindings++
	b := &binding{key: key, role: r, subjects: subjects, granted: make([]granted, len(subjects))}
	p.bindings[key] = b
	for i := range subjects {
		s, _ := subjectOf(&subjects[i], key.namespace)
		of := p.grantsOf(s)
		g := of[s.name]
		if g == nil {
			g = new(grants)
			of[s.name] = g
		}
		b.granted[i].grants = g
		g.in(key.namespace).add(r, grant{b, i})
	}
	if before != nil {
		p.revoke(before)
	}
}

// subject is a group, or a user, which may be a service account.
type subject struct {
	isGroup bool
	name    string
}

// subjectOf returns what a subject of a binding in a namespace is, and false if it can have no
// roles. A service account without a namespace is one of the binding's.
func subjectOf(s *rbacv1.Subject, namespace string) (subject, bool) {
	switch s.Kind {
	case rbacv1.UserKind:
		return subject{name: s.Name}, true
	case rbacv1.GroupKind:
		return subject{isGroup: true, name: s.Name}, true
	case rbacv1.ServiceAccountKind:
		if s.Namespace != "" {
			namespace = s.Namespace
		}
		return subject{name: auth.ServiceAccountName(namespace, s.Name)}, namespace != ""
	}
	return subject{}, false
}

// distinct returns the subjects of a binding in a namespace that can have roles, each where it is
// first: a binding may name one as often as it likes.
func distinct(subjects []rbacv1.Subject, namespace string) []rbacv1.Subject {
	if len(subjects) == 1 {
		if _, ok := subjectOf(&subjects[0], namespace); ok {
			return subjects
		}
	}
	seen := make(map[subject]struct{}, len(subjects))
	once := make([]rbacv1.Subject, 0, len(subjects))
	for i := range subjects {
		s, ok := subjectOf(&subjects[i], namespace)
		if _, again := seen[s]; ok && !again {
			seen[s] = struct{}{}
			once = append(once, subjects[i])
		}
	}
	if len(once) < len(subjects) {
		return slices.Clone(once) // without the room for the others
	}
	return once
}

func (p *policy) removeBinding(key objectKey) {
	b := p.bindings[key]
	if b == nil {
		return
	}
	delete(p.bindings, key)
	p.revoke(b)
}

// revoke takes away what a binding gives.
func (p *policy) revoke(b *binding) {
	for i := range b.subjects {
		if b.granted[i].grants.remove(b) {
			s, _ := subjectOf(&b.subjects[i], b.key.namespace)
			delete(p.grantsOf(s), s.name)
		}
	}
	if b.role.bindings--; b.role.bindings == 0 && b.role.compiled != nil {
		b.role.compiled = b.role.compiled.uncompiled() // which takes much memory, and is not asked any more
	}
	p.dropUnused(b.role)
}

// grantsOf returns where the grants of a subject are, by its name.
func (p *policy) grantsOf(s subject) map[string]*grants {
	if s.isGroup {
		return p.groups
	}
	return p.users
}

// at returns the scope of a namespace, or nil if the subject has no role in it.
func (g *grants) at(namespace string) *scope {
	if g.one != nil && g.namespace == namespace {
		return g.one
	}
	return g.others[namespace]
}

// in is at for a role that is to be given, also everywhere.
func (g *grants) in(namespace string) *scope {
	if namespace == "" {
		return &g.cluster
	}
	s := g.at(namespace)
	if s != nil {
		return s
	}
	s = new(scope)
	switch {
	case g.one == nil:
		g.namespace, g.one = namespace, s
		return s
	case g.others == nil:
		g.others = map[string]*scope{}
	}
	g.others[namespace] = s
	return s
}

// remove removes what a binding gives, and reports whether nothing is left.
func (g *grants) remove(b *binding) (empty bool) {
	namespace := b.key.namespace
	if namespace == "" {
		g.cluster.remove(b.role, b)
	} else if s := g.at(namespace); s != nil && s.remove(b.role, b) {
		if s == g.one {
			g.namespace, g.one = "", nil
		} else {
			delete(g.others, namespace)
		}
	}
	return len(g.cluster.roles) == 0 && g.one == nil && len(g.others) == 0
}

// namespaces yields the namespaces in which the subject has roles.
func (g *grants) namespaces(yield func(string, *scope) bool) {
	if g.one != nil && !yield(g.namespace, g.one) {
		return
	}
	for namespace, s := range g.others {
		if !yield(namespace, s) {
			return
		}
	}
}

// someGroups is how many of a user's groups can have roles before the list of them
// is allocated.
const someGroups = 16

// of returns the grants of a user and of its groups.
func (p *policy) of(user *auth.User, list []*grants) []*grants {
	if g := p.users[user.Name]; g != nil {
		list = append(list, g)
	}
	for _, group := range user.Groups {
		if g := p.groups[group]; g != nil {
			list = append(list, g)
		}
	}
	return list
}

// decide returns the grant that allows what is asked; without one, the errors of the
// roles that do not exist.
func (p *policy) decide(a *auth.Attributes) (by grant, allowed bool, errs []error) {
	return p.decideQuickly(a, nil)
}

// decideQuickly is decide that does not ask the roles that would take long, and adds them to later. A nil later takes none.
func (p *policy) decideQuickly(a *auth.Attributes, later *unasked) (by grant, allowed bool, errs []error) {
	q := questionOf(a)
	var some [someGroups]*grants
	all := p.of(&a.User, some[:0])
	for _, g := range all {
		if i := g.cluster.allows(&q, "", p.room, later); i != notFound {
			return g.cluster.roles[i].by[0], true, nil
		}
	}
	if a.Namespace != "" {
		for _, g := range all {
			s := g.at(a.Namespace)
			if s == nil {
				continue
			}
			if i := s.allows(&q, a.Namespace, p.room, later); i != notFound {
				return s.roles[i].by[0], true, nil
			}
		}
	}
	if p.missing > 0 {
		errs = unresolved(all, a.Namespace)
	}
	return grant{}, false, errs
}

// maxUnresolved is how many roles that do not exist an answer names.
const maxUnresolved = 100

// rulesOf returns the rules of all roles at the cluster scope and in the namespace,
// and the errors of the first ones that do not exist.
func rulesOf(all []*grants, namespace string) (rules []rbacv1.PolicyRule, errs []error) {
	visit(all, namespace, func(b *boundRole) { rules = append(rules, b.role.rules...) })
	return rules, unresolved(all, namespace)
}

// unresolved returns the errors of the first roles that do not exist.
func unresolved(all []*grants, namespace string) (errs []error) {
	visit(all, namespace, func(b *boundRole) {
		if b.role.compiled == nil && len(errs) < maxUnresolved {
			errs = append(errs, b.role.err())
		}
	})
	return errs
}

// visit calls f with the roles of a user, at the cluster scope and in the namespace.
func visit(all []*grants, namespace string, f func(*boundRole)) {
	for _, g := range all {
		for i := range g.cluster.roles {
			f(&g.cluster.roles[i])
		}
	}
	if namespace == "" {
		return
	}
	for _, g := range all {
		if s := g.at(namespace); s != nil {
			for i := range s.roles {
				f(&s.roles[i])
			}
		}
	}
}

// reason says why the grant allows a request.
func (g grant) reason() string {
	cached := &g.binding.granted[g.subject].reason
	if reason := cached.Load(); reason != nil {
		return *reason
	}
	b, s := g.binding, &g.binding.subjects[g.subject]
	kind, name, roleKind := "ClusterRoleBinding", b.key.name, "ClusterRole"
	if b.key.namespace != "" {
		kind, name = "RoleBinding", name+"/"+b.key.namespace
	}
	if b.role.key.namespace != "" {
		roleKind = "Role"
	}
	subject := s.Name
	if s.Kind == rbacv1.ServiceAccountKind {
		namespace := s.Namespace
		if namespace == "" {
			namespace = b.key.namespace
		}
		subject += "/" + namespace
	}
	reason := fmt.Sprintf("RBAC: allowed by %s %q of %s %q to %s %q", kind, name, roleKind, b.role.key.name, s.Kind, subject)
	cached.Store(&reason)
	return reason
}
