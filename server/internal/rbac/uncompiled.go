package rbac

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// allowedBy reports whether one of the rules, which are not compiled, allows what is asked.
func (q *question) allowedBy(rules []rbacv1.PolicyRule) bool {
	for i := range rules {
		rule := &rules[i]
		if q.object && q.isObjectOf(rule) || !q.object && slices.ContainsFunc(rule.NonResourceURLs, q.isURL) {
			if slices.Contains(rule.Verbs, q.verb) || slices.Contains(rule.Verbs, rbacv1.VerbAll) {
				return true
			}
		}
	}
	return false
}

func (q *question) isObjectOf(rule *rbacv1.PolicyRule) bool {
	return (slices.Contains(rule.APIGroups, q.key.group) || slices.Contains(rule.APIGroups, rbacv1.APIGroupAll)) &&
		slices.ContainsFunc(rule.Resources, q.isResource) &&
		(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, q.name))
}

func (q *question) isResource(name string) bool {
	resource, subresource := splitResource(name)
	if resource == rbacv1.ResourceAll {
		return subresource == "" || subresource == q.asked || q.key.resource == resource && subresource == q.key.subresource
	}
	return resource == q.key.resource && subresource == q.key.subresource
}

func (q *question) isURL(url string) bool {
	prefix, pattern := strings.CutSuffix(url, "*")
	return url == q.path || pattern && strings.HasPrefix(q.path, strings.TrimRight(prefix, "*"))
}
