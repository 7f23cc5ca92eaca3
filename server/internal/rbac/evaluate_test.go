package rbac

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/component-helpers/auth/rbac/validation"

	"github.com/levelwire/levelwire/server/internal/auth"
)

// documented evaluates roles and bindings as the documentation of RBAC describes it:
// by looking at every binding, every subject and every rule. It shares nothing with the
// index.
type documented struct {
	roles               map[string]*rbacv1.Role
	clusterRoles        map[string]*rbacv1.ClusterRole
	roleBindings        map[string]*rbacv1.RoleBinding
	clusterRoleBindings map[string]*rbacv1.ClusterRoleBinding
}

func newDocumented() *documented {
	return &documented{
		map[string]*rbacv1.Role{}, map[string]*rbacv1.ClusterRole{},
		map[string]*rbacv1.RoleBinding{}, map[string]*rbacv1.ClusterRoleBinding{},
	}
}

// rules returns what applies to a user in a namespace.
func (d *documented) rules(user auth.User, namespace string) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for _, b := range d.clusterRoleBindings {
		if slices.ContainsFunc(b.Subjects, func(s rbacv1.Subject) bool { return isSubject(s, user, "") }) {
			if role := d.clusterRoles[b.RoleRef.Name]; role != nil {
				rules = append(rules, role.Rules...)
			}
		}
	}
	for _, b := range d.roleBindings {
		if namespace == "" || b.Namespace != namespace {
			continue
		}
		if !slices.ContainsFunc(b.Subjects, func(s rbacv1.Subject) bool { return isSubject(s, user, namespace) }) {
			continue
		}
		if b.RoleRef.Kind == "ClusterRole" {
			if role := d.clusterRoles[b.RoleRef.Name]; role != nil {
				rules = append(rules, role.Rules...)
			}
		} else if role := d.roles[namespace+"/"+b.RoleRef.Name]; role != nil {
			rules = append(rules, role.Rules...)
		}
	}
	return rules
}

func isSubject(s rbacv1.Subject, user auth.User, namespace string) bool {
	switch s.Kind {
	case "User":
		return s.Name == user.Name
	case "Group":
		return slices.Contains(user.Groups, s.Name)
	}
	if s.Namespace != "" {
		namespace = s.Namespace
	}
	return namespace != "" && user.Name == "system:serviceaccount:"+namespace+":"+s.Name
}

func (d *documented) allows(a auth.Attributes) bool {
	return slices.ContainsFunc(d.rules(a.User, a.Namespace), func(r rbacv1.PolicyRule) bool { return ruleAllows(r, a) })
}

func ruleAllows(r rbacv1.PolicyRule, a auth.Attributes) bool {
	if !slices.Contains(r.Verbs, "*") && !slices.Contains(r.Verbs, a.Verb) {
		return false
	}
	if !a.OnResource() {
		return slices.ContainsFunc(r.NonResourceURLs, func(url string) bool {
			return url == a.Path || strings.HasSuffix(url, "*") && strings.HasPrefix(a.Path, strings.TrimRight(url, "*"))
		})
	}
	if !slices.Contains(r.APIGroups, "*") && !slices.Contains(r.APIGroups, a.Group) {
		return false
	}
	if len(r.ResourceNames) > 0 && !slices.Contains(r.ResourceNames, a.Name) {
		return false
	}
	asked := a.Resource
	if a.Subresource != "" {
		asked += "/" + a.Subresource
	}
	return slices.ContainsFunc(r.Resources, func(resource string) bool {
		return resource == "*" || resource == asked || a.Subresource != "" && resource == "*/"+a.Subresource
	})
}

// covers answers by the comparison of rules that kubectl and the escalation check of
// kube-apiserver use. It knows no request for a name that is empty, and no resource
// that is written with a slash.
func (d *documented) covers(a auth.Attributes) bool {
	asked := rbacv1.PolicyRule{Verbs: []string{a.Verb}}
	if a.OnResource() {
		resource := a.Resource
		if a.Subresource != "" {
			resource += "/" + a.Subresource
		}
		asked.APIGroups, asked.Resources = []string{a.Group}, []string{resource}
		if a.Name != "" {
			asked.ResourceNames = []string{a.Name}
		}
	} else {
		asked.NonResourceURLs = []string{a.Path}
	}
	covered, _ := validation.Covers(d.rules(a.User, a.Namespace), []rbacv1.PolicyRule{asked})
	return covered
}
