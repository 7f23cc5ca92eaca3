package server_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/internal/testwait"
	"github.com/levelwire/levelwire/server"
	"github.com/levelwire/levelwire/server/internal/auth/oidctest"
)

// identity is a way to make requests, and who upstream takes it for.
type identity struct {
	name    string
	token   string
	headers map[string]string
	user    matrixUser
	node    string // of a kubelet
	// http has a client certificate; nil: there is none.
	http *http.Client
	// refused decides before the user's roles do: it returns the question that is answered
	// with 403, if there is one. unauthenticated is 401.
	refused         func(question) *question
	unauthenticated bool
}

func authenticated(name string, groups ...string) matrixUser {
	return matrixUser{name, append(groups, "system:authenticated")}
}

// fromTokenFile are the users of the token file: their tokens are their names.
var fromTokenFile = []matrixUser{
	authenticated("nobody"), authenticated("viewer"), authenticated("editor"), authenticated("admin"), authenticated("clusteradmin"),
	authenticated("master", "system:masters"), authenticated("granter"), authenticated("impersonator"), authenticated("constrained"),
	authenticated("system:node:n1", "system:nodes"), authenticated("system:node:n2", "system:nodes"), authenticated("impostor", "system:nodes"),
	authenticated("system:kube-scheduler"), authenticated("system:kube-controller-manager"), authenticated("system:kube-proxy"), authenticated("monitor", "system:monitoring"),
}

// TestAuthorizationMatrix: each identity asks for everything, over HTTP, and is allowed
// what the roles that Kubernetes publishes allow it, by rules that are compared by
// k8s.io/component-helpers, and a table of what the documentation says of nodes. The
// refusals have upstream's code, reason and words. What is refused is asked for in earnest,
// and changes nothing; what is allowed, by a dry run. In a short test each identity asks for an
// eighth of everything, another one than the identity before it.
func TestAuthorizationMatrix(t *testing.T) {
	m := newMatrix(t)
	before := m.everything(t)
	requests := matrixRequests()
	asked, refused := 0, 0
	for n, who := range m.identities(t) {
		t.Run(who.name, func(t *testing.T) {
			for i, q := range requests {
				if testing.Short() && (n+i)%8 > 0 {
					continue
				}
				asked++
				if m.ask(t, &who, &q) {
					refused++
				}
			}
		})
	}
	t.Logf("of %d requests for each identity: %d answers, %d of them refusals", len(requests), asked, refused)
	if after := m.everything(t); !maps.Equal(before, after) {
		for key, version := range after {
			if before[key] != version {
				t.Errorf("%s was written by a request that was refused, or by a dry run", key)
			}
		}
		for key := range before {
			if _, ok := after[key]; !ok {
				t.Errorf("%s was deleted by a request that was refused, or by a dry run", key)
			}
		}
	}
}

type matrix struct {
	policy *publishedPolicy
	url    string
	http   *http.Client
	admin  string // token
	robot  string // the token of a service account
	jwt    string // the token of an issuer's user
	// certified, proxy and stranger have client certificates, of a user, of a front proxy
	// and of an authority that the server does not know.
	certified, proxy, stranger *http.Client
}

func newMatrix(t *testing.T) *matrix {
	t.Helper()
	var tokens strings.Builder
	for _, u := range fromTokenFile {
		fmt.Fprintf(&tokens, "%s,%s,,%q\n", u.name, u.name, strings.Join(u.groups[:len(u.groups)-1], ","))
	}
	anonymous := true
	proxies, proxyFile := newAuthority(t)
	users, userFile := newAuthority(t)
	strangers, _ := newAuthority(t)
	issuer := oidctest.NewProvider(t)
	s := start(t, server.Config{
		DataDir: t.TempDir(), Storage: server.Memory, Profiling: true, ClientCAFile: userFile,
		TokenAuthFile: mustWrite(t, "tokens.csv", []byte(tokens.String())),
		Authentication: server.Authentication{
			Anonymous: &anonymous, BootstrapTokens: true, ConfigFile: mustWrite(t, "authentication.yaml", oidctest.File(issuer.Entry(""))),
			RequestHeader: server.RequestHeader{ClientCAFile: proxyFile, AllowedNames: []string{"front"}},
		},
	})
	admin := s.adminConfig(t)
	connect := func(change func(*rest.Config)) *http.Client {
		config := &rest.Config{Host: admin.Host, TLSClientConfig: rest.TLSClientConfig{CAData: admin.CAData}}
		change(config)
		c, err := rest.HTTPClientFor(config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.CloseIdleConnections)
		return c
	}
	m := &matrix{
		policy: readPolicy(t), url: s.URL(), http: connect(func(*rest.Config) {}), admin: "master", jwt: issuer.Token(nil),
		certified: connect(certified(t, users, "certified")), proxy: connect(certified(t, proxies, "front")),
		stranger: connect(certified(t, strangers, "master")),
	}
	awaitUser(t, s.as(t, func(c *rest.Config) { c.BearerToken = m.jwt }), "oidc:jane") // the issuer has answered
	m.createObjects(t)
	m.createPolicy(t)
	return m
}

// identities are made once there are their accounts and tokens.
func (m *matrix) identities(t *testing.T) []identity {
	t.Helper()
	list := []identity{
		{name: "anonymous", user: matrixUser{"system:anonymous", []string{"system:unauthenticated"}}},
		{name: "a wrong token", token: "wrong", unauthenticated: true},
		{name: "an unknown certificate", http: m.stranger, unauthenticated: true},
		{name: "a proxy that names no user", http: m.proxy, unauthenticated: true},
		{name: "an unknown certificate with a token", http: m.stranger, token: "viewer", user: authenticated("viewer")},
		{name: "a service account", token: m.robot, user: matrixUser{"system:serviceaccount:a:robot", []string{"system:serviceaccounts", "system:serviceaccounts:a", "system:authenticated"}}},
		{name: "a bootstrap token", token: "abcdef.0123456789abcdef", user: matrixUser{"system:bootstrap:abcdef", []string{"system:bootstrappers", "system:authenticated"}}},
		{name: "a user of an issuer", token: m.jwt, user: authenticated("oidc:jane", "dev", "ops")},
		{name: "a client certificate", http: m.certified, user: authenticated("certified")},
		{name: "a user of a proxy", http: m.proxy, headers: map[string]string{"X-Remote-User": "remote", "X-Remote-Group": "ops"}, user: authenticated("remote", "ops")},
		{name: "a user without a proxy", headers: map[string]string{"X-Remote-User": "master", "X-Remote-Group": "system:masters"}, user: matrixUser{"system:anonymous", []string{"system:unauthenticated"}}},
		{name: "impersonating the viewer", token: "impersonator", headers: map[string]string{"Impersonate-User": "viewer"}, user: authenticated("viewer")},
		{
			name: "impersonating a service account", token: "editor", headers: map[string]string{"Impersonate-User": "system:serviceaccount:a:robot"},
			user: matrixUser{"system:serviceaccount:a:robot", []string{"system:serviceaccounts", "system:serviceaccounts:a", "system:authenticated"}},
		},
		{name: "impersonating a service account elsewhere", token: "editor", headers: map[string]string{"Impersonate-User": "system:serviceaccount:b:used"}, refused: impersonate("serviceaccounts", "b", "used")},
		{name: "impersonating administrators", token: "impersonator", headers: map[string]string{"Impersonate-User": "viewer", "Impersonate-Group": "system:masters"}, refused: impersonate("groups", "", "system:masters")},
		{name: "impersonating without a right", token: "nobody", headers: map[string]string{"Impersonate-User": "viewer"}, refused: func(q question) *question {
			q.verb = "impersonate-on:user-info:" + q.verb // which is asked first, unless the verb impersonate has helped before
			return &q
		}},
		{name: "impersonating the viewer to list pods", token: "constrained", headers: map[string]string{"Impersonate-User": "viewer"}, user: authenticated("viewer"), refused: func(q question) *question {
			if q.verb == "list" && q.fullResource() == "pods" && q.namespace == "a" {
				return nil
			}
			q.verb = "impersonate-on:user-info:" + q.verb
			return &q
		}},
	}
	for _, u := range fromTokenFile {
		node := ""
		if slices.Contains(u.groups, "system:nodes") {
			node = strings.TrimPrefix(u.name, "system:node:")
			if node == u.name {
				node = ""
			}
		}
		list = append(list, identity{name: u.name, token: u.name, user: u, node: node})
	}
	return list
}

// impersonate is the right to a user, by the verb of old, that refused names.
func impersonate(resource, namespace, name string) func(question) *question {
	return func(question) *question {
		return &question{verb: "impersonate", resource: resource, namespace: namespace, name: name}
	}
}

// expected is the answer of upstream's rules: nil if everything is allowed.
type expected struct {
	refusal *question
	reason  string
	by      string // the user that the refusal names, if it is not the identity's
	// escalation: the request is allowed, but what it grants is not.
	escalation bool
}

func (m *matrix) expect(who *identity, q *matrixRequest) *expected {
	if who.refused != nil {
		if refusal := who.refused(q.asks[0]); refusal != nil {
			return &expected{refusal: refusal, by: who.token}
		}
	}
	for _, question := range q.asks {
		if m.policy.allows(who.user, question) {
			continue
		}
		reason := ""
		if who.node != "" {
			allowed := false
			if allowed, reason = m.policy.allowsKubelet(who.node, question); allowed {
				continue
			}
		}
		return &expected{refusal: &question, reason: reason}
	}
	if q.grants != nil && !m.policy.mayGrant(who.user, q.grants) {
		return &expected{escalation: true}
	}
	return nil
}

// ask makes a request and compares the answer; it reports whether it is a refusal.
func (m *matrix) ask(t *testing.T, who *identity, q *matrixRequest) (refused bool) {
	t.Helper()
	want := m.expect(who, q)
	dry := want == nil && !who.unauthenticated
	code, text := m.sendBy(t, who.http, who.token, who.headers, q, dry)
	var status metav1.Status
	if code >= http.StatusBadRequest && q.method != http.MethodHead {
		_ = json.Unmarshal([]byte(text), &status) // of the health checks, it is text
	}
	switch {
	case who.unauthenticated:
		if code != http.StatusUnauthorized || q.method != http.MethodHead && status.Reason != metav1.StatusReasonUnauthorized {
			t.Errorf("%s: %d %s, want 401", q, code, text)
		}
		return true
	case want == nil:
		m.expectAllowed(t, who, q, code, status.Message)
		return false
	case code != http.StatusForbidden:
		t.Errorf("%s: %d %.200s, want 403", q, code, text)
	case q.method == http.MethodHead:
	case status.Reason != metav1.StatusReasonForbidden || status.Code != http.StatusForbidden:
		t.Errorf("%s: a refusal with the reason %q and code %d", q, status.Reason, status.Code)
	case want.escalation:
		if !strings.Contains(status.Message, "is attempting to grant RBAC permissions not currently held") {
			t.Errorf("%s: %q, want a refusal to escalate", q, status.Message)
		}
	default:
		if words := refusalWords(cmp.Or(want.by, who.user.name), want); status.Message != words {
			t.Errorf("%s:\n got %s\nwant %s", q, status.Message, words)
		}
	}
	return true
}

// expectAllowed: what was allowed may fail for other reasons, such as an object that is
// invalid, but not because it is refused.
func (m *matrix) expectAllowed(t *testing.T, who *identity, q *matrixRequest, code int, message string) {
	t.Helper()
	switch {
	case code == http.StatusForbidden && !strings.Contains(message, "User ") && who.node != "": // the admission of nodes' writes
	case code == http.StatusForbidden, code == http.StatusUnauthorized, code == http.StatusTooManyRequests, code >= http.StatusInternalServerError:
		t.Errorf("%s: %d %s, want it to be allowed", q, code, message)
	case q.succeeds && code != http.StatusOK:
		t.Errorf("%s: %d %s, want 200", q, code, message)
	}
}

// refusalWords is the message of upstream's 403.
func refusalWords(user string, e *expected) string {
	q := e.refusal
	if q.path != "" {
		return strings.TrimSuffix(fmt.Sprintf("forbidden: User %q cannot %s path %q: %s", user, q.verb, q.path, e.reason), ": ")
	}
	object := strings.TrimSuffix(q.resource+"."+q.group, ".")
	if q.name != "" {
		object += fmt.Sprintf(" %q", q.name)
	}
	where := "at the cluster scope"
	if q.namespace != "" {
		where = fmt.Sprintf("in the namespace %q", q.namespace)
	}
	return strings.TrimSuffix(fmt.Sprintf("%s is forbidden: User %q cannot %s resource %q in API group %q %s: %s",
		object, user, q.verb, q.fullResource(), q.group, where, e.reason), ": ")
}

// send makes a request without a client certificate.
func (m *matrix) send(t *testing.T, token string, headers map[string]string, q *matrixRequest, dry bool) (code int, text string) {
	t.Helper()
	return m.sendBy(t, nil, token, headers, q, dry)
}

// sendBy makes a request by a client, or by that without a certificate. The body of a watch
// that was allowed is not read.
func (m *matrix) sendBy(t *testing.T, by *http.Client, token string, headers map[string]string, q *matrixRequest, dry bool) (code int, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	path := q.path
	if dry && q.method != http.MethodGet && q.method != http.MethodHead {
		separator := "?"
		if strings.Contains(path, "?") {
			separator = "&"
		}
		path += separator + "dryRun=All"
	}
	request, err := http.NewRequestWithContext(ctx, q.method, m.url+path, strings.NewReader(q.body))
	if err != nil {
		t.Fatal(err)
	}
	if q.contentType != "" {
		request.Header.Set("Content-Type", q.contentType)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	for key, value := range headers {
		request.Header.Set(key, value)
	}
	resp, err := cmp.Or(by, m.http).Do(request)
	if err != nil {
		t.Fatalf("%s: %v", q, err)
	}
	defer resp.Body.Close() //nolint:errcheck // nothing was written
	if q.watches && resp.StatusCode == http.StatusOK {
		return resp.StatusCode, ""
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s: %v", q, err)
	}
	return resp.StatusCode, string(body)
}

// everything returns the versions of all objects that the matrix is about.
func (m *matrix) everything(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, r := range matrixResources {
		if r.absent || r.onlyCreate {
			continue
		}
		path := r.path("", "")
		code, text := m.send(t, m.admin, nil, &matrixRequest{method: http.MethodGet, path: path}, false)
		var list metav1.PartialObjectMetadataList
		if err := json.Unmarshal([]byte(text), &list); err != nil || code != http.StatusOK {
			t.Fatalf("%s: %d %v", path, code, err)
		}
		for _, item := range list.Items {
			all[path+" "+item.Namespace+"/"+item.Name] = item.ResourceVersion
		}
	}
	return all
}

// create stores an object as the administrator.
func (m *matrix) create(t *testing.T, path string, object any) string {
	t.Helper()
	body, ok := object.(string)
	if !ok {
		encoded, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		body = string(encoded)
	}
	code, text := m.send(t, m.admin, nil, &matrixRequest{method: http.MethodPost, path: path, body: body, contentType: "application/json"}, false)
	if code != http.StatusCreated && code != http.StatusConflict {
		t.Fatalf("%s: %d %s", path, code, text)
	}
	return text
}

// createPolicy gives the identities their roles, in the server and in the evaluation.
func (m *matrix) createPolicy(t *testing.T) {
	t.Helper()
	rule := func(verbs, group, resources string, names ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{Verbs: strings.Fields(verbs), APIGroups: []string{group}, Resources: strings.Fields(resources), ResourceNames: names}
	}
	for _, role := range []*rbacv1.ClusterRole{
		{ObjectMeta: metav1.ObjectMeta{Name: "widgets", Labels: map[string]string{"rbac.authorization.k8s.io/aggregate-to-edit": "true"}}, Rules: []rbacv1.PolicyRule{rule("*", "example.com", "widgets */scale")}},
		{ObjectMeta: meta("", "granting"), Rules: []rbacv1.PolicyRule{
			rule("create get update patch", rbacGroup, "roles rolebindings clusterroles clusterrolebindings"), rule("escalate", rbacGroup, "clusterroles"), rule("bind", rbacGroup, "clusterroles", "admin"),
		}},
		{ObjectMeta: meta("", "impersonating"), Rules: []rbacv1.PolicyRule{rule("impersonate", "", "users", "viewer"), rule("impersonate", "", "groups", "dev")}},
		{ObjectMeta: meta("", "constrained"), Rules: []rbacv1.PolicyRule{rule("impersonate:user-info", "authentication.k8s.io", "users", "viewer")}},
		{ObjectMeta: meta("", "constrained-to-lists"), Rules: []rbacv1.PolicyRule{rule("impersonate-on:user-info:list", "", "pods")}},
	} {
		m.policy.addClusterRole(role)
		m.create(t, "/apis/rbac.authorization.k8s.io/v1/clusterroles", role)
	}
	robot := &rbacv1.Role{ObjectMeta: meta("a", "robot"), Rules: []rbacv1.PolicyRule{
		rule("get list watch patch", "", "configmaps", "used"), rule("create", "", "pods configmaps"), rule("get", "*", "*/status"), rule("delete deletecollection", "apps", "*"),
	}}
	m.policy.addRole(robot)
	m.create(t, "/apis/rbac.authorization.k8s.io/v1/namespaces/a/roles", robot)
	bind := func(namespace, kind, role, subjectKind, subject string) {
		b := &rbacv1.RoleBinding{ObjectMeta: meta(namespace, "to-"+strings.ReplaceAll(subject, ":", "-")), RoleRef: rbacv1.RoleRef{APIGroup: rbacGroup, Kind: kind, Name: role}}
		b.Subjects = []rbacv1.Subject{{Kind: subjectKind, APIGroup: rbacGroup, Name: subject}}
		if subjectKind == "ServiceAccount" {
			b.Subjects[0].APIGroup, b.Subjects[0].Namespace = "", "a"
		}
		m.policy.addBinding(b)
		if namespace != "" {
			m.create(t, "/apis/rbac.authorization.k8s.io/v1/namespaces/"+namespace+"/rolebindings", b)
			return
		}
		m.create(t, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &rbacv1.ClusterRoleBinding{ObjectMeta: b.ObjectMeta, RoleRef: b.RoleRef, Subjects: b.Subjects})
	}
	bind("", "ClusterRole", "view", "User", "viewer")
	bind("a", "ClusterRole", "edit", "User", "editor")
	bind("a", "ClusterRole", "admin", "User", "admin")
	bind("", "ClusterRole", "cluster-admin", "User", "clusteradmin")
	bind("", "ClusterRole", "granting", "User", "granter")
	bind("", "ClusterRole", "impersonating", "User", "impersonator")
	bind("", "ClusterRole", "system:node-bootstrapper", "Group", "system:bootstrappers")
	bind("a", "Role", "robot", "ServiceAccount", "robot")
	bind("b", "ClusterRole", "edit", "Group", "dev")
	bind("a", "ClusterRole", "view", "Group", "ops")
	bind("a", "ClusterRole", "admin", "User", "certified")
	bind("", "ClusterRole", "constrained", "User", "constrained")
	bind("a", "ClusterRole", "constrained-to-lists", "User", "constrained")
	// What is aggregated follows in a moment.
	testwait.Stable(t, "the role admin gets what is aggregated", func() (any, bool) {
		code, _ := m.send(t, "admin", nil, &matrixRequest{method: http.MethodGet, path: "/apis/example.com/v1/namespaces/a/widgets"}, false)
		return code, code == http.StatusOK
	})
}
