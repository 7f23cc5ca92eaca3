package rbac

import (
	"errors"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/auth/rbac/validation"
)

// The library takes the rules of a role apart, into one for each combination of a verb, a group, a
// resource and a name, and compares each with each rule that the user has. A role of a few kilobytes
// can have more of them than fit into memory.
const (
	maxParts    = 100_000     // of the rules of one role
	maxCompared = 100_000_000 // texts
)

var errTooManyParts = errors.New("the rules have too many combinations of verbs, groups, resources and names to be compared with those that the user has: write fewer of them, or '*'")

// uncovered returns which parts of the wanted rules those that a user has do not cover.
func uncovered(has, wanted []rbacv1.PolicyRule) (missing []rbacv1.PolicyRule, err error) {
	holders := make([]holder, len(has))
	for i := range has {
		holders[i] = holderOf(&has[i])
	}
	var parts, compared float64
	for i := range wanted {
		rule := &wanted[i]
		compared += float64(len(holders)) * float64(sizeOf(rule))
		if compared > maxCompared {
			return nil, errTooManyParts
		}
		candidates, whole := candidatesFor(rule, holders)
		if whole {
			continue
		}
		n := partsOf(rule)
		for j := range candidates {
			compared += n * float64(1+sizeOf(&candidates[j]))
		}
		if parts += n; parts > maxParts || compared > maxCompared {
			return nil, errTooManyParts
		}
		_, rest := validation.Covers(candidates, wanted[i:i+1])
		missing = append(missing, rest...)
	}
	return missing, nil
}

// sizeOf returns how many texts a rule has.
func sizeOf(rule *rbacv1.PolicyRule) int {
	return len(rule.Verbs) + len(rule.APIGroups) + len(rule.Resources) + len(rule.ResourceNames) + len(rule.NonResourceURLs)
}

// partsOf returns how many parts the library takes a rule into.
func partsOf(rule *rbacv1.PolicyRule) float64 {
	return float64(len(rule.Verbs)) * (combinations(rule) + float64(len(rule.NonResourceURLs)))
}

// holder is a rule that a user has.
type holder struct {
	rule                            *rbacv1.PolicyRule
	verbs, groups, resources, names sets.Set[string]
}

func holderOf(rule *rbacv1.PolicyRule) holder {
	return holder{rule, sets.New(rule.Verbs...), sets.New(rule.APIGroups...), sets.New(rule.Resources...), sets.New(rule.ResourceNames...)}
}

// candidatesFor returns the rules that may cover a part of a rule, or whether one covers it as a whole.
func candidatesFor(rule *rbacv1.PolicyRule, holders []holder) (candidates []rbacv1.PolicyRule, whole bool) {
	for i := range holders {
		h := &holders[i]
		if !slices.ContainsFunc(rule.Verbs, h.hasVerb) {
			continue
		}
		onResources := slices.ContainsFunc(rule.APIGroups, h.hasGroup) && slices.ContainsFunc(rule.Resources, h.hasResource)
		if !onResources && (len(rule.NonResourceURLs) == 0 || len(h.rule.NonResourceURLs) == 0) {
			continue
		}
		if len(rule.NonResourceURLs) == 0 && h.coversAll(rule) {
			return nil, true
		}
		candidates = append(candidates, *h.rule)
	}
	return candidates, false
}

// coversAll reports whether a rule that is about no URLs is covered as a whole.
func (h *holder) coversAll(rule *rbacv1.PolicyRule) bool {
	lacks := func(has func(string) bool) func(string) bool { return func(s string) bool { return !has(s) } }
	named := len(h.names) == 0 || len(rule.ResourceNames) > 0 && h.names.HasAll(rule.ResourceNames...)
	return named && !slices.ContainsFunc(rule.Verbs, lacks(h.hasVerb)) && !slices.ContainsFunc(rule.APIGroups, lacks(h.hasGroup)) &&
		!slices.ContainsFunc(rule.Resources, lacks(h.hasResource))
}

func (h *holder) hasVerb(verb string) bool { return h.verbs.Has(rbacv1.VerbAll) || h.verbs.Has(verb) }
func (h *holder) hasGroup(group string) bool {
	return h.groups.Has(rbacv1.APIGroupAll) || h.groups.Has(group)
}

func (h *holder) hasResource(name string) bool {
	if h.resources.Has(rbacv1.ResourceAll) || h.resources.Has(name) {
		return true
	}
	_, subresource, ok := strings.Cut(name, "/")
	return ok && h.resources.Has(rbacv1.ResourceAll+"/"+subresource)
}
