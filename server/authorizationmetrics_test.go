package server_test

import (
	"net/http"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/server"
)

// TestAuthorizationMetrics: decisions and impersonation are counted by kube-apiserver's
// metrics. What no authorizer allows or denies is counted as a request only.
func TestAuthorizationMetrics(t *testing.T) {
	s := start(t, server.Config{
		DataDir: t.TempDir(), Storage: server.Memory, AuthorizationModes: []string{"RBAC"},
		TokenAuthFile: mustWrite(t, "tokens.csv", []byte("secret,jane,u1,\"dev\"\n")),
	})
	admin, jane := s.client(t), s.as(t, func(c *rest.Config) { c.BearerToken = "secret" })
	if _, err := client.For[*rbacv1.ClusterRoleBinding](admin).Create(deadline(t), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "jane"}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "view"},
		Subjects: []rbacv1.Subject{{Kind: "User", Name: "jane"}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	read := func(name string) string {
		t.Helper()
		for line := range strings.Lines(s.get(t, "/metrics")) {
			if value, ok := strings.CutPrefix(line, name+" "); ok {
				return strings.TrimSpace(value)
			}
		}
		return ""
	}
	const allowed = `apiserver_authorization_decisions_total{decision="allowed",name="rbac",type="RBAC"}`
	if n := read(allowed); n != "0" {
		t.Errorf("before the first decision: %q", n)
	}
	for _, path := range []string{"/api/v1/pods", "/api/v1/namespaces/a/configmaps", "/api/v1/secrets"} {
		want := http.StatusOK
		if strings.HasSuffix(path, "secrets") {
			want = http.StatusForbidden
		}
		if code := status(t, jane, path); code != want {
			t.Errorf("%s: %d", path, code)
		}
	}
	if n := read(allowed); n != "2" {
		t.Errorf("after two requests that were allowed: %q", n)
	}
	impersonating, err := jane.Raw(deadline(t), client.RawRequest{Method: http.MethodGet, Path: "/api/v1/pods", Header: http.Header{"Impersonate-User": {"joe"}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := impersonating.Body.Close(); err != nil || impersonating.StatusCode != http.StatusForbidden {
		t.Errorf("an impersonation: %s, %v", impersonating.Status, err)
	}
	if n := read("apiserver_client_certificate_expiration_seconds_count"); n == "" || n == "0" || read(`apiserver_client_certificate_expiration_seconds_bucket{le="1.5552e+07"}`) != "0" {
		t.Errorf("%q requests with client certificates, some of which end within half a year", n)
	}
	for name, want := range map[string]string{
		`authorization_attempts_total{result="no-opinion"}`:                                        "1",
		`authorization_duration_seconds_count{result="no-opinion"}`:                                "1",
		`authorization_attempts_total{result="denied"}`:                                            "0",
		`apiserver_impersonation_attempts_total{decision="denied",mode=""}`:                        "1",
		`apiserver_impersonation_attempts_duration_seconds_count{decision="denied",mode=""}`:       "1",
		`apiserver_impersonation_authorization_attempts_total{decision="denied",mode="legacy"}`:    "1",
		`apiserver_impersonation_authorization_attempts_total{decision="denied",mode="user-info"}`: "1",
	} {
		if n := read(name); n != want {
			t.Errorf("%s %q, want %s", name, n, want)
		}
	}
}

// TestAuthorizationWebhookMetrics: questions to the webhook are counted by its name, and
// those that it does not answer.
func TestAuthorizationWebhookMetrics(t *testing.T) {
	_, kubeconfig := newReviewServer(t)
	s := start(t, server.Config{
		DataDir: t.TempDir(), Storage: server.Memory, TokenAuthFile: mustWrite(t, "tokens.csv", []byte("secret,jane,u1,\"dev\"\n")),
		AuthorizationConfigFile: mustWrite(t, "authorization.yaml", authorizationConfig(kubeconfig, "request.user == 'jane'")),
	})
	jane := s.as(t, func(c *rest.Config) { c.BearerToken = "secret" })
	_ = status(t, jane, "/api/v1/namespaces/default/configmaps")
	metrics := s.get(t, "/metrics")
	for _, want := range []string{
		`apiserver_authorization_webhook_evaluations_total{name=`, `result="success"} 1`,
		`apiserver_authorization_webhook_duration_seconds_count{name=`, `apiserver_authorization_match_condition_evaluation_seconds_count{name=`,
		`apiserver_authorization_decisions_total{decision="allowed",name="rbac",type="RBAC"}`, `type="Webhook"`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("no metric %s", want)
		}
	}
}
