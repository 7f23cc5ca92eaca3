package webhook_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/levelwire/levelwire/internal/pki"
	"github.com/levelwire/levelwire/server"
)

// serveAuthenticated is a webhook that demands client certificates of an authority, and
// records who called it with which Authorization.
func serveAuthenticated(t *testing.T, authority *pki.Authority, callers chan<- string) *hookServer {
	t.Helper()
	h := &hookServer{}
	h.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			t.Error(err)
			return
		}
		callers <- r.TLS.PeerCertificates[0].Subject.CommonName + " " + r.Header.Get("Authorization")
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		_ = json.NewEncoder(w).Encode(review)
	}))
	pool := x509.NewCertPool()
	pool.AddCert(authority.Certificate())
	h.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool, MinVersion: tls.VersionTLS12}
	h.Config.ErrorLog = log.New(io.Discard, "", 0)
	h.EnableHTTP2 = true
	h.StartTLS()
	t.Cleanup(func() {
		h.CloseClientConnections()
		h.Close()
	})
	return h
}

// TestClientCertificates: the plugins show webhooks the certificates and tokens of their
// kubeconfig files, by the webhooks' hosts.
func TestClientCertificates(t *testing.T) {
	dir := t.TempDir()
	authority, err := pki.LoadOrCreateAuthority(dir, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"mutating", "validating"} {
		if _, err := authority.Client(dir, name, name+"-user"); err != nil {
			t.Fatal(err)
		}
	}
	callers := make(chan string, 10)
	h := serveAuthenticated(t, authority, callers)
	host := strings.TrimPrefix(h.URL, "https://")
	write := func(name, content string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	mutating := write("mutating.yaml", fmt.Sprintf("apiVersion: v1\nkind: Config\nusers:\n- name: %q\n  user: {client-certificate: mutating.crt, client-key: mutating.key, token: secret}\n- name: other.example\n  user: {token: other}\n", host))
	validating := write("validating.yaml", "apiVersion: v1\nkind: Config\nusers:\n- name: '*'\n  user: {client-certificate: validating.crt, client-key: validating.key}\n")
	file := write("admission.yaml", fmt.Sprintf(`apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: MutatingAdmissionWebhook
  configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: WebhookAdmissionConfiguration, kubeConfigFile: %q}
- name: ValidatingAdmissionWebhook
  configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: WebhookAdmissionConfiguration, kubeConfigFile: %q}
`, mutating, validating))

	without := start(t)
	without.validate("a", h)
	if code, _, message := statusOf(errOf(create(without, "default", newMap("m")))); code != 500 || !strings.Contains(message, "failed to call webhook") {
		t.Errorf("without a certificate: %d %s", code, message)
	}

	c := start(t, func(config *server.Config) { config.AdmissionConfigFile = file })
	c.mutate("a", h)
	c.validate("a", h)
	mustCreate(c, "default", newMap("m"))
	if first, second := <-callers, <-callers; first != "mutating-user Bearer secret" || second != "validating-user " {
		t.Errorf("called by %q, then by %q", first, second)
	}

	// A certificate that is renewed in its file is used by the next connection.
	renewed, err := authority.Client(dir, "renewed", "renewed-user")
	if err != nil {
		t.Fatal(err)
	}
	write("validating.crt", string(renewed.CertPEM))
	write("validating.key", string(renewed.KeyPEM))
	c.validate("b", serveAuthenticated(t, authority, callers))
	mustCreate(c, "default", newMap("n"))
	if got := []string{<-callers, <-callers, <-callers}; got[0] != "mutating-user Bearer secret" || !slices.Contains(got[1:], "renewed-user ") {
		t.Errorf("called by %q", got)
	}
}

func errOf(_ any, err error) error { return err }

// TestCredentialsAreValidated lists mistakes in the configuration of the plugins.
func TestCredentialsAreValidated(t *testing.T) {
	dir := t.TempDir()
	kubeconfig, file := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "admission.yaml")
	const kind = "apiVersion: apiserver.config.k8s.io/v1, kind: WebhookAdmissionConfiguration, "
	for name, test := range map[string]struct{ configuration, users, problem string }{
		"kind":        {"apiVersion: v1, kind: Config", "", "kind must be WebhookAdmissionConfiguration"},
		"relative":    {kind + "kubeConfigFile: kubeconfig", "", "must be an absolute path"},
		"manifests":   {kind + "staticManifestsDir: " + dir, "", "staticManifestsDir is not supported"},
		"unknown":     {kind + "other: 1", "", "unknown field"},
		"no file":     {kind + "kubeConfigFile: /none/kubeconfig", "", "no such file"},
		"certificate": {kind + "kubeConfigFile: " + kubeconfig, "client-certificate: none.crt, client-key: none.key", "none.crt"},
		"exec":        {kind + "kubeConfigFile: " + kubeconfig, "exec: {command: c, apiVersion: client.authentication.k8s.io/v1}", "exec and auth-provider are not supported"},
		"token":       {kind + "kubeConfigFile: " + kubeconfig, "tokenFile: none.token", "none.token"},
	} {
		t.Run(name, func(t *testing.T) {
			users := "apiVersion: v1\nkind: Config\nusers:\n- name: '*'\n  user: {" + test.users + "}\n"
			text := "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n- name: ValidatingAdmissionWebhook\n  configuration: {" + test.configuration + "}\n"
			for path, content := range map[string]string{kubeconfig: users, file: text} {
				if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			_, err := server.Listen(server.Config{DataDir: t.TempDir(), AdmissionConfigFile: file})
			if err == nil || !strings.Contains(err.Error(), test.problem) || !strings.Contains(err.Error(), "ValidatingAdmissionWebhook") || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want %q", err, test.problem)
			}
		})
	}
}
