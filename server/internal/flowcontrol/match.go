package flowcontrol

import (
	"slices"
	"strings"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/levelwire/levelwire/server/internal/auth"
)

// wildcard is what the API writes for all verbs, groups, resources, namespaces, paths,
// users, groups of users and service accounts.
const wildcard = "*"

// names is a list of a rule.
type names struct {
	all  bool
	list []string
}

func namesOf(list []string) names {
	return names{all: slices.Contains(list, wildcard), list: list}
}

func (n *names) has(name string) bool { return n.all || slices.Contains(n.list, name) }

// hasResource is has for "resource" or "resource/subresource".
func (n *names) hasResource(resource, subresource string) bool {
	if n.all || subresource == "" {
		return n.has(resource)
	}
	for _, name := range n.list {
		if rest, ok := strings.CutPrefix(name, resource); ok && len(rest) > 0 && rest[0] == '/' && rest[1:] == subresource {
			return true
		}
	}
	return false
}

// rule is a compiled PolicyRulesWithSubjects.
type rule struct {
	everyone        bool
	users, groups   sets.Set[string]
	accountPrefixes sets.Set[string] // of the service accounts of whole namespaces
	resources       []resourceRule
	paths           []pathRule
}

type resourceRule struct {
	verbs, groups, resources, namespaces names
	clusterScope                         bool
}

type pathRule struct {
	verbs, paths names
	prefixes     []string
}

func compileRule(policy *flowcontrolv1.PolicyRulesWithSubjects) rule {
	r := rule{users: sets.Set[string]{}, groups: sets.Set[string]{}, accountPrefixes: sets.Set[string]{}}
	for i := range policy.Subjects {
		r.addSubject(&policy.Subjects[i])
	}
	for _, p := range policy.ResourceRules {
		r.resources = append(r.resources, resourceRule{
			verbs: namesOf(p.Verbs), groups: namesOf(p.APIGroups), resources: namesOf(p.Resources),
			namespaces: namesOf(p.Namespaces), clusterScope: p.ClusterScope,
		})
	}
	for _, p := range policy.NonResourceRules {
		compiled := pathRule{verbs: namesOf(p.Verbs), paths: namesOf(p.NonResourceURLs)}
		for _, path := range p.NonResourceURLs {
			compiled.prefixes = append(compiled.prefixes, strings.TrimSuffix(strings.TrimSuffix(path, wildcard), "/")+"/")
		}
		r.paths = append(r.paths, compiled)
	}
	return r
}

// addSubject adds a subject. One without the member of its kind matches no user.
func (r *rule) addSubject(s *flowcontrolv1.Subject) {
	switch {
	case s.Kind == flowcontrolv1.SubjectKindUser && s.User != nil:
		r.everyone = r.everyone || s.User.Name == wildcard
		r.users.Insert(s.User.Name)
	case s.Kind == flowcontrolv1.SubjectKindGroup && s.Group != nil:
		r.everyone = r.everyone || s.Group.Name == wildcard
		r.groups.Insert(s.Group.Name)
	case s.Kind == flowcontrolv1.SubjectKindServiceAccount && s.ServiceAccount != nil:
		if s.ServiceAccount.Name == wildcard {
			r.accountPrefixes.Insert(auth.ServiceAccountName(s.ServiceAccount.Namespace, ""))
		} else {
			r.users.Insert(auth.ServiceAccountName(s.ServiceAccount.Namespace, s.ServiceAccount.Name))
		}
	}
}

func (r *rule) matches(a *auth.Attributes) bool {
	if !r.appliesTo(&a.User) {
		return false
	}
	if a.OnResource() {
		return slices.ContainsFunc(r.resources, func(r resourceRule) bool { return r.matches(a) })
	}
	return slices.ContainsFunc(r.paths, func(r pathRule) bool { return r.matches(a) })
}

func (r *rule) appliesTo(user *auth.User) bool {
	if r.everyone || r.users.Has(user.Name) {
		return true
	}
	if len(r.groups) > 0 && slices.ContainsFunc(user.Groups, r.groups.Has) {
		return true
	}
	i := strings.LastIndexByte(user.Name, ':')
	return i >= 0 && r.accountPrefixes.Has(user.Name[:i+1])
}

func (r *resourceRule) matches(a *auth.Attributes) bool {
	if !r.verbs.has(a.Verb) || !r.resources.hasResource(a.Resource, a.Subresource) || !r.groups.has(a.Group) {
		return false
	}
	if a.Namespace == "" {
		return r.clusterScope
	}
	return r.namespaces.has(a.Namespace)
}

func (r *pathRule) matches(a *auth.Attributes) bool {
	if !r.verbs.has(a.Verb) {
		return false
	}
	return r.paths.has(a.Path) || slices.ContainsFunc(r.prefixes, func(prefix string) bool { return strings.HasPrefix(a.Path, prefix) })
}
