package server_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/auth/rbac/validation"
)

// question is what a request asks of authorizers, written down by hand beside the request:
// nothing of it is taken from the server.
type question struct {
	verb, group, resource, subresource, namespace, name string
	path                                                string // of a request that is about no resource
	selectsNode                                         string // by the field selector spec.nodeName
}

func (q question) fullResource() string {
	if q.subresource == "" {
		return q.resource
	}
	return q.resource + "/" + q.subresource
}

// rule is the question as the smallest rule that allows it.
func (q question) rule() rbacv1.PolicyRule {
	if q.path != "" {
		return rbacv1.PolicyRule{Verbs: []string{q.verb}, NonResourceURLs: []string{q.path}}
	}
	r := rbacv1.PolicyRule{Verbs: []string{q.verb}, APIGroups: []string{q.group}, Resources: []string{q.fullResource()}}
	if q.name != "" {
		r.ResourceNames = []string{q.name}
	}
	return r
}

// publishedPolicy is the roles and bindings that Kubernetes publishes, as a listing has
// them, and those of the test. Its decisions are made by k8s.io/component-helpers.
type publishedPolicy struct {
	roles    map[string][]rbacv1.PolicyRule // by "name", or "namespace/name"
	labels   map[string][]string            // of ClusterRoles, by label: the names
	selects  map[string]string              // the label that an aggregated ClusterRole selects
	bindings []publishedBinding
}

type publishedBinding struct {
	namespace string // "" of a ClusterRoleBinding
	role      string
	subjects  []string // "User name", "Group name"
}

// readPolicy reads the listing of package defaults.
func readPolicy(t *testing.T) *publishedPolicy {
	t.Helper()
	file, err := os.ReadFile("internal/rbac/defaults/testdata/kubernetes-v1.37.txt")
	if err != nil {
		t.Fatal(err)
	}
	p := &publishedPolicy{roles: map[string][]rbacv1.PolicyRule{}, labels: map[string][]string{}, selects: map[string]string{}}
	role, binding := "", -1
	for line := range strings.Lines(string(file)) {
		text, indented := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "\t")
		switch {
		case indented && binding >= 0:
			p.bindings[binding].subjects = append(p.bindings[binding].subjects, publishedSubject(text))
		case indented:
			p.roles[role] = append(p.roles[role], publishedRule(text))
		default:
			role, binding = "", -1
			words := strings.Fields(text)
			switch words[0] {
			case "ClusterRole", "Role":
				role = words[1]
				p.roles[role] = nil
				for i := 2; i+1 < len(words); i += 2 {
					switch words[i] {
					case "label":
						p.labels[words[i+1]] = append(p.labels[words[i+1]], role)
					case "selects":
						p.selects[role] = words[i+1]
					}
				}
			case "ClusterRoleBinding", "RoleBinding":
				namespace, _, namespaced := strings.Cut(words[1], "/")
				if !namespaced {
					namespace = ""
				}
				role := words[4]
				if words[3] == "Role" {
					role = namespace + "/" + role
				}
				binding = len(p.bindings)
				p.bindings = append(p.bindings, publishedBinding{namespace: namespace, role: role})
			}
		}
	}
	return p
}

// publishedRule reads a line such as "configmaps.[cluster-info]: get list".
func publishedRule(line string) rbacv1.PolicyRule {
	what, verbs, _ := strings.Cut(line, ": ")
	r := rbacv1.PolicyRule{Verbs: strings.Fields(verbs)}
	if what == "*" || strings.HasPrefix(what, "/") {
		r.NonResourceURLs = []string{what}
		return r
	}
	what, name, named := strings.Cut(strings.TrimSuffix(what, "]"), "[")
	if named {
		r.ResourceNames = []string{name}
	}
	resource, group, _ := strings.Cut(what, ".")
	r.Resources, r.APIGroups = []string{resource}, []string{group}
	return r
}

func publishedSubject(line string) string {
	kind, name, _ := strings.Cut(line, " ")
	if kind == "ServiceAccount" {
		namespace, name, _ := strings.Cut(name, "/")
		return "User system:serviceaccount:" + namespace + ":" + name
	}
	return kind + " " + name
}

// rulesOf returns the rules of a role, and of those that it aggregates.
func (p *publishedPolicy) rulesOf(role string) []rbacv1.PolicyRule {
	rules := p.roles[role]
	for _, part := range p.labels[p.selects[role]] {
		rules = append(slices.Clip(rules), p.rulesOf(part)...)
	}
	return rules
}

// rules returns what a user has in a namespace; "" is the cluster.
func (p *publishedPolicy) rules(u matrixUser, namespace string) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for _, b := range p.bindings {
		if b.namespace != "" && b.namespace != namespace {
			continue
		}
		if slices.ContainsFunc(b.subjects, func(s string) bool {
			kind, name, _ := strings.Cut(s, " ")
			return kind == "User" && name == u.name || kind == "Group" && slices.Contains(u.groups, name)
		}) {
			rules = append(rules, p.rulesOf(b.role)...)
		}
	}
	return rules
}

// allows decides by roles alone.
func (p *publishedPolicy) allows(u matrixUser, q question) bool {
	return p.hasRules(u, q.namespace, q.rule())
}

// hasRules reports whether a user has all of some rules, as escalation checks ask.
func (p *publishedPolicy) hasRules(u matrixUser, namespace string, wanted ...rbacv1.PolicyRule) bool {
	if slices.Contains(u.groups, "system:masters") {
		return true
	}
	has, _ := validation.Covers(p.rules(u, namespace), wanted)
	return has
}

// matrixUser is who the server should take a client for.
type matrixUser struct {
	name   string
	groups []string
}

// clusterRole and role are parts of the test's own policy, which a test creates, too.
func (p *publishedPolicy) addClusterRole(role *rbacv1.ClusterRole) {
	p.roles[role.Name] = role.Rules
	for label := range role.Labels {
		p.labels[label] = append(p.labels[label], role.Name)
	}
}

func (p *publishedPolicy) addRole(role *rbacv1.Role) {
	p.roles[role.Namespace+"/"+role.Name] = role.Rules
}

// addBinding adds a ClusterRoleBinding, or a RoleBinding if it has a namespace.
func (p *publishedPolicy) addBinding(b *rbacv1.RoleBinding) {
	added := publishedBinding{namespace: b.Namespace, role: b.RoleRef.Name}
	if b.RoleRef.Kind == "Role" {
		added.role = b.Namespace + "/" + b.RoleRef.Name
	}
	for _, s := range b.Subjects {
		switch s.Kind {
		case "ServiceAccount":
			added.subjects = append(added.subjects, "User system:serviceaccount:"+s.Namespace+":"+s.Name)
		default:
			added.subjects = append(added.subjects, s.Kind+" "+s.Name)
		}
	}
	p.bindings = append(p.bindings, added)
}

// kubeletRow is a line of what the documentation of Node authorization says of the
// resources that it divides among nodes. The first row that matches a question decides.
// Source: https://kubernetes.io/docs/reference/access-authn-authz/node/.
type kubeletRow struct {
	verbs, resource string
	objects         string // namespaces and names; "a/" is a collection of one namespace, "" of all
	// refusal is the reason; "" if the kubelet may.
	refusal string
}

const (
	anyVerb     = "get list watch create update patch delete deletecollection"
	readVerbs   = "get list watch"
	keepVerbs   = "get create update patch delete"
	noSelector  = "can only list/watch pods with spec.nodeName field selector"
	noRelation  = "no relationship found between node 'n1' and this object"
	onlyOwnPart = "node 'n1' cannot read 'n2', only its own Node object"
)

// kubeletTable is for the kubelet of the node n1, on which the pod a/app runs. For that of
// any other node, no object is related.
var kubeletTable = []kubeletRow{
	{readVerbs, "secrets", "a/used", ""},
	{readVerbs, "secrets", "a/other b/used b/other", noRelation},
	{"list watch", "secrets", "a/ b/", "No Object name found"},
	{"list watch", "secrets", "", "can only read namespaced object of this type"},
	{anyVerb, "secrets", "*", "can only read resources of this type"},
	{readVerbs, "configmaps", "a/used", ""},
	{readVerbs, "configmaps", "a/other b/used b/other", noRelation},
	{"list watch", "configmaps", "a/ b/", "No Object name found"},
	{"list watch", "configmaps", "", "can only read namespaced object of this type"},
	{anyVerb, "configmaps", "*", "can only read resources of this type"},
	{"get", "serviceaccounts", "a/used", ""},
	{"get", "serviceaccounts", "a/other b/used b/other", noRelation},
	{"create", "serviceaccounts/token", "a/used", ""},
	{"create", "serviceaccounts/token", "a/other b/used b/other", noRelation},
	{"create", "serviceaccounts", "a/used a/other b/used b/other", "can only create token subresource of serviceaccount"},
	{anyVerb, "serviceaccounts", "*", "can only create tokens for individual service accounts"},
	{anyVerb, "serviceaccounts/token", "*", "can only create tokens for individual service accounts"},
	{"get", "persistentvolumeclaims", "a/used", ""},
	{"get", "persistentvolumeclaims", "a/other b/used b/other", noRelation},
	{anyVerb, "persistentvolumeclaims", "*", "can only get individual resources of this type"},
	{"update patch", "persistentvolumeclaims/status", "a/used", ""},
	{"update patch", "persistentvolumeclaims/status", "a/other b/used b/other", noRelation},
	{anyVerb, "persistentvolumeclaims/status", "*", "can only get/update/patch this type"},
	{"get", "persistentvolumes", "used", ""},
	{"get", "persistentvolumes", "other", noRelation},
	{anyVerb, "persistentvolumes", "*", "can only get individual resources of this type"},
	{"get", "persistentvolumes/status", "used other", "cannot get subresource"},
	{anyVerb, "persistentvolumes/status", "*", "can only get individual resources of this type"},
	{"create", "leases", "kube-node-lease/", ""},
	{keepVerbs, "leases", "kube-node-lease/n1", ""},
	{keepVerbs, "leases", "kube-node-lease/n2", "can only access node lease with the same name as the requesting node"},
	{keepVerbs, "leases", "*", `can only access leases in the "kube-node-lease" system namespace`},
	{anyVerb, "leases", "*", "can only get, create, update, patch, or delete a node lease"},
	{"get list watch", "nodes", "n1", ""},
	{"create update patch", "nodes", "*", ""},
	{"get list watch", "nodes", "n2", onlyOwnPart},
	{"list watch", "nodes", "", "node 'n1' cannot read all nodes, only its own Node object"},
	{"update patch", "nodes/status", "*", ""},
	{"get list watch", "pods", "a/used", ""},
	{"get list watch", "pods", "a/other b/used b/other", noRelation},
	{"list watch", "pods", "*", noSelector},
	{"create delete", "pods", "*", ""},
	{"update patch", "pods/status", "*", ""},
	{"create", "pods/eviction", "*", ""},
}

// allowsKubelet decides as the Node authorizer does, and says why not. The table is about
// n1; to n2, what is used by the pod of n1 is as unrelated as everything else.
func (p *publishedPolicy) allowsKubelet(node string, q question) (allowed bool, reason string) {
	swap := strings.NewReplacer()
	if node == "n2" {
		swap = strings.NewReplacer("n1", "n2", "n2", "n1", "used", "other")
	}
	object := swap.Replace(q.name)
	if q.namespace != "" {
		object = q.namespace + "/" + object
	}
	if q.fullResource() == "pods" && q.selectsNode == node && (q.verb == "list" || q.verb == "watch") {
		return true, ""
	}
	divided := false
	for _, row := range kubeletTable {
		divided = divided || strings.HasPrefix(row.resource+"/", q.resource+"/")
		if row.resource != q.fullResource() || !slices.Contains(strings.Fields(row.verbs), q.verb) ||
			row.objects != "*" && !slices.Contains(strings.Split(row.objects, " "), object) {
			continue
		}
		return row.refusal == "", swap.Replace(row.refusal)
	}
	if divided {
		return false, ""
	}
	has, _ := validation.Covers(p.roles["system:node"], []rbacv1.PolicyRule{q.rule()})
	return has, ""
}

func meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}
