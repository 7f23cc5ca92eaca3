package server_test

import (
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/server"
)

// withRBAC starts a server in which the user jane, of the group dev, has the token
// "secret".
func withRBAC(t *testing.T, change ...func(*server.Config)) (admin, jane *client.Client) {
	t.Helper()
	config := server.Config{
		DataDir: t.TempDir(), Storage: server.Memory, AuthorizationModes: []string{"RBAC"},
		TokenAuthFile: mustWrite(t, "tokens.csv", []byte("secret,jane,u1,\"dev\"\n")),
	}
	for _, f := range change {
		f(&config)
	}
	s := start(t, config)
	return s.client(t), s.as(t, func(c *rest.Config) { c.BearerToken = "secret" })
}

// TestRBAC: a user may do what roles allow, from the answer that grants it until the
// answer that takes it away.
func TestRBAC(t *testing.T) {
	admin, jane := withRBAC(t)
	ctx := deadline(t)
	create(ctx, t, admin, "a")
	read := func() error {
		_, err := configMaps(jane).Get(ctx, "a", metav1.GetOptions{})
		return err
	}
	const refusal = `configmaps "a" is forbidden: User "jane" cannot get resource "configmaps" in API group "" in the namespace "default"`
	if err := read(); !apierrors.IsForbidden(err) || err.Error() != refusal {
		t.Fatalf("without a role: %v", err)
	}
	roles := client.For[*rbacv1.Role](admin).Namespace("default")
	bindings := client.For[*rbacv1.RoleBinding](admin).Namespace("default")
	if _, err := roles.Create(ctx, &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "reader"},
		Rules:      []rbacv1.PolicyRule{{Verbs: []string{"get", "list"}, APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{"a"}}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if _, err := bindings.Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "readers"},
			RoleRef:    rbacv1.RoleRef{Kind: "Role", Name: "reader"},
			Subjects:   []rbacv1.Subject{{Kind: "Group", Name: "dev"}},
		}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := read(); err != nil {
			t.Fatalf("after the grant: %v", err)
		}
		if err := bindings.Delete(ctx, "readers", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := read(); !apierrors.IsForbidden(err) {
			t.Fatalf("after the grant was taken away: %v", err)
		}
	}
	if _, err := client.For[*corev1.Pod](jane).List(ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a list of another kind: %v", err)
	}
}

// TestUnknownResourcesAreForbidden: who may do nothing does not learn what is served.
func TestUnknownResourcesAreForbidden(t *testing.T) {
	admin, jane := withRBAC(t)
	for _, path := range []string{"/apis/example.com/v1/tests", "/api/v1/namespaces/a/secrets", "/apis/apps/v1/namespaces/a/deployments/b/nothing"} {
		if code := status(t, jane, path); code != http.StatusForbidden {
			t.Errorf("%s: %d", path, code)
		}
	}
	if code := status(t, admin, "/apis/example.com/v1/tests"); code != http.StatusNotFound {
		t.Errorf("for the administrator: %d", code)
	}
}

// status asks for a path and returns the code of the answer.
func status(t *testing.T, c *client.Client, path string) int {
	t.Helper()
	resp, err := c.Raw(deadline(t), client.RawRequest{Method: http.MethodGet, Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // nothing was written
	return resp.StatusCode
}
