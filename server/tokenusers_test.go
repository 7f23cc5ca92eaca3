package server_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/server"
	"github.com/levelwire/levelwire/server/internal/auth/oidctest"
)

// expectGroupCounts checks that a client may read what a role gives to its group dev, and
// nothing before.
func expectGroupCounts(t *testing.T, admin, c *client.Client) {
	t.Helper()
	ctx := deadline(t)
	list := func() error {
		_, err := configMaps(c).List(ctx, metav1.ListOptions{})
		return err
	}
	if err := list(); !apierrors.IsForbidden(err) {
		t.Errorf("without a role: %v", err)
	}
	_, err := client.For[*rbacv1.RoleBinding](admin).Namespace(metav1.NamespaceDefault).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "developers"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacGroup, Kind: "ClusterRole", Name: "view"},
		Subjects: []rbacv1.Subject{{Kind: "Group", APIGroup: rbacGroup, Name: "dev"}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := list(); err != nil {
		t.Errorf("with the group's role: %v", err)
	}
}

// TestTokensOfAnIssuer: a token's claims are a user with groups, who has the rights of both,
// until the issuer is taken out of the file.
func TestTokensOfAnIssuer(t *testing.T) {
	issuer := oidctest.NewProvider(t)
	path := mustWrite(t, "authentication.yaml", oidctest.File(issuer.Entry("")))
	s := start(t, server.Config{DataDir: t.TempDir(), Storage: server.Memory, Authentication: server.Authentication{ConfigFile: path}})
	with := func(token string) *client.Client { return s.as(t, func(c *rest.Config) { c.BearerToken = token }) }
	jane := with(issuer.Token(nil))
	awaitUser(t, jane, "oidc:jane") // the server fetches the keys meanwhile
	user, err := whoami(t, jane)
	if err != nil || !slices.Equal(user.Groups, []string{"dev", "ops", "system:authenticated"}) || !slices.Equal(user.Extra["example.com/tenant"], []string{"acme"}) {
		t.Errorf("%+v, %v", user, err)
	}
	expectGroupCounts(t, s.client(t), jane)
	if user, err := whoami(t, with(issuer.Token(map[string]any{"aud": "vault"}))); !apierrors.IsUnauthorized(err) {
		t.Errorf("a token for another audience: %+v, %v", user, err)
	}
	rewrite(t, path, oidctest.File())
	awaitUser(t, jane, "")
	if user, err := whoami(t, jane); !apierrors.IsUnauthorized(err) {
		t.Errorf("a token of an issuer that was taken out: %+v, %v", user, err)
	}
}

// TestUsersOfTheWebhook: whom the webhook names is that user, with these groups, and is
// remembered for the time of the flag.
func TestUsersOfTheWebhook(t *testing.T) {
	var revoked atomic.Bool
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review authenticationv1.TokenReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			t.Error(err)
		}
		review.Status = authenticationv1.TokenReviewStatus{}
		if review.Spec.Token == "known" && !revoked.Load() {
			review.Status.Authenticated = true
			review.Status.User = authenticationv1.UserInfo{Username: "hook:jane", UID: "7", Groups: []string{"dev"}}
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(&review); err != nil {
			t.Error(err)
		}
	}))
	defer hook.Close()
	kubeconfig := mustWrite(t, "webhook.kubeconfig", []byte("apiVersion: v1\nkind: Config\nclusters: [{name: hook, cluster: {server: '"+hook.URL+"'}}]\n"+
		"users: [{name: me, user: {}}]\ncontexts: [{name: hook, context: {cluster: hook, user: me}}]\ncurrent-context: hook\n"))
	for _, remembered := range []time.Duration{time.Hour, time.Millisecond} {
		revoked.Store(false)
		s := start(t, server.Config{
			DataDir: t.TempDir(), Storage: server.Memory,
			Authentication: server.Authentication{WebhookConfigFile: kubeconfig, WebhookVersion: "v1", WebhookCacheTTL: remembered},
		})
		jane := s.as(t, func(c *rest.Config) { c.BearerToken = "known" })
		user, err := whoami(t, jane)
		if err != nil || user.Username != "hook:jane" || user.UID != "7" || !slices.Equal(user.Groups, []string{"dev", "system:authenticated"}) {
			t.Errorf("%+v, %v", user, err)
		}
		expectGroupCounts(t, s.client(t), jane)
		if user, err := whoami(t, s.as(t, func(c *rest.Config) { c.BearerToken = "unknown" })); !apierrors.IsUnauthorized(err) {
			t.Errorf("a token that the webhook refuses: %+v, %v", user, err)
		}
		revoked.Store(true)
		if remembered == time.Hour {
			awaitUser(t, jane, "hook:jane")
			continue
		}
		awaitUser(t, jane, "")
	}
}
