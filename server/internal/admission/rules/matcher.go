package rules

import (
	"context"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Matcher is what one webhook, policy or binding says of the requests that it is for. It is
// immutable.
type Matcher struct {
	include, exclude []admissionv1.NamedRuleWithOperations
	// all: there are no rules, and every request matches them (a binding's).
	all                 bool
	equivalent          bool
	namespaces, objects labels.Selector
}

// New returns the Matcher of a policy or of a binding. nil matches every request, and so do
// no resource rules. The error says which selector is not one.
func New(match *admissionv1.MatchResources) (*Matcher, error) {
	if match == nil {
		match = &admissionv1.MatchResources{}
	}
	m := &Matcher{
		include: match.ResourceRules, exclude: match.ExcludeResourceRules, all: len(match.ResourceRules) == 0,
	}
	return m.complete(match.MatchPolicy, match.NamespaceSelector, match.ObjectSelector)
}

// ForWebhook returns the Matcher of a webhook. No rules match nothing.
func ForWebhook(rules []admissionv1.RuleWithOperations, policy *admissionv1.MatchPolicyType, namespaces, objects *metav1.LabelSelector) (*Matcher, error) {
	m := &Matcher{}
	for _, rule := range rules {
		m.include = append(m.include, admissionv1.NamedRuleWithOperations{RuleWithOperations: rule})
	}
	return m.complete(policy, namespaces, objects)
}

// complete sets what webhooks and policies have in common. A nil selector selects all.
func (m *Matcher) complete(policy *admissionv1.MatchPolicyType, namespaces, objects *metav1.LabelSelector) (*Matcher, error) {
	m.equivalent = policy != nil && *policy == admissionv1.Equivalent
	for _, s := range []struct {
		name string
		from *metav1.LabelSelector
		to   *labels.Selector
	}{{"namespaceSelector", namespaces, &m.namespaces}, {"objectSelector", objects, &m.objects}} {
		*s.to = labels.Everything()
		if s.from == nil {
			continue
		}
		var err error
		if *s.to, err = metav1.LabelSelectorAsSelector(s.from); err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return m, nil
}

// Match reports whether a request matches, and as which endpoint: its own, or an equivalent
// one that a rule names. namespaces is asked only if the rules match and there is a selector
// of namespaces.
func (m *Matcher) Match(ctx context.Context, q *Request, namespaces Namespaces) (Endpoint, bool, error) {
	if _, excluded := m.matchRules(m.exclude, q); excluded {
		return Endpoint{}, false, nil
	}
	endpoint, ok := q.Endpoint, m.all
	if !m.all {
		endpoint, ok = m.matchRules(m.include, q)
	}
	if !ok || !m.matchesObjects(q) {
		return Endpoint{}, false, nil
	}
	ok, err := m.matchesNamespace(ctx, q, namespaces)
	return endpoint, ok, err
}

// MayMatch reports whether a request for the same operation, endpoint and subresource can
// match, whatever its name, namespace and labels are. It is for indexes of many Matchers.
func (m *Matcher) MayMatch(q *Request) bool {
	if m.all {
		return true
	}
	_, ok := matchesAny(m.include, q, m.equivalent, false)
	return ok
}

func (m *Matcher) matchRules(rules []admissionv1.NamedRuleWithOperations, q *Request) (Endpoint, bool) {
	return matchesAny(rules, q, m.equivalent, true)
}

// matchesAny finds the endpoint that one of the rules is for. If not exactly, scopes and
// names are not compared.
func matchesAny(rules []admissionv1.NamedRuleWithOperations, q *Request, equivalent, exactly bool) (Endpoint, bool) {
	for i := range rules {
		if matchesRule(&rules[i], q, q.Endpoint.Resource, exactly) {
			return q.Endpoint, true
		}
	}
	if !equivalent || q.Equivalents == nil || len(rules) == 0 {
		return Endpoint{}, false
	}
	equivalents := q.Equivalents()
	for i := range rules {
		for _, other := range equivalents {
			if other.Resource != q.Endpoint.Resource && matchesRule(&rules[i], q, other.Resource, exactly) {
				return other, true
			}
		}
	}
	return Endpoint{}, false
}

// matchesRule reports whether a rule is for the request, if that addressed resource.
func matchesRule(rule *admissionv1.NamedRuleWithOperations, q *Request, resource schema.GroupVersionResource, exactly bool) bool {
	if !hasOrAll(rule.Operations, q.Operation) || !hasOrAll(rule.APIGroups, resource.Group) || !hasOrAll(rule.APIVersions, resource.Version) {
		return false
	}
	if !slices.ContainsFunc(rule.Resources, func(name string) bool { return matchesResource(name, resource.Resource, q.Subresource) }) {
		return false
	}
	if !exactly {
		return true
	}
	return matchesScope(rule.Scope, q, resource) && (len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, q.Name))
}

func hasOrAll[S ~string](list []S, item S) bool {
	return slices.Contains(list, item) || slices.Contains(list, "*")
}

// matchesResource compares a rule's resource: "pods", "pods/status", "*/scale", "pods/*",
// "*" (all, without subresources), "*/*".
func matchesResource(rule, resource, subresource string) bool {
	ruleResource, ruleSubresource, _ := strings.Cut(rule, "/")
	return (ruleResource == "*" || ruleResource == resource) && (ruleSubresource == "*" || ruleSubresource == subresource)
}

func matchesScope(scope *admissionv1.ScopeType, q *Request, resource schema.GroupVersionResource) bool {
	if scope == nil || *scope == admissionv1.AllScopes {
		return true
	}
	cluster := q.Namespace == "" || isNamespace(resource)
	return *scope == admissionv1.ClusterScope && cluster || *scope == admissionv1.NamespacedScope && !cluster
}

// matchesObjects reports whether the new or the old object has the labels.
func (m *Matcher) matchesObjects(q *Request) bool {
	return m.objects.Empty() || matchesObject(q.Object, m.objects) || matchesObject(q.Old, m.objects)
}

// matchesNamespace reports whether the labels of the request's namespace are selected.
// Objects at cluster scope are in no namespace and always match; a Namespace that is
// created or updated is selected by its own new labels.
func (m *Matcher) matchesNamespace(ctx context.Context, q *Request, namespaces Namespaces) (bool, error) {
	itself := isNamespace(q.Endpoint.Resource)
	if m.namespaces.Empty() || q.Namespace == "" && !itself {
		return true, nil
	}
	if itself && q.Subresource == "" && (q.Operation == admissionv1.Create || q.Operation == admissionv1.Update) {
		return matchesObject(q.Object, m.namespaces), nil
	}
	name := q.Namespace
	if itself && name == "" {
		name = q.Name
	}
	set, err := namespaces.Labels(ctx, name)
	if err != nil {
		return false, err
	}
	return m.namespaces.Matches(labels.Set(set)), nil
}
