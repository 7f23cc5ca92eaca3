// Package oidctest has an OpenID Connect issuer for tests.
package oidctest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// Provider is an OpenID Connect issuer in the process of the test. Its keys can be
// replaced, and it can be made to hang.
type Provider struct {
	*httptest.Server
	t       *testing.T
	Fetched atomic.Int64 // requests for keys

	mu   sync.Mutex
	keys []jose.JSONWebKey // private; the last signs
	hang chan struct{}     // requests wait until it is closed; nil: they do not
}

// NewProvider starts a provider, which ends with the test.
func NewProvider(t *testing.T) *Provider {
	t.Helper()
	p := &Provider{t: t}
	p.Rotate("first")
	p.Server = httptest.NewTLSServer(http.HandlerFunc(p.serve))
	t.Cleanup(func() {
		p.Resume()
		p.Close()
	})
	return p
}

func (p *Provider) serve(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	hang, keys := p.hang, p.keys
	p.mu.Unlock()
	if hang != nil {
		select {
		case <-hang:
		case <-r.Context().Done():
		}
		return
	}
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q}`, p.URL, p.URL+"/keys")
	case "/keys":
		p.Fetched.Add(1)
		var set jose.JSONWebKeySet
		for _, key := range keys {
			set.Keys = append(set.Keys, key.Public())
		}
		if err := json.NewEncoder(w).Encode(set); err != nil {
			p.t.Error(err)
		}
	default:
		http.NotFound(w, r)
	}
}

// Suspend makes all requests hang until Resume.
func (p *Provider) Suspend() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hang = make(chan struct{})
}

// Resume answers the requests that hang, and later ones.
func (p *Provider) Resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hang != nil {
		close(p.hang)
		p.hang = nil
	}
}

// Rotate makes a key, by which tokens are signed from now on, the only one.
func (p *Provider) Rotate(id string) {
	p.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		p.t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys = []jose.JSONWebKey{{Key: key, KeyID: id, Algorithm: string(jose.ES256), Use: "sig"}}
}

// Key is the key that signs.
func (p *Provider) Key() jose.JSONWebKey {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.keys[len(p.keys)-1]
}

// Claims are those of a token that is valid, with changes; nil takes a claim out.
func (p *Provider) Claims(changes map[string]any) map[string]any {
	all := map[string]any{
		"iss": p.URL, "aud": "levelwire", "sub": "jane", "exp": time.Now().Add(time.Hour).Unix(), "roles": []string{"dev", "ops"}, "tenant": "acme",
	}
	for name, value := range changes {
		all[name] = value
		if value == nil {
			delete(all, name)
		}
	}
	return all
}

// Token is one that is signed, with changes of its claims.
func (p *Provider) Token(changes map[string]any) string {
	p.t.Helper()
	return Sign(p.t, jose.ES256, p.Key(), p.Claims(changes))
}

// Sign makes a token of claims by any key.
func Sign(t *testing.T, algorithm jose.SignatureAlgorithm, key any, claims any) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: key}, nil)
	if err != nil {
		t.Fatal(err)
	}
	token, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// Entry is the provider's entry in the file.
func (p *Provider) Entry(more string) string {
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.Certificate().Raw})
	return fmt.Sprintf(`- issuer:
    url: %s
    audiences: [levelwire]
    certificateAuthority: |
      %s
  claimMappings:
    username: {expression: '"oidc:" + claims.sub'}
    groups: {expression: 'claims.?roles.orValue([])'}
    extra: [{key: example.com/tenant, valueExpression: claims.tenant}]
%s`, p.URL, strings.ReplaceAll(strings.TrimSpace(string(authority)), "\n", "\n      "), more)
}

// File is a whole file.
func File(entries ...string) []byte {
	text := "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n"
	if len(entries) > 0 {
		text += "jwt:\n" + strings.Join(entries, "")
	}
	return []byte(text)
}
