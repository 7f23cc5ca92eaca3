package server_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/internal/pki"
	"github.com/levelwire/levelwire/server"
)

// as returns a client that trusts the server as the kubeconfig does and
// authenticates with what change sets.
func (r *running) as(t *testing.T, change func(*rest.Config)) *client.Client {
	t.Helper()
	admin := r.adminConfig(t)
	config := &rest.Config{Host: admin.Host, TLSClientConfig: rest.TLSClientConfig{CAData: admin.CAData}}
	change(config)
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// adminConfig is how the administrator reaches the server.
func (r *running) adminConfig(t *testing.T) *rest.Config {
	t.Helper()
	admin, err := clientcmd.BuildConfigFromFlags("", r.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	return admin
}

// whoami asks the server which user it takes a client for.
func whoami(t *testing.T, c *client.Client) (authenticationv1.UserInfo, error) {
	t.Helper()
	review, err := client.For[*authenticationv1.SelfSubjectReview](c).Create(deadline(t), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return authenticationv1.UserInfo{}, err
	}
	return review.Status.UserInfo, nil
}

func mustWrite(t *testing.T, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// authorizing sends requests with its own Authorization header.
type authorizing struct {
	http.RoundTripper
	header string
}

func (a authorizing) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", a.header)
	return a.RoundTripper.RoundTrip(r)
}

// TestAuthentication accepts a token of the file, a certificate of the further
// authority and the administrator's, and no others. All clients get the configured
// serving certificate.
func TestAuthentication(t *testing.T) {
	authority, err := pki.LoadOrCreateAuthority(t.TempDir(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	serving, err := authority.Serving(t.TempDir(), []string{"127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	jane, err := authority.Client(t.TempDir(), "jane", "jane", "dev")
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, server.Config{
		DataDir: t.TempDir(), Storage: server.Memory,
		TLSCertFile: mustWrite(t, "tls.crt", serving.CertPEM), TLSKeyFile: mustWrite(t, "tls.key", serving.KeyPEM),
		ClientCAFile:       mustWrite(t, "ca.crt", authority.CertificatePEM()),
		TokenAuthFile:      mustWrite(t, "tokens.csv", []byte("secret,robot,u1,\"ci,dev\"\n")),
		AuthorizationModes: []string{"AlwaysAllow"}, // robot impersonates
	})
	for name, test := range map[string]struct {
		client *client.Client
		want   string // user and groups; "" if refused
	}{
		"administrator": {s.client(t), "levelwire-admin system:masters system:authenticated"},
		"certificate":   {s.as(t, func(c *rest.Config) { c.CertData, c.KeyData = jane.CertPEM, jane.KeyPEM }), "jane dev system:authenticated"},
		"token":         {s.as(t, func(c *rest.Config) { c.BearerToken = "secret" }), "robot ci dev system:authenticated"},
		"another case of the scheme": {s.as(t, func(c *rest.Config) {
			c.Wrap(func(next http.RoundTripper) http.RoundTripper { return authorizing{next, "bearer secret"} })
		}), "robot ci dev system:authenticated"},
		"another scheme": {s.as(t, func(c *rest.Config) {
			c.Wrap(func(next http.RoundTripper) http.RoundTripper { return authorizing{next, "Basic secret"} })
		}), ""},
		"wrong token": {s.as(t, func(c *rest.Config) { c.BearerToken = "secreT" }), ""},
		"anonymous":   {s.as(t, func(*rest.Config) {}), ""},
		"impersonated": {s.as(t, func(c *rest.Config) {
			c.BearerToken = "secret"
			c.Impersonate = rest.ImpersonationConfig{UserName: "eve", Groups: []string{"ops"}, UID: "7", Extra: map[string][]string{"team": {"a", "b"}}}
		}), "eve ops system:authenticated"},
		"impersonated account": {s.as(t, func(c *rest.Config) {
			c.BearerToken = "secret"
			c.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:ns:sa"}
		}), "system:serviceaccount:ns:sa system:serviceaccounts system:serviceaccounts:ns system:authenticated"},
	} {
		user, err := whoami(t, test.client)
		got := strings.TrimSpace(user.Username + " " + strings.Join(user.Groups, " "))
		if got != test.want || (test.want == "") != apierrors.IsUnauthorized(err) {
			t.Errorf("%s: %q, %v; want %q", name, got, err, test.want)
		}
		if name == "impersonated" && (user.UID != "7" || len(user.Extra["team"]) != 2) {
			t.Errorf("%s: %+v", name, user)
		}
	}
}

// requestToken asks for a token of the account default/default.
func (r *running) requestToken(t *testing.T, audiences ...string) string {
	t.Helper()
	admin, err := clientcmd.BuildConfigFromFlags("", r.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	c, err := rest.HTTPClientFor(admin)
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseIdleConnections()
	body, err := json.Marshal(&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: audiences}})
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(deadline(t), http.MethodPost,
		r.URL()+"/api/v1/namespaces/default/serviceaccounts/default/token", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := c.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var answer authenticationv1.TokenRequest
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || response.StatusCode != http.StatusCreated {
		t.Fatalf("%s, %v", response.Status, err)
	}
	return answer.Status.Token
}

// TestAccountTokens: tokens that the server has issued authenticate, after a restart
// too, with the configured audiences and issuer.
func TestAccountTokens(t *testing.T) {
	config := server.Config{
		DataDir: t.TempDir(), ServiceAccountIssuers: []string{"https://new.example", "https://old.example"}, APIAudiences: []string{"me"},
	}
	first := start(t, config)
	token, other := first.requestToken(t), first.requestToken(t, "vault")
	first.stop(t)
	second := start(t, config)
	user, err := whoami(t, second.as(t, func(c *rest.Config) { c.BearerToken = token }))
	if err != nil || user.Username != "system:serviceaccount:default:default" {
		t.Errorf("%+v, %v", user, err)
	}
	if _, err := whoami(t, second.as(t, func(c *rest.Config) { c.BearerToken = other })); !apierrors.IsUnauthorized(err) {
		t.Errorf("a token for another audience: %v", err)
	}
	// A server for which the token is meant can ask which user it authenticates.
	review, err := client.For[*authenticationv1.TokenReview](second.client(t)).Create(deadline(t), &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: other, Audiences: []string{"vault", "me"}},
	}, metav1.CreateOptions{})
	if err != nil || !review.Status.Authenticated || strings.Join(review.Status.Audiences, " ") != "vault" {
		t.Errorf("%+v, %v", review, err)
	}
}

// TestTokensAsConfigured: they live no longer than they may, and their documents say where the keys
// are.
func TestTokensAsConfigured(t *testing.T) {
	ctx := deadline(t)
	const keys = "https://keys.example/jwks"
	s := start(t, server.Config{DataDir: t.TempDir(), Storage: server.Memory, ServiceAccountMaxTokenExpiration: time.Hour, ServiceAccountJWKSURI: keys})
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(2 * 60 * 60))}}
	must(t, client.For[*corev1.ServiceAccount](s.client(t)).Namespace("default").SubResource("token").Create(ctx, "default", request, metav1.CreateOptions{}))
	if *request.Spec.ExpirationSeconds != 60*60 {
		t.Errorf("%+v", request)
	}
	another := &authenticationv1.TokenRequest{ObjectMeta: metav1.ObjectMeta{Name: "another"}}
	err := client.For[*corev1.ServiceAccount](s.client(t)).Namespace("default").SubResource("token").Create(ctx, "default", another, metav1.CreateOptions{})
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), `metadata.name: Invalid value: "another": must match the service account name if specified`) {
		t.Errorf("a request that names another account: %v", err)
	}
	if code, body := s.fetch(t, s.adminConfig(t), "/.well-known/openid-configuration"); code != http.StatusOK || !strings.Contains(body, `"jwks_uri":"`+keys+`"`) {
		t.Errorf("%d %s", code, body)
	}
}

func TestReviewsOfOthers(t *testing.T) {
	c := start(t, server.Config{DataDir: t.TempDir(), Storage: server.Memory, AuthorizationModes: []string{"AlwaysAllow"}}).client(t)
	attributes := &authorizationv1.ResourceAttributes{Namespace: "default", Verb: "get", Resource: "pods"}
	subject, err := client.For[*authorizationv1.SubjectAccessReview](c).Create(deadline(t), &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{User: "jane", ResourceAttributes: attributes},
	}, metav1.CreateOptions{})
	if err != nil || !subject.Status.Allowed {
		t.Errorf("%+v, %v", subject, err)
	}
	local := client.For[*authorizationv1.LocalSubjectAccessReview](c).Namespace("kube-system")
	_, err = local.Create(deadline(t), &authorizationv1.LocalSubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{User: "jane", ResourceAttributes: attributes},
	}, metav1.CreateOptions{})
	if !apierrors.IsInvalid(err) {
		t.Errorf("a review of another namespace: %v", err)
	}
	_, err = client.For[*authorizationv1.SubjectAccessReview](c).Create(deadline(t), &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{ResourceAttributes: attributes},
	}, metav1.CreateOptions{})
	if !apierrors.IsInvalid(err) {
		t.Errorf("a review that names no user: %v", err)
	}
}

// TestUserTokens: users of the process, who share a connection, are told apart by their tokens.
func TestUserTokens(t *testing.T) {
	s := start(t, server.Config{DataDir: t.TempDir(), Storage: server.Memory})
	config := s.UserTokenConfig("jane", "developers")
	jane, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer jane.CloseIdleConnections()
	john, err := client.New(s.UserTokenConfig("john"), client.Options{ConnectionsOf: jane})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]*client.Client{"jane": jane, "john": john} {
		if user, err := whoami(t, c); err != nil || user.Username != name || slices.Contains(user.Groups, "developers") != (name == "jane") {
			t.Errorf("the server takes %s for %v (%v)", name, user, err)
		}
	}
	config.BearerToken += "x"
	mallory, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer mallory.CloseIdleConnections()
	if user, err := whoami(t, mallory); !apierrors.IsUnauthorized(err) {
		t.Errorf("the server takes another token for %v (%v)", user, err)
	}
}
