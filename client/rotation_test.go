package client

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// authority issues certificates.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(1000 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{t: t, cert: cert, key: key, pem: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

// issue returns a certificate for clients and servers, and its key.
func (a *authority) issue(name string) (certPEM, keyPEM []byte) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, DNSNames: []string{"server"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(100 * time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
}

// secureServer is a TLS server in memory whose certificate and whose idea of valid
// credentials change. It answers a get with a pod named by the credentials, and a
// watch with an event for each value on events.
type secureServer struct {
	*network
	t      *testing.T
	events chan string

	mu      sync.Mutex
	cert    tls.Certificate
	refused map[string]bool // credentials that are answered with 401
	open    int             // connections
	gets    int
}

func serveTLS(t *testing.T, ca *authority) *secureServer {
	t.Helper()
	s := &secureServer{network: newNetwork(), t: t, events: make(chan string), refused: map[string]bool{}}
	s.present(ca)
	server := &http.Server{Handler: s, ConnState: s.connState, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
		TLSConfig: &tls.Config{ClientAuth: tls.RequestClientCert, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			return &s.cert, nil
		}}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.ServeTLS(s.network, "", "")
	}()
	t.Cleanup(func() {
		_ = server.Close()
		s.cut()
		<-done
	})
	return s
}

// present gives the server a new certificate, for connections made from then on.
func (s *secureServer) present(ca *authority) {
	s.t.Helper()
	cert, err := tls.X509KeyPair(ca.issue("server"))
	if err != nil {
		s.t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cert = cert
}

func (s *secureServer) refuse(credentials string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused[credentials] = true
}

func (s *secureServer) connState(_ net.Conn, state http.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch state {
	case http.StateNew:
		s.open++
	case http.StateClosed:
		s.open--
	}
}

func (s *secureServer) count() (open, gets int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open, s.gets
}

func (s *secureServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	credentials := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if len(r.TLS.PeerCertificates) > 0 {
		credentials = r.TLS.PeerCertificates[0].Subject.CommonName
	}
	s.mu.Lock()
	s.gets++
	refused := s.refused[credentials]
	s.mu.Unlock()
	switch {
	case refused:
		answerJSON(w, 401, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Unauthorized","code":401}`)
	case r.URL.Query().Get("watch") != "":
		w.Header().Set("Content-Type", "application/json")
		for {
			_ = http.NewResponseController(w).Flush()
			select {
			case name, ok := <-s.events:
				if !ok {
					return
				}
				_, _ = io.WriteString(w, `{"type":"ADDED","object":{"metadata":{"name":"`+name+`","namespace":"`+credentials+`"}}}`+"\n")
			case <-r.Context().Done():
				return
			}
		}
	default:
		answerJSON(w, 200, `{"metadata":{"name":"a","namespace":"`+credentials+`"}}`)
	}
}

// credentialFiles are a client's files on disk.
type credentialFiles struct {
	t   *testing.T
	dir string
}

func (f credentialFiles) path(name string) string { return filepath.Join(f.dir, name) }

func (f credentialFiles) write(name string, data []byte) string {
	f.t.Helper()
	if err := os.WriteFile(f.path(name), data, 0o600); err != nil {
		f.t.Fatal(err)
	}
	return f.path(name)
}

// pair writes a certificate and its key.
func (f credentialFiles) pair(ca *authority, name string) (certFile, keyFile string) {
	f.t.Helper()
	cert, key := ca.issue(name)
	return f.write("tls.crt", cert), f.write("tls.key", key)
}

func (s *secureServer) client(cfg *rest.Config, opts Options) *Client {
	s.t.Helper()
	cfg.Host = "https://server"
	opts.Dial = s.dial
	opts.Logger = slog.New(slog.DiscardHandler)
	c, err := New(cfg, opts)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(c.CloseIdleConnections)
	return c
}

// identity returns which credentials the server sees.
func identity(t *testing.T, c *Client) string {
	t.Helper()
	pod, err := For[*corev1.Pod](c).Namespace("ns").Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		return err.Error()
	}
	return pod.Namespace
}

var secureVersions = map[string]Options{"HTTP/1.1": {ForceHTTP1: true}, "HTTP/2": {}}

// rotationTest runs a test in virtual time, once for each version of HTTP, with a
// server and the files of a client.
func rotationTest(t *testing.T, test func(t *testing.T, s *secureServer, ca *authority, files credentialFiles, opts Options)) {
	for version, opts := range secureVersions {
		t.Run(version, func(t *testing.T) {
			files := credentialFiles{t, t.TempDir()}
			synctest.Test(t, func(t *testing.T) {
				ca := newAuthority(t, "ca")
				test(t, serveTLS(t, ca), ca, files, opts)
			})
		})
	}
}

// New requests are sent with a rotated client certificate on new connections; a
// watch on an old one goes on, and the old connection is closed after it.
func TestRotatedClientCertificate(t *testing.T) {
	rotationTest(t, func(t *testing.T, s *secureServer, ca *authority, files credentialFiles, opts Options) {
		certFile, keyFile := files.pair(ca, "old")
		c := s.client(&rest.Config{TLSClientConfig: rest.TLSClientConfig{
			CAFile: files.write("ca.crt", ca.pem), CertFile: certFile, KeyFile: keyFile}}, opts)
		watch, err := For[*corev1.Pod](c).Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer watch.Close()
		if got := identity(t, c); got != "old" {
			t.Fatalf("got %s", got)
		}
		time.Sleep(10 * time.Minute)
		before := s.dialed()
		if got := identity(t, c); got != "old" || s.dialed() > before+1 || c.Stats().CredentialReloads != 0 {
			t.Errorf("unchanged files: %s, %d connections, %+v", got, s.dialed()-before, c.Stats())
		}

		files.pair(ca, "new")
		time.Sleep(time.Minute)
		if got := identity(t, c); got != "new" {
			t.Errorf("a minute after the rotation: %s", got)
		}
		go func() { s.events <- "still" }()
		if ev, err := watch.Next(); err != nil || ev.Object.Name != "still" || ev.Object.Namespace != "old" {
			t.Errorf("the watch: %v, %v", ev, err)
		}
		if got := c.Stats().CredentialReloads; got != 1 {
			t.Errorf("%d reloads", got)
		}
		watch.Close()
		time.Sleep(2 * time.Minute) // idle connections end
		if open, _ := s.count(); open > 0 {
			t.Errorf("%d connections are still open", open)
		}
		if got := identity(t, c); got != "new" {
			t.Errorf("after all: %s", got)
		}
	})
}

// A 401 makes the client look at its files at once, and repeat the request if they
// have changed. Files that do not fit together, as in the middle of a rotation, are
// left alone.
func TestUnauthorizedReloadsCertificate(t *testing.T) {
	rotationTest(t, func(t *testing.T, s *secureServer, ca *authority, files credentialFiles, opts Options) {
		certFile, keyFile := files.pair(ca, "old")
		c := s.client(&rest.Config{TLSClientConfig: rest.TLSClientConfig{
			CAFile: files.write("ca.crt", ca.pem), CertFile: certFile, KeyFile: keyFile}}, opts)
		if got := identity(t, c); got != "old" {
			t.Fatalf("got %s", got)
		}
		cert, key := ca.issue("new")
		files.write("tls.crt", cert)
		time.Sleep(2 * time.Minute)
		if got := identity(t, c); got != "old" {
			t.Errorf("with half of the new pair: %s", got)
		}
		if got := c.Stats(); got.CredentialReloads != 0 || got.CredentialReloadErrors == 0 {
			t.Errorf("stats: %+v", got)
		}
		time.Sleep(2 * time.Second)
		s.refuse("old")
		files.write("tls.key", key)
		_, before := s.count()
		if got := identity(t, c); got != "new" {
			t.Errorf("refused: %s", got)
		}
		if _, after := s.count(); after != before+2 {
			t.Errorf("%d requests", after-before)
		}
		s.refuse("new")
		_, before = s.count()
		if got := identity(t, c); !strings.Contains(got, "nauthorized") {
			t.Errorf("refused for good: %s", got)
		}
		if _, after := s.count(); after != before+1 {
			t.Errorf("%d requests of a client whose files are as before", after-before)
		}
	})
}

// A program that starts in the middle of a rotation waits for its end, and says what
// is wrong if there is none.
func TestStartWithinARotation(t *testing.T) {
	rotationTest(t, func(t *testing.T, s *secureServer, ca *authority, files credentialFiles, opts Options) {
		certFile, keyFile := files.pair(ca, "old")
		cert, key := ca.issue("new")
		files.write("tls.crt", cert)
		cfg := &rest.Config{Host: "https://server", TLSClientConfig: rest.TLSClientConfig{CAData: ca.pem, CertFile: certFile, KeyFile: keyFile}}
		if _, err := New(cfg, opts); err == nil || !strings.Contains(err.Error(), certFile) {
			t.Errorf("got %v", err)
		}
		go func() {
			time.Sleep(500 * time.Millisecond)
			files.write("tls.key", key)
		}()
		if got := identity(t, s.client(cfg, opts)); got != "new" {
			t.Errorf("got %s", got)
		}
	})
}

// A new CA file is trusted by new connections, the next request included that meets
// the server's new certificate.
func TestRotatedCA(t *testing.T) {
	rotationTest(t, func(t *testing.T, s *secureServer, ca *authority, files credentialFiles, opts Options) {
		c := s.client(&rest.Config{TLSClientConfig: rest.TLSClientConfig{CAFile: files.write("ca.crt", ca.pem)}}, opts)
		watch, err := For[*corev1.Pod](c).Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer watch.Close()
		next := newAuthority(t, "next")
		s.present(next)
		files.write("ca.crt", next.pem)
		s2 := s.client(&rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: ca.pem}}, opts)
		if got := identity(t, s2); !strings.Contains(got, "x509") {
			t.Errorf("a client of the old CA: %s", got)
		}
		time.Sleep(2 * time.Second)
		files.write("ca.crt", nil)
		time.Sleep(2 * time.Minute) // connections without a request end
		if got := identity(t, c); opts.ForceHTTP1 && !strings.Contains(got, "x509") {
			t.Errorf("with an empty CA file: %s", got)
		}
		files.write("ca.crt", next.pem)
		time.Sleep(2 * time.Second)
		if got := identity(t, c); opts.ForceHTTP1 && got != "" {
			t.Errorf("after the rotation: %s", got)
		}
		time.Sleep(time.Minute)
		if got := identity(t, c); got != "" || c.Stats().CredentialReloads != 1 {
			t.Errorf("a minute later: %s, %+v", got, c.Stats())
		}
		go func() { s.events <- "still" }()
		if ev, err := watch.Next(); err != nil || ev.Object.Name != "still" {
			t.Errorf("the watch: %v, %v", ev, err)
		}
	})
}

// A token file is read again every minute, and after a 401 at once.
func TestRotatedTokenFile(t *testing.T) {
	rotationTest(t, func(t *testing.T, s *secureServer, ca *authority, files credentialFiles, opts Options) {
		c := s.client(&rest.Config{BearerTokenFile: files.write("token", []byte("one\n")), TLSClientConfig: rest.TLSClientConfig{CAData: ca.pem}}, opts)
		if got := identity(t, c); got != "one" {
			t.Fatalf("got %s", got)
		}
		files.write("token", []byte("two"))
		time.Sleep(time.Minute)
		if got := identity(t, c); got != "two" {
			t.Errorf("after a minute: %s", got)
		}
		time.Sleep(time.Second)
		files.write("token", []byte("three"))
		s.refuse("two")
		if got := identity(t, c); got != "three" {
			t.Errorf("after a 401: %s", got)
		}
		if got := c.Stats(); got.CredentialReloads != 0 || got.Retries != 1 || s.dialed() != 1 {
			t.Errorf("%d connections, %+v", s.dialed(), got)
		}
	})
}

// A token file that has more than a token is not sent: the client does not start with it, and
// goes on with the token from before until the file is mended.
func TestTokenFileWithMoreThanAToken(t *testing.T) {
	rotationTest(t, func(t *testing.T, s *secureServer, ca *authority, files credentialFiles, opts Options) {
		token := files.write("token", []byte("secret\nanother\n"))
		cfg := &rest.Config{Host: "https://server", BearerTokenFile: token, TLSClientConfig: rest.TLSClientConfig{CAData: ca.pem}}
		if _, err := New(cfg, opts); err == nil || !strings.Contains(err.Error(), token) || !strings.Contains(err.Error(), `'\n' within the token`) || strings.Contains(err.Error(), "secret") {
			t.Errorf("at the start: %v", err)
		}
		files.write("token", []byte(" one \r\n"))
		c := s.client(cfg, opts)
		for _, step := range []struct{ contents, want string }{{" one \r\n", "one"}, {"two\nthree", "one"}, {"four\n", "four"}} {
			files.write("token", []byte(step.contents))
			if got := identity(t, c); got != step.want {
				t.Errorf("with %q: got %q", step.contents, got)
			}
			if step.want == "one" {
				time.Sleep(time.Minute)
			}
			if got := identity(t, c); got != step.want {
				t.Errorf("with %q, a minute later: got %q", step.contents, got)
			}
		}
	})
}

// A token beside a token file, as in a pod, is sent until the file can be read.
func TestTokenBesideUnreadableTokenFile(t *testing.T) {
	rotationTest(t, func(t *testing.T, s *secureServer, ca *authority, files credentialFiles, opts Options) {
		token := files.write("token", nil)
		if err := os.Remove(token); err != nil {
			t.Fatal(err)
		}
		c := s.client(&rest.Config{BearerToken: "zero", BearerTokenFile: token, TLSClientConfig: rest.TLSClientConfig{CAData: ca.pem}}, opts)
		if got := identity(t, c); got != "zero" {
			t.Errorf("without the file: %q", got)
		}
		files.write("token", []byte("one"))
		if got := identity(t, c); got != "one" {
			t.Errorf("with the file: %q", got)
		}
	})
}

// A certificate of an exec plugin is used when the plugin returns it, without an end
// of the watches on connections that have the one before.
func TestRotatedExecCertificate(t *testing.T) {
	rotationTest(t, func(t *testing.T, s *secureServer, ca *authority, files credentialFiles, opts Options) {
		credential := func(name string) {
			cert, key := ca.issue(name)
			out, err := json.Marshal(map[string]any{"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1",
				"status": map[string]any{"clientCertificateData": string(cert), "clientKeyData": string(key)}})
			if err != nil {
				t.Fatal(err)
			}
			files.write("credential", out)
		}
		credential("old")
		cfg := &rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: ca.pem}, ExecProvider: &clientcmdapi.ExecConfig{
			APIVersion: "client.authentication.k8s.io/v1", Command: "cat", Args: []string{files.path("credential")},
			InteractiveMode: clientcmdapi.NeverExecInteractiveMode}}
		c := s.client(cfg, opts)
		watch, err := For[*corev1.Pod](c).Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer watch.Close()
		if got := identity(t, c); got != "old" {
			t.Fatalf("got %s", got)
		}
		credential("new")
		s.refuse("old") // the plugin has to be asked again
		if got := identity(t, c); got != "new" {
			t.Errorf("after a 401: %s", got)
		}
		go func() { s.events <- "still" }()
		if ev, err := watch.Next(); err != nil || ev.Object.Namespace != "old" {
			t.Errorf("the watch: %v, %v", ev, err)
		}
		if got := c.Stats().CredentialReloads; got != 1 {
			t.Errorf("%d reloads", got)
		}
	})
}

// An exec plugin may give a token first and a certificate later, and the other way: new
// requests are not sent on connections that were made with what came before.
func TestExecPluginThatChangesFromATokenToACertificate(t *testing.T) {
	rotationTest(t, func(t *testing.T, s *secureServer, ca *authority, files credentialFiles, opts Options) {
		credential := func(status map[string]any) {
			out, err := json.Marshal(map[string]any{"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1", "status": status})
			if err != nil {
				t.Fatal(err)
			}
			files.write("credential", out)
		}
		credential(map[string]any{"token": "token"})
		c := s.client(&rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: ca.pem}, ExecProvider: &clientcmdapi.ExecConfig{
			APIVersion: "client.authentication.k8s.io/v1", Command: "cat", Args: []string{files.path("credential")},
			InteractiveMode: clientcmdapi.NeverExecInteractiveMode}}, opts)
		if got := identity(t, c); got != "token" || c.Stats().CredentialReloads != 0 {
			t.Fatalf("got %s, %d reloads", got, c.Stats().CredentialReloads)
		}
		cert, key := ca.issue("certificate")
		credential(map[string]any{"clientCertificateData": string(cert), "clientKeyData": string(key)})
		s.refuse("token") // the plugin has to be asked again
		if got := identity(t, c); got != "certificate" {
			t.Errorf("after the token was refused: %s", got)
		}
		credential(map[string]any{"token": "another"})
		s.refuse("certificate")
		if got := identity(t, c); got != "another" {
			t.Errorf("after the certificate was refused: %s", got)
		}
		if got := c.Stats().CredentialReloads; got != 2 {
			t.Errorf("%d reloads", got)
		}
	})
}

// Many requests at once during a rotation all succeed.
func TestRotationUnderLoad(t *testing.T) {
	rotationTest(t, func(t *testing.T, s *secureServer, ca *authority, files credentialFiles, opts Options) {
		certFile, keyFile := files.pair(ca, "0")
		c := s.client(&rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: ca.pem, CertFile: certFile, KeyFile: keyFile}}, opts)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for ctx.Err() == nil {
					if _, err := For[*corev1.Pod](c).Namespace("ns").Get(ctx, "a", metav1.GetOptions{}); err != nil && ctx.Err() == nil {
						t.Error(err)
						return
					}
					time.Sleep(5 * time.Second)
				}
			})
		}
		for i := range 4 {
			time.Sleep(63 * time.Second)
			files.pair(ca, fmt.Sprint(i+1))
			s.refuse(fmt.Sprint(i))
		}
		wg.Wait()
		if got := c.Stats().CredentialReloads; got != 4 {
			t.Errorf("%d reloads", got)
		}
	})
}
