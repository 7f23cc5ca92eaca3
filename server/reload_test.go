package server_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/internal/pki"
	"github.com/levelwire/levelwire/internal/testwait"
	"github.com/levelwire/levelwire/server"
)

// rewrite replaces a file that the server may have been given, in one step: the server
// never reads a part of it.
func rewrite(t *testing.T, path string, data ...[]byte) {
	t.Helper()
	if err := os.WriteFile(path+".new", slices.Concat(data...), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// awaitUser waits until the server takes a client for a user; "" until it refuses it.
// The client keeps its connection.
func awaitUser(t *testing.T, c *client.Client, want string) {
	t.Helper()
	testwait.Stable(t, fmt.Sprintf("the server takes the client for %q", want), func() (any, bool) {
		user, err := whoami(t, c)
		return []any{user.Username, err}, user.Username == want && (err == nil) == (want != "")
	})
}

// TestReloadedAuthority: an authority that is taken out of the file ends what it has
// certified on a connection that is open, and one that is added is accepted there. A file
// that is broken changes nothing.
func TestReloadedAuthority(t *testing.T) {
	authority, err := pki.LoadOrCreateAuthority(t.TempDir(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	other, err := pki.LoadOrCreateAuthority(t.TempDir(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	jane, err := authority.Client(t.TempDir(), "jane", "jane", "dev")
	if err != nil {
		t.Fatal(err)
	}
	path := mustWrite(t, "ca.crt", authority.CertificatePEM())
	log := newLogRecorder()
	s := start(t, server.Config{DataDir: t.TempDir(), Storage: server.Memory, ClientCAFile: path, Logger: log.logger()})
	c := s.as(t, func(c *rest.Config) { c.CertData, c.KeyData = jane.CertPEM, jane.KeyPEM })
	awaitUser(t, c, "jane")
	rewrite(t, path, other.CertificatePEM())
	awaitUser(t, c, "")
	rewrite(t, path, other.CertificatePEM(), authority.CertificatePEM())
	awaitUser(t, c, "jane")
	rewrite(t, path, []byte("no certificate"))
	log.await(t, "no PEM certificate in the file")
	awaitUser(t, c, "jane")
	awaitUser(t, s.client(t), "levelwire-admin") // the server's own authority is always accepted
	// A connection that is opened now is told about the authorities that are accepted now.
	awaitUser(t, s.as(t, func(c *rest.Config) { c.CertData, c.KeyData = jane.CertPEM, jane.KeyPEM }), "jane")
}

func TestReloadedTokenFile(t *testing.T) {
	path := mustWrite(t, "tokens.csv", []byte("secret,robot,u1\n"))
	s := start(t, server.Config{DataDir: t.TempDir(), Storage: server.Memory, TokenAuthFile: path})
	c := s.as(t, func(c *rest.Config) { c.BearerToken = "secret" })
	awaitUser(t, c, "robot")
	rewrite(t, path, []byte("another,robot,u1\n"))
	awaitUser(t, c, "")
}

// TestRotatedAccountKey: a new signing key signs what is issued from then on. Tokens of
// the former key are valid until it is taken out, and the published keys follow.
func TestRotatedAccountKey(t *testing.T) {
	oldPEM, oldPublic := tokenKey(t)
	newPEM, _ := tokenKey(t)
	signing := mustWrite(t, "signing.key", oldPEM)
	verifying := mustWrite(t, "former.pub", oldPublic)
	s := start(t, server.Config{
		DataDir: t.TempDir(), Storage: server.Memory, ServiceAccountSigningKeyFile: signing, ServiceAccountKeyFiles: []string{verifying},
	})
	const account = "system:serviceaccount:default:default"
	withToken := func(token string) *client.Client { return s.as(t, func(c *rest.Config) { c.BearerToken = token }) }
	former := withToken(s.requestToken(t))
	awaitUser(t, former, account)
	if got := strings.Count(s.get(t, "/openid/v1/jwks"), `"kid"`); got != 1 {
		t.Errorf("%d keys are published before the rotation", got)
	}
	rewrite(t, signing, newPEM)
	s.awaitKeys(t, 2)
	awaitUser(t, former, account)
	current := withToken(s.requestToken(t))
	awaitUser(t, current, account)
	rewrite(t, verifying, newPEM) // takes the former key out
	s.awaitKeys(t, 1)
	awaitUser(t, former, "")
	awaitUser(t, current, account)
}

// TestRotatedOwnKey is TestRotatedAccountKey for the key that the server makes for itself.
func TestRotatedOwnKey(t *testing.T) {
	config := server.Config{DataDir: t.TempDir(), Storage: server.Memory}
	key := pki.SigningKeyIn(filepath.Join(config.DataDir, "pki"), "service-account")
	s := start(t, config)
	const account = "system:serviceaccount:default:default"
	withToken := func(token string) *client.Client { return s.as(t, func(c *rest.Config) { c.BearerToken = token }) }
	former := withToken(s.requestToken(t))
	awaitUser(t, former, account)
	s.awaitKeys(t, 1)
	for i := range 2 {
		kept, err := key.Rotate()
		if err != nil || kept != i+1 {
			t.Fatalf("%d former keys, %v", kept, err)
		}
		s.awaitKeys(t, i+2)
		awaitUser(t, former, account)
	}
	current := withToken(s.requestToken(t))
	awaitUser(t, current, account)
	if dropped, err := key.DropFormer(); err != nil || dropped != 2 {
		t.Fatalf("%d keys dropped, %v", dropped, err)
	}
	s.awaitKeys(t, 1)
	awaitUser(t, former, "")
	awaitUser(t, current, account)
}

// tokenKey makes a key that signs tokens, and its public half.
func tokenKey(t *testing.T) (private, public []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	publicDER, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: publicDER})
}

// awaitKeys waits until so many keys of service accounts are published.
func (r *running) awaitKeys(t *testing.T, want int) {
	t.Helper()
	r.await(t, "/openid/v1/jwks", func(keys string) bool { return strings.Count(keys, `"kid"`) == want })
}

// await waits until what the administrator reads at a path is as wanted.
func (r *running) await(t *testing.T, path string, wanted func(body string) bool) {
	t.Helper()
	testwait.Stable(t, path+" is as wanted", func() (any, bool) { body := r.get(t, path); return body, wanted(body) })
}

// get returns what the server serves to the administrator at a path.
func (r *running) get(t *testing.T, path string) string {
	t.Helper()
	code, body := r.fetch(t, r.adminConfig(t), path)
	if code != http.StatusOK {
		t.Fatalf("%s: %d: %s", path, code, body)
	}
	return body
}

// fetch returns what the server answers to a client at a path.
func (r *running) fetch(t *testing.T, config *rest.Config, path string) (code int, body string) {
	t.Helper()
	c, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseIdleConnections()
	request, err := http.NewRequestWithContext(deadline(t), http.MethodGet, r.URL()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := c.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(content)
}
