package server_test

import (
	"fmt"
	"net/http"

	rbacv1 "k8s.io/api/rbac/v1"
)

// grant is what a written role or binding gives to others.
type grant struct {
	namespace string              // "" of the whole cluster
	rules     []rbacv1.PolicyRule // of a role that is written
	role      string              // that a binding refers to, as publishedPolicy names it
	// instead is the right that replaces having the rules: escalate, or bind.
	instead question
}

const rbacGroup = "rbac.authorization.k8s.io"

// grantRequests write roles with few and with all rights, and bind such ones.
func grantRequests() []matrixRequest {
	everything := rbacv1.PolicyRule{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}
	pods := rbacv1.PolicyRule{Verbs: []string{"get", "list"}, APIGroups: []string{""}, Resources: []string{"pods"}}
	var all []matrixRequest
	for _, rule := range []rbacv1.PolicyRule{everything, pods} {
		body := func(kind string) string {
			return fmt.Sprintf(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":%q,"metadata":{"name":"granted"},"rules":[{"verbs":%s,"apiGroups":[%q],"resources":[%q]}]}`,
				kind, quoted(rule.Verbs), rule.APIGroups[0], rule.Resources[0])
		}
		all = append(all, matrixRequest{
			method: http.MethodPost, path: "/apis/rbac.authorization.k8s.io/v1/clusterroles", body: body("ClusterRole"), contentType: "application/json",
			asks:   []question{{verb: "create", group: rbacGroup, resource: "clusterroles"}},
			grants: &grant{rules: []rbacv1.PolicyRule{rule}, instead: question{verb: "escalate", group: rbacGroup, resource: "clusterroles"}},
		})
		for _, namespace := range []string{"a", "b"} {
			all = append(all, matrixRequest{
				method: http.MethodPost, path: "/apis/rbac.authorization.k8s.io/v1/namespaces/" + namespace + "/roles", body: body("Role"), contentType: "application/json",
				asks:   []question{{verb: "create", group: rbacGroup, resource: "roles", namespace: namespace}},
				grants: &grant{namespace: namespace, rules: []rbacv1.PolicyRule{rule}, instead: question{verb: "escalate", group: rbacGroup, resource: "roles", namespace: namespace}},
			})
		}
	}
	for _, role := range []string{"cluster-admin", "admin", "edit", "view"} {
		body := func(kind string) string {
			return fmt.Sprintf(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":%q,"metadata":{"name":"granted"},`+
				`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":%q},"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"x"}]}`, kind, role)
		}
		all = append(all, matrixRequest{
			method: http.MethodPost, path: "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", body: body("ClusterRoleBinding"), contentType: "application/json",
			asks:   []question{{verb: "create", group: rbacGroup, resource: "clusterrolebindings"}},
			grants: &grant{role: role, instead: question{verb: "bind", group: rbacGroup, resource: "clusterroles", name: role}},
		})
		for _, namespace := range []string{"a", "b"} {
			all = append(all, matrixRequest{
				method: http.MethodPost, path: "/apis/rbac.authorization.k8s.io/v1/namespaces/" + namespace + "/rolebindings", body: body("RoleBinding"), contentType: "application/json",
				asks:   []question{{verb: "create", group: rbacGroup, resource: "rolebindings", namespace: namespace}},
				grants: &grant{namespace: namespace, role: role, instead: question{verb: "bind", group: rbacGroup, resource: "clusterroles", namespace: namespace, name: role}},
			})
		}
	}
	return all
}

func quoted(words []string) string {
	text := fmt.Sprintf("%q", words)
	out := []byte(text)
	for i, c := range out {
		if c == ' ' {
			out[i] = ','
		}
	}
	return string(out)
}

// mayGrant reports whether upstream's rules against escalation let a user write what gives
// rights: it has them, or may escalate roles or bind the role.
func (p *publishedPolicy) mayGrant(u matrixUser, g *grant) bool {
	if p.allows(u, g.instead) {
		return true
	}
	rules := g.rules
	if g.role != "" {
		rules = p.rulesOf(g.role)
	}
	return p.hasRules(u, g.namespace, rules...)
}
