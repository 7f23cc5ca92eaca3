package rules

import (
	"context"
	"errors"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

type namespaces map[string]map[string]string

var errNoNamespace = errors.New("no such namespace")

func (n namespaces) Labels(_ context.Context, name string) (map[string]string, error) {
	if labels, ok := n[name]; ok {
		return labels, nil
	}
	return nil, errNoNamespace
}

type labeled map[string]string

func (l labeled) GetLabels() map[string]string { return l }

func endpoint(group, version, resource, kind string) Endpoint {
	return Endpoint{
		Resource: schema.GroupVersionResource{Group: group, Version: version, Resource: resource},
		Kind:     schema.GroupVersionKind{Group: group, Version: version, Kind: kind},
	}
}

func rule(group, version, resource string, operations ...admissionv1.OperationType) admissionv1.NamedRuleWithOperations {
	return admissionv1.NamedRuleWithOperations{RuleWithOperations: admissionv1.RuleWithOperations{
		Operations: operations, Rule: admissionv1.Rule{APIGroups: []string{group}, APIVersions: []string{version}, Resources: []string{resource}},
	}}
}

func named(r admissionv1.NamedRuleWithOperations, names ...string) admissionv1.NamedRuleWithOperations {
	r.ResourceNames = names
	return r
}

func scoped(r admissionv1.NamedRuleWithOperations, scope admissionv1.ScopeType) admissionv1.NamedRuleWithOperations {
	r.Scope = &scope
	return r
}

func rulesOf(list ...admissionv1.NamedRuleWithOperations) *admissionv1.MatchResources {
	return &admissionv1.MatchResources{ResourceRules: list}
}

func selecting(key, value string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
}

var (
	pods        = endpoint("", "v1", "pods", "Pod")
	deployments = endpoint("apps", "v1", "deployments", "Deployment")
	oldVersion  = endpoint("extensions", "v1beta1", "deployments", "Deployment")
)

func podRequest() Request {
	return Request{Operation: admissionv1.Create, Endpoint: pods, Namespace: "team", Name: "web", Object: labeled{"app": "web"}}
}

func TestMatch(t *testing.T) {
	known := namespaces{"team": {"env": "prod"}}
	namespaceRequest := Request{
		Operation: admissionv1.Create, Endpoint: endpoint("", "v1", "namespaces", "Namespace"), Namespace: "new", Name: "new", Object: labeled{"env": "prod"},
	}
	nodeRequest := Request{Operation: admissionv1.Create, Endpoint: endpoint("", "v1", "nodes", "Node"), Name: "n"}
	deployment := Request{
		Operation: admissionv1.Update, Endpoint: deployments, Namespace: "team", Name: "d", Object: labeled{},
		Equivalents: func() []Endpoint { return []Endpoint{deployments, oldVersion} },
	}
	for _, c := range []struct {
		name    string
		match   *admissionv1.MatchResources
		request Request
		change  func(*Request)
		want    bool
		as      Endpoint
		err     error
	}{
		{name: "no constraints match all", request: podRequest(), want: true},
		{name: "exact", match: rulesOf(rule("", "v1", "pods", "CREATE")), request: podRequest(), want: true},
		{name: "all wildcards", match: rulesOf(rule("*", "*", "*", "*")), request: podRequest(), want: true},
		{name: "other operation", match: rulesOf(rule("", "v1", "pods", "UPDATE")), request: podRequest()},
		{name: "other group", match: rulesOf(rule("apps", "v1", "pods", "*")), request: podRequest()},
		{name: "other version", match: rulesOf(rule("", "v2", "pods", "*")), request: podRequest()},
		{name: "other resource", match: rulesOf(rule("", "v1", "services", "*")), request: podRequest()},
		{name: "second rule", match: rulesOf(rule("", "v1", "services", "*"), rule("", "v1", "pods", "*")), request: podRequest(), want: true},
		{name: "star without subresources", match: rulesOf(rule("*", "*", "*", "*")), request: podRequest(), change: func(q *Request) { q.Subresource = "status" }},
		{name: "star with subresources", match: rulesOf(rule("*", "*", "*/*", "*")), request: podRequest(), change: func(q *Request) { q.Subresource = "status" }, want: true},
		{name: "star with subresources matches the resource", match: rulesOf(rule("*", "*", "*/*", "*")), request: podRequest(), want: true},
		{name: "one subresource", match: rulesOf(rule("", "v1", "pods/status", "*")), request: podRequest(), change: func(q *Request) { q.Subresource = "status" }, want: true},
		{name: "subresource of any", match: rulesOf(rule("*", "*", "*/status", "*")), request: podRequest(), change: func(q *Request) { q.Subresource = "status" }, want: true},
		{name: "another subresource", match: rulesOf(rule("", "v1", "pods/log", "*")), request: podRequest(), change: func(q *Request) { q.Subresource = "status" }},
		{name: "name", match: rulesOf(named(rule("", "v1", "pods", "*"), "db", "web")), request: podRequest(), want: true},
		{name: "another name", match: rulesOf(named(rule("", "v1", "pods", "*"), "db")), request: podRequest()},
		{name: "generated name", match: rulesOf(named(rule("", "v1", "pods", "*"), "db")), request: podRequest(), change: func(q *Request) { q.Name = "" }},
		{name: "namespaced scope", match: rulesOf(scoped(rule("*", "*", "*", "*"), admissionv1.NamespacedScope)), request: podRequest(), want: true},
		{name: "cluster scope", match: rulesOf(scoped(rule("*", "*", "*", "*"), admissionv1.ClusterScope)), request: podRequest()},
		{name: "cluster scope of a node", match: rulesOf(scoped(rule("*", "*", "*", "*"), admissionv1.ClusterScope)), request: nodeRequest, want: true},
		{name: "cluster scope of a namespace", match: rulesOf(scoped(rule("*", "*", "*", "*"), admissionv1.ClusterScope)), request: namespaceRequest, want: true},
		{name: "namespaced scope of a namespace", match: rulesOf(scoped(rule("*", "*", "*", "*"), admissionv1.NamespacedScope)), request: namespaceRequest},
		{name: "excluded", match: &admissionv1.MatchResources{
			ResourceRules:        []admissionv1.NamedRuleWithOperations{rule("*", "*", "*", "*")},
			ExcludeResourceRules: []admissionv1.NamedRuleWithOperations{rule("", "v1", "pods", "*")},
		}, request: podRequest()},
		{name: "another one is excluded", match: &admissionv1.MatchResources{
			ResourceRules:        []admissionv1.NamedRuleWithOperations{rule("*", "*", "*", "*")},
			ExcludeResourceRules: []admissionv1.NamedRuleWithOperations{named(rule("", "v1", "pods", "*"), "db")},
		}, request: podRequest(), want: true},
		{name: "object selector", match: &admissionv1.MatchResources{ObjectSelector: selecting("app", "web")}, request: podRequest(), want: true},
		{name: "object not selected", match: &admissionv1.MatchResources{ObjectSelector: selecting("app", "db")}, request: podRequest()},
		{name: "old object selected", match: &admissionv1.MatchResources{ObjectSelector: selecting("app", "db")}, request: podRequest(), change: func(q *Request) { q.Old = labeled{"app": "db"} }, want: true},
		{name: "no object to select", match: &admissionv1.MatchResources{ObjectSelector: selecting("app", "web")}, request: nodeRequest},
		{name: "namespace selector", match: &admissionv1.MatchResources{NamespaceSelector: selecting("env", "prod")}, request: podRequest(), want: true},
		{name: "namespace not selected", match: &admissionv1.MatchResources{NamespaceSelector: selecting("env", "test")}, request: podRequest()},
		{name: "namespace selector at cluster scope", match: &admissionv1.MatchResources{NamespaceSelector: selecting("env", "test")}, request: nodeRequest, want: true},
		{name: "namespace itself", match: &admissionv1.MatchResources{NamespaceSelector: selecting("env", "prod")}, request: namespaceRequest, want: true},
		{name: "namespace itself is not selected", match: &admissionv1.MatchResources{NamespaceSelector: selecting("env", "test")}, request: namespaceRequest},
		{name: "deleted namespace", match: &admissionv1.MatchResources{NamespaceSelector: selecting("env", "prod")}, request: namespaceRequest, change: func(q *Request) { q.Operation, q.Namespace, q.Name = admissionv1.Delete, "team", "team" }, want: true},
		{name: "unknown namespace", match: &admissionv1.MatchResources{NamespaceSelector: selecting("env", "prod")}, request: podRequest(), change: func(q *Request) { q.Namespace = "gone" }, err: errNoNamespace},
		{name: "unknown namespace, and the rules do not match", match: &admissionv1.MatchResources{
			NamespaceSelector: selecting("env", "prod"), ResourceRules: []admissionv1.NamedRuleWithOperations{rule("", "v1", "services", "*")},
		}, request: podRequest(), change: func(q *Request) { q.Namespace = "gone" }},
		{name: "equivalent", match: &admissionv1.MatchResources{
			MatchPolicy: new(admissionv1.Equivalent), ResourceRules: []admissionv1.NamedRuleWithOperations{rule("extensions", "v1beta1", "deployments", "*")},
		}, request: deployment, want: true, as: oldVersion},
		{name: "only exact", match: &admissionv1.MatchResources{
			MatchPolicy: new(admissionv1.Exact), ResourceRules: []admissionv1.NamedRuleWithOperations{rule("extensions", "v1beta1", "deployments", "*")},
		}, request: deployment},
		{name: "equivalent excluded", match: &admissionv1.MatchResources{
			MatchPolicy: new(admissionv1.Equivalent), ExcludeResourceRules: []admissionv1.NamedRuleWithOperations{rule("extensions", "v1beta1", "deployments", "*")},
		}, request: deployment},
		{name: "exact before equivalent", match: &admissionv1.MatchResources{
			MatchPolicy: new(admissionv1.Equivalent), ResourceRules: []admissionv1.NamedRuleWithOperations{rule("extensions", "v1beta1", "deployments", "*"), rule("apps", "v1", "deployments", "*")},
		}, request: deployment, want: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := New(c.match)
			if err != nil {
				t.Fatal(err)
			}
			if c.change != nil {
				c.change(&c.request)
			}
			as, matched, err := m.Match(t.Context(), &c.request, known)
			if !errors.Is(err, c.err) || matched != c.want {
				t.Fatalf("got %v, error %v", matched, err)
			}
			if c.as == (Endpoint{}) {
				c.as = c.request.Endpoint
			}
			if matched && as != c.as {
				t.Errorf("matched as %v, want %v", as, c.as)
			}
			if matched && !m.MayMatch(&c.request) {
				t.Error("MayMatch says no of a request that matches")
			}
		})
	}
}

func TestWebhookWithoutRulesMatchesNothing(t *testing.T) {
	m, err := ForWebhook(nil, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	request := podRequest()
	if _, matched, err := m.Match(t.Context(), &request, nil); matched || err != nil {
		t.Errorf("got %v, %v", matched, err)
	}
	if m.MayMatch(&request) {
		t.Error("it may match")
	}
}

func TestInvalidSelectors(t *testing.T) {
	bad := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}
	for _, match := range []*admissionv1.MatchResources{{NamespaceSelector: bad}, {ObjectSelector: bad}} {
		if _, err := New(match); err == nil {
			t.Errorf("%+v is taken for a selector", match)
		}
	}
}

func TestExempt(t *testing.T) {
	const group, authorization = "admissionregistration.k8s.io", "authorization.k8s.io"
	for kind, want := range map[schema.GroupKind]struct{ webhooks, policies bool }{
		{Group: group, Kind: "MutatingAdmissionPolicy"}:          {true, true},
		{Group: group, Kind: "ValidatingAdmissionPolicyBinding"}: {true, true},
		{Group: group, Kind: "ValidatingWebhookConfiguration"}:   {true, false},
		{Group: authorization, Kind: "LocalSubjectAccessReview"}: {true, true},
		{Group: authorization, Kind: "SelfSubjectRulesReview"}:   {true, true},
		{Group: "authentication.k8s.io", Kind: "TokenReview"}:    {true, true},
		{Group: "authentication.k8s.io", Kind: "TokenRequest"}:   {},
		{Group: "rbac.authorization.k8s.io", Kind: "Role"}:       {},
		{Group: "example.com", Kind: "MutatingAdmissionPolicy"}:  {},
		{Kind: "Pod"}: {},
	} {
		if ExemptFromWebhooks(kind) != want.webhooks || ExemptFromPolicies(kind) != want.policies {
			t.Errorf("%s is exempt from webhooks: %t, from policies: %t", kind, ExemptFromWebhooks(kind), ExemptFromPolicies(kind))
		}
	}
}
