package server_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/internal/pki"
	"github.com/levelwire/levelwire/server"
)

// sendingHeaders sends requests with further headers.
type sendingHeaders struct {
	http.RoundTripper
	headers http.Header
}

func (s sendingHeaders) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, values := range s.headers {
		r.Header[name] = values
	}
	return s.RoundTripper.RoundTrip(r)
}

// newAuthority makes an authority, and the file with its certificate.
func newAuthority(t *testing.T) (authority *pki.Authority, path string) {
	t.Helper()
	authority, err := pki.LoadOrCreateAuthority(t.TempDir(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return authority, mustWrite(t, "ca.crt", authority.CertificatePEM())
}

// certified returns a change of a client's configuration to a certificate of an authority.
func certified(t *testing.T, authority *pki.Authority, name string) func(*rest.Config) {
	t.Helper()
	pair, err := authority.IssueClient(name, nil, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return func(c *rest.Config) { c.CertData, c.KeyData = pair.CertPEM, pair.KeyPEM }
}

// TestRequestHeaders: a proxy names its users. Nothing else may.
func TestRequestHeaders(t *testing.T) {
	proxies, proxyFile := newAuthority(t)
	users, userFile := newAuthority(t)
	s := start(t, server.Config{
		DataDir: t.TempDir(), Storage: server.Memory, ClientCAFile: userFile, AuthorizationModes: []string{"AlwaysAllow"},
		Authentication: server.Authentication{RequestHeader: server.RequestHeader{ClientCAFile: proxyFile, AllowedNames: []string{"front"}}},
	})
	eve := http.Header{"X-Remote-User": {"eve"}, "X-Remote-Uid": {"7"}, "X-Remote-Group": {"ops", "dev"}, "X-Remote-Extra-Example.com%2fteam": {"a", "b"}}
	as := func(authority *pki.Authority, name string, headers http.Header) *client.Client {
		return s.as(t, func(c *rest.Config) {
			if authority != nil {
				certified(t, authority, name)(c)
			}
			c.Wrap(func(next http.RoundTripper) http.RoundTripper { return sendingHeaders{next, headers} })
		})
	}
	for name, test := range map[string]struct {
		client *client.Client
		want   string
	}{
		"proxy":                  {as(proxies, "front", eve), "eve ops dev system:authenticated"},
		"proxy without a user":   {as(proxies, "front", http.Header{"X-Remote-Group": {"system:masters"}}), ""},
		"proxy of another name":  {as(proxies, "other", eve), ""},
		"user":                   {as(users, "front", eve), "front system:authenticated"},
		"no certificate":         {as(nil, "", eve), ""},
		"a proxy without a user": {as(proxies, "front", http.Header{"X-Remote-User": {"system:anonymous"}, "X-Remote-Group": {"system:unauthenticated"}}), "system:anonymous system:unauthenticated"},
	} {
		user, err := whoami(t, test.client)
		if got := strings.TrimSpace(user.Username + " " + strings.Join(user.Groups, " ")); got != test.want || (test.want == "") != apierrors.IsUnauthorized(err) {
			t.Errorf("%s: %q, %v; want %q", name, got, err, test.want)
		}
		if name == "proxy" && (user.UID != "7" || !slices.Equal(user.Extra["example.com/team"], []string{"a", "b"})) {
			t.Errorf("%+v", user)
		}
	}
}

// TestOverlappingAuthorities: users that could say that they are others are a mistake of
// the configuration: those of one authority, of its renewed certificate, and of an
// authority below it.
func TestOverlappingAuthorities(t *testing.T) {
	key, below := mustKey(t), mustKey(t)
	root := selfSigned(t, key, 1)
	for name, users := range map[string][]byte{
		"the same":  root.Raw,
		"renewed":   selfSigned(t, key, 2).Raw,
		"below it":  certify(t, authorityTemplate("below", 3), root, below, key),
		"unrelated": nil,
	} {
		unrelated := users == nil
		if unrelated {
			users = selfSigned(t, below, 4).Raw
		}
		proxyFile := mustWrite(t, "proxies.crt", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Raw}))
		userFile := mustWrite(t, "users.crt", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: users}))
		config := server.Config{
			DataDir: t.TempDir(), Storage: server.Memory, SecurePort: server.AnyPort, ClientCAFile: userFile,
			Authentication: server.Authentication{RequestHeader: server.RequestHeader{ClientCAFile: proxyFile}},
		}
		if unrelated {
			start(t, config)
			continue
		}
		if _, err := server.Listen(config); err == nil || !strings.Contains(err.Error(), "set --requestheader-allowed-names") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func mustKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func authorityTemplate(name string, serial int64) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true,
	}
}

func certify(t *testing.T, template, parent *x509.Certificate, subject, issuer *ecdsa.PrivateKey) []byte {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, subject.Public(), issuer)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func selfSigned(t *testing.T, key *ecdsa.PrivateKey, serial int64) *x509.Certificate {
	t.Helper()
	template := authorityTemplate("authority", serial)
	certificate, err := x509.ParseCertificate(certify(t, template, template, key, key))
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

// TestBootstrapTokens: a token is valid as long as its secret.
func TestBootstrapTokens(t *testing.T) {
	s := start(t, server.Config{DataDir: t.TempDir(), Storage: server.Memory, Authentication: server.Authentication{BootstrapTokens: true}})
	secrets := client.For[*corev1.Secret](s.client(t)).Namespace(metav1.NamespaceSystem)
	c := s.as(t, func(c *rest.Config) { c.BearerToken = "abcdef.0123456789abcdef" })
	if _, err := whoami(t, c); !apierrors.IsUnauthorized(err) {
		t.Errorf("before there is a secret: %v", err)
	}
	_, err := secrets.Create(deadline(t), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-abcdef"}, Type: "bootstrap.kubernetes.io/token",
		StringData: map[string]string{"token-id": "abcdef", "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if user, err := whoami(t, c); err != nil || user.Username != "system:bootstrap:abcdef" || !slices.Contains(user.Groups, "system:bootstrappers") {
		t.Errorf("%+v, %v", user, err)
	}
	if err := secrets.Delete(deadline(t), "bootstrap-token-abcdef", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := whoami(t, c); !apierrors.IsUnauthorized(err) {
		t.Errorf("after its secret was deleted: %v", err)
	}
}

// TestNoAnonymous: without anonymous requests, health checks need credentials.
func TestNoAnonymous(t *testing.T) {
	s := start(t, server.Config{DataDir: t.TempDir(), Storage: server.Memory, Authentication: server.Authentication{Anonymous: new(bool)}})
	if got := s.code(t, "/healthz"); got != http.StatusUnauthorized {
		t.Error(got)
	}
	if got := s.get(t, "/healthz"); got != "ok" {
		t.Errorf("the administrator gets %q", got)
	}
}

// TestWebhookThatHangs: only requests whose tokens the webhook could know wait for it, and
// are refused when it fails. Nothing else waits: certificates, other tokens.
func TestWebhookThatHangs(t *testing.T) {
	asked, fail := make(chan struct{}, 1), make(chan struct{})
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked <- struct{}{}
		<-fail
		http.Error(w, "no", http.StatusForbidden)
	}))
	defer hook.Close()
	kubeconfig := mustWrite(t, "webhook.kubeconfig", []byte("apiVersion: v1\nkind: Config\nclusters: [{name: hook, cluster: {server: '"+hook.URL+"'}}]\n"+
		"users: [{name: me, user: {}}]\ncontexts: [{name: hook, context: {cluster: hook, user: me}}]\ncurrent-context: hook\n"))
	s := start(t, server.Config{
		DataDir: t.TempDir(), Storage: server.Memory, TokenAuthFile: mustWrite(t, "tokens.csv", []byte("secret,robot,u1\n")),
		Authentication: server.Authentication{WebhookConfigFile: kubeconfig},
	})
	refused := make(chan error, 1)
	unknown := s.as(t, func(c *rest.Config) { c.BearerToken = "unknown" })
	go func() {
		_, err := whoami(t, unknown)
		refused <- err
	}()
	<-asked
	awaitUser(t, s.as(t, func(c *rest.Config) { c.BearerToken = "secret" }), "robot")
	awaitUser(t, s.as(t, func(c *rest.Config) { c.BearerToken = s.requestToken(t) }), "system:serviceaccount:default:default")
	awaitUser(t, s.client(t), "levelwire-admin")
	close(fail)
	select {
	case err := <-refused:
		if !apierrors.IsUnauthorized(err) {
			t.Errorf("%v", err)
		}
	case <-deadline(t).Done():
		t.Error("the request waits without end")
	}
}

// TestAuthenticationConfig: an issuer that cannot be reached delays no start, a changed
// file counts while the server runs, and its anonymous paths need no credentials.
func TestAuthenticationConfig(t *testing.T) {
	const head = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n"
	const issuer = "jwt: [{issuer: {url: 'https://127.0.0.1:1', audiences: [a]}, claimMappings: {username: {claim: sub, prefix: ''}}}]\n"
	path := mustWrite(t, "authentication.yaml", []byte(head+issuer+"anonymous: {enabled: true, conditions: [{path: /livez}]}\n"))
	log := newLogRecorder()
	s := start(t, server.Config{
		DataDir: t.TempDir(), Storage: server.Memory, Logger: log.logger(), Authentication: server.Authentication{ConfigFile: path},
		AuthorizationModes: []string{"AlwaysAllow"},
	})
	if a, b := s.code(t, "/livez"), s.code(t, "/readyz"); a != http.StatusOK || b != http.StatusUnauthorized {
		t.Errorf("%d, %d", a, b)
	}
	claims := base64.RawURLEncoding.EncodeToString([]byte(`{"iss":"https://127.0.0.1:1","sub":"jane"}`))
	if _, err := whoami(t, s.as(t, func(c *rest.Config) { c.BearerToken = "e30." + claims + ".AAAA" })); !apierrors.IsUnauthorized(err) {
		t.Errorf("%v", err)
	}
	rewrite(t, path, []byte(head+"anonymous: {enabled: true}\n"))
	log.await(t, "would allow everybody everything")
	if got := s.code(t, "/readyz"); got != http.StatusUnauthorized {
		t.Errorf("a refused file counts: %d", got)
	}
	rewrite(t, path, []byte(head+"anonymous: {enabled: true, conditions: [{path: /readyz}]}\n"))
	log.await(t, "read a changed file")
	if a, b := s.code(t, "/livez"), s.code(t, "/readyz"); a != http.StatusUnauthorized || b != http.StatusOK {
		t.Errorf("%d, %d", a, b)
	}
}

// code returns how the server answers a request without credentials.
func (r *running) code(t *testing.T, path string) int {
	t.Helper()
	code, _ := r.fetch(t, &rest.Config{Host: r.URL(), TLSClientConfig: rest.TLSClientConfig{CAData: r.adminConfig(t).CAData}}, path)
	return code
}
