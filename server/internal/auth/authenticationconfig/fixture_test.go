package authenticationconfig

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

	"github.com/levelwire/levelwire/internal/testwait"
	"github.com/levelwire/levelwire/server/internal/auth"
)

// provider is an OpenID Connect issuer in the process of the test. Its keys can be
// replaced, and it can be made to hang.
type provider struct {
	*httptest.Server
	t       *testing.T
	fetched atomic.Int64 // requests for keys

	mu   sync.Mutex
	keys []jose.JSONWebKey // private; the last signs
	hang chan struct{}     // requests wait until it is closed; nil: they do not
}

func newProvider(t *testing.T) *provider {
	t.Helper()
	p := &provider{t: t}
	p.rotate("first")
	p.Server = httptest.NewTLSServer(http.HandlerFunc(p.serve))
	t.Cleanup(func() {
		p.resume()
		p.Close()
	})
	return p
}

func (p *provider) serve(w http.ResponseWriter, r *http.Request) {
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
		p.fetched.Add(1)
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

// suspend makes all requests hang until resume.
func (p *provider) suspend() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hang = make(chan struct{})
}

func (p *provider) resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hang != nil {
		close(p.hang)
		p.hang = nil
	}
}

// rotate makes a key, by which tokens are signed from now on, the only one.
func (p *provider) rotate(id string) {
	p.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		p.t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys = []jose.JSONWebKey{{Key: key, KeyID: id, Algorithm: string(jose.ES256), Use: "sig"}}
}

// key is the key that signs.
func (p *provider) key() jose.JSONWebKey {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.keys[len(p.keys)-1]
}

// claims of a token that is valid, with changes; nil takes a claim out.
func (p *provider) claims(changes map[string]any) map[string]any {
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

func (p *provider) token(changes map[string]any) string {
	p.t.Helper()
	return sign(p.t, jose.ES256, p.key(), p.claims(changes))
}

func sign(t *testing.T, algorithm jose.SignatureAlgorithm, key any, claims any) string {
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

// entry is the provider's entry in the file.
func (p *provider) entry(more string) string {
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

// file is a whole file.
func file(entries ...string) []byte {
	text := "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n"
	if len(entries) > 0 {
		text += "jwt:\n" + strings.Join(entries, "")
	}
	return []byte(text)
}

// load makes an Authenticator that has loaded a file.
func load(t *testing.T, data []byte) *Authenticator {
	t.Helper()
	a := New(Options{DisallowedIssuers: []string{"https://own.example"}, Examined: NewMetrics()})
	t.Cleanup(a.Close)
	if err := a.Load(data); err != nil {
		t.Fatal(err)
	}
	return a
}

// await waits until a token is accepted, and returns its user.
func await(t *testing.T, a *Authenticator, token string) auth.User {
	t.Helper()
	var user auth.User
	testwait.Stable(t, "the token is accepted", func() (any, bool) {
		identity, err := a.AuthenticateToken(t.Context(), token, nil)
		user = identity.User
		return err, err == nil
	})
	return user
}

// awaitRefusal waits until a token is refused, one of its own at each try.
func awaitRefusal(t *testing.T, a *Authenticator, token func(i int) string) {
	t.Helper()
	tokens := 0
	testwait.Stable(t, "the tokens are refused", func() (any, bool) {
		identity, err := a.AuthenticateToken(t.Context(), token(tokens), nil)
		tokens++
		return identity, err != nil
	})
}
