package rbac

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// A rule is compiled to a key for each of its combinations of a group, a resource and a name. One of
// a few kilobytes has millions. So a rule with more than fewCombinations is kept as it is if it has more than
// combinationsPerString for each of its strings, so that what is compiled takes a multiple of the role's
// memory and not the square, or once the others have maxCombinations. Tests set them, to have small policies
// with wide rules.
var (
	fewCombinations       = 64.0
	combinationsPerString = 4
	maxCombinations       = 50_000.0
)

// combinations returns how many keys a rule is compiled to.
func combinations(rule *rbacv1.PolicyRule) float64 {
	return float64(len(rule.APIGroups)) * float64(len(rule.Resources)) * float64(max(1, len(rule.ResourceNames)))
}

// tooWide reports whether a rule with n combinations is not compiled if the others have some.
func tooWide(rule *rbacv1.PolicyRule, n, others float64) bool {
	names := len(rule.APIGroups) + len(rule.Resources) + len(rule.ResourceNames)
	return n > fewCombinations && (n > float64(combinationsPerString*names) || others+n > maxCombinations)
}

// wideRule is a rule that is not compiled.
type wideRule struct {
	groups, names sets.Set[string]      // no names: all
	resources     sets.Set[resourceKey] // without groups
	permission    permission
}

func newWideRule(rule *rbacv1.PolicyRule, p permission) wideRule {
	w := wideRule{
		groups: sets.New(rule.APIGroups...), names: sets.New(rule.ResourceNames...),
		resources: make(sets.Set[resourceKey], len(rule.Resources)), permission: p,
	}
	for _, name := range rule.Resources {
		resource, subresource := splitResource(name)
		w.resources.Insert(resourceKey{"", resource, subresource})
	}
	return w
}

func (w *wideRule) allows(q *question) bool {
	if !w.permission.verbs.has(q.verb, q.verbBit) || !w.groups.Has(q.key.group) && !w.groups.Has(rbacv1.APIGroupAll) ||
		len(w.names) > 0 && !w.names.Has(q.name) {
		return false
	}
	return w.resources.Has(resourceKey{"", q.key.resource, q.key.subresource}) || w.resources.Has(resourceKey{"", rbacv1.ResourceAll, ""}) ||
		q.asked != "" && w.resources.Has(resourceKey{"", rbacv1.ResourceAll, q.asked})
}

// allowsWide returns the source of a rule that was not compiled and allows what is asked, or notFound.
func (s *ruleSet) allowsWide(q *question) int32 {
	for i := range s.wide {
		if s.wide[i].allows(q) {
			return s.wide[i].permission.source
		}
	}
	return notFound
}
