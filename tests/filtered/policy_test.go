package filtered

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
)

// identity is a user, as it authenticates and as bindings refer to it.
type identity struct {
	token, user string
	groups      []string
	as          string // the user that it impersonates; empty: none
}

// seenAs is the user whose rights count for what is visible.
func (i *identity) seenAs() (user string, groups []string) {
	if i.as != "" {
		return i.as, []string{"system:authenticated"}
	}
	return i.user, append([]string{"system:authenticated"}, i.groups...)
}

const robot = "system:serviceaccount:a:robot"

var identities = []*identity{
	{token: "jane", user: "jane", groups: []string{"dev"}},
	{token: "kim", user: "kim", groups: []string{"ops"}},
	{token: "kim-without-groups", user: "kim"},
	{token: "lee", user: "lee", groups: []string{"dev", "ops"}},
	{token: "robot", user: robot},
	{token: "proxy", user: "proxy", as: "max"},
}

// subjects are what bindings are for.
var subjects = []rbacv1.Subject{
	{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "jane"},
	{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "kim"},
	{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "max"},
	{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "dev"},
	{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "ops"},
	{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "system:authenticated"},
	{Kind: rbacv1.ServiceAccountKind, Namespace: "a", Name: "robot"},
}

// namespaces are those of all objects.
var namespaces = []string{"a", "b", "c", "d", "e"}

// set is a set of namespaces.
type set uint16

const everywhere set = 1 << 15

func (s set) has(namespace string) bool {
	return s&everywhere != 0 || s&(1<<slices.Index(namespaces, namespace)) != 0
}

// bound is what counts of a binding.
type bound struct {
	namespace string // empty: a ClusterRoleBinding
	role      rbacv1.RoleRef
	subjects  []rbacv1.Subject
}

// policy is all roles and bindings that the test has written, by "namespace/name".
type policy struct {
	roles    map[string][]rbacv1.PolicyRule // those of ClusterRoles begin with "/"
	bindings map[string]bound
}

// allows evaluates from the documentation of Kubernetes' RBAC: bindings give the rules of
// their role to their subjects, in a namespace or everywhere, and nothing takes away.
func (p *policy) allows(user string, groups []string, verb, group, resource, namespace, name string) bool {
	for _, b := range p.bindings {
		if b.namespace != "" && b.namespace != namespace || !slices.ContainsFunc(b.subjects, func(s rbacv1.Subject) bool { return isSubject(s, user, groups) }) {
			continue
		}
		key := "/" + b.role.Name
		if b.role.Kind == "Role" {
			key = b.namespace + key
		}
		if slices.ContainsFunc(p.roles[key], func(r rbacv1.PolicyRule) bool { return ruleAllows(r, verb, group, resource, name) }) {
			return true
		}
	}
	return false
}

func isSubject(s rbacv1.Subject, user string, groups []string) bool {
	switch s.Kind {
	case rbacv1.UserKind:
		return s.Name == user
	case rbacv1.GroupKind:
		return slices.Contains(groups, s.Name)
	default:
		return user == "system:serviceaccount:"+s.Namespace+":"+s.Name
	}
}

func ruleAllows(r rbacv1.PolicyRule, verb, group, resource, name string) bool {
	has := func(list []string, one string) bool { return slices.Contains(list, "*") || slices.Contains(list, one) }
	return has(r.Verbs, verb) && has(r.APIGroups, group) && has(r.Resources, resource) &&
		(len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, name))
}

// visible is the namespaces in which a user may list and watch all objects of a resource.
func (p *policy) visible(i *identity, r *kind) (s set) {
	user, groups := i.seenAs()
	may := func(namespace string) bool {
		return p.allows(user, groups, "list", r.group, r.plural, namespace, "") && p.allows(user, groups, "watch", r.group, r.plural, namespace, "")
	}
	if may("") {
		return everywhere
	}
	for n, namespace := range namespaces {
		if may(namespace) {
			s |= 1 << n
		}
	}
	return s
}

// mayRead is whether the user of an identity may be the one that it impersonates.
func (p *policy) mayRead(i *identity) set {
	if i.as == "" || p.allows(i.user, append([]string{"system:authenticated"}, i.groups...), "impersonate", "", "users", "", i.as) {
		return everywhere
	}
	return 0
}
