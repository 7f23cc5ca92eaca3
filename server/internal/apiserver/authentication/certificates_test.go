package authentication

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"log/slog"
	"math/big"
	"net/http"
	"net/url"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/levelwire/levelwire/internal/pki"
	"github.com/levelwire/levelwire/server/internal/auth"
)

// clientCertificate returns a client's certificate and that of its authority.
func clientCertificate(t *testing.T) (leaf, authority *x509.Certificate) {
	t.Helper()
	dir := t.TempDir()
	made, err := pki.LoadOrCreateAuthority(dir, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := made.Client(dir, "client", "alice", "builders")
	if err != nil {
		t.Fatal(err)
	}
	return pair.Leaf, made.Certificate()
}

// connectionOf is a connection whose client has shown certificates.
func connectionOf(certificates ...*x509.Certificate) *tls.ConnectionState {
	return &tls.ConnectionState{PeerCertificates: certificates}
}

// userOn returns the user of a request on a connection.
func userOn(a *Authenticator, connection *tls.ConnectionState) string {
	u, _ := a.userOfCertificate(&http.Request{TLS: connection})
	return u.Name
}

// TestRefusedCertificates: the certificate of a connection is verified once, not for
// each of its requests, and again after a while.
func TestRefusedCertificates(t *testing.T) {
	leaf, authority := clientCertificate(t)
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(leaf.NotBefore.Add(-time.Second))) // the bubble's clock begins in the year 2000
		a := New(Config{ClientCAs: NewAuthorities([]*x509.Certificate{authority}), Logger: slog.New(slog.DiscardHandler)})
		connection := connectionOf(leaf)
		if got := userOn(a, connection); got != "" {
			t.Fatalf("a certificate that is not valid yet is %q's", got)
		}
		time.Sleep(2 * time.Second) // it would be accepted now
		if got := userOn(a, connection); got != "" {
			t.Errorf("the certificate was verified for a second request")
		}
		time.Sleep(refusedFor)
		if got := userOn(a, connection); got != "alice" {
			t.Errorf("got %q after a while", got)
		}
		long := connectionOf()
		for range maxChain + 1 {
			long.PeerCertificates = append(long.PeerCertificates, leaf)
		}
		a = New(Config{ClientCAs: NewAuthorities([]*x509.Certificate{authority}), Logger: slog.New(slog.DiscardHandler)})
		if got := userOn(a, long); got != "" {
			t.Errorf("a chain of %d certificates was verified", len(long.PeerCertificates))
		}
	})
}

// TestWrongCertificateIsNotAnonymous: a certificate that no authority certifies is wrong,
// where anonymous requests are answered, too, and each time that it is shown. Another
// credential that is accepted counts.
func TestWrongCertificateIsNotAnonymous(t *testing.T) {
	_, authority := clientCertificate(t)
	_, proxies := clientCertificate(t)
	stranger, _ := clientCertificate(t)
	root, rootKey := certify(t, &x509.Certificate{Subject: pkix.Name{CommonName: "root"}, NotAfter: time.Now().Add(time.Hour), IsCA: true}, nil, nil)
	nameless, _ := certify(t, &x509.Certificate{NotAfter: time.Now().Add(time.Hour)}, root, rootKey)
	user, _ := certify(t, &x509.Certificate{Subject: pkix.Name{CommonName: "bob"}, NotAfter: time.Now().Add(time.Hour)}, root, rootKey)
	a := New(Config{
		ClientCAs:     NewAuthorities([]*x509.Certificate{authority, root}),
		RequestHeader: &RequestHeader{CAs: NewAuthorities([]*x509.Certificate{proxies}), UsernameHeaders: []string{"X-Remote-User"}},
		Tokens:        oneToken{}, Logger: slog.New(slog.DiscardHandler),
	})
	for name, test := range map[string]struct {
		certificate *x509.Certificate
		header      http.Header
		want        string // "" if refused
	}{
		"none":                        {nil, nil, auth.Anonymous},
		"without a name":              {nameless, nil, ""},
		"a user's":                    {user, nil, "bob"},
		"a stranger's":                {stranger, nil, ""},
		"a stranger's, a user":        {stranger, http.Header{"X-Remote-User": {"eve"}}, ""},
		"a stranger's, a good token":  {stranger, http.Header{"Authorization": {"Bearer good"}}, "carol"},
		"a stranger's, a wrong token": {stranger, http.Header{"Authorization": {"Bearer wrong"}}, ""},
		"a user's, a wrong token":     {user, http.Header{"Authorization": {"Bearer wrong"}}, "bob"},
		// What is no token is as if it were not there.
		"another scheme":                  {nil, http.Header{"Authorization": {"Basic good"}}, auth.Anonymous},
		"the scheme alone":                {nil, http.Header{"Authorization": {"Bearer"}}, auth.Anonymous},
		"an empty token":                  {nil, http.Header{"Authorization": {"Bearer "}}, auth.Anonymous},
		"a space before the token":        {nil, http.Header{"Authorization": {"Bearer  good"}}, auth.Anonymous},
		"a stranger's, another scheme":    {stranger, http.Header{"Authorization": {"Basic good"}}, ""},
		"words after the token":           {nil, http.Header{"Authorization": {" bearer good at all "}}, "carol"},
		"a wrong token":                   {nil, http.Header{"Authorization": {"Bearer wrong"}}, ""},
		"another scheme, WebSocket":       {nil, webSocketHeader("Basic x", "good"), "carol"},
		"a wrong token, WebSocket":        {nil, webSocketHeader("Bearer wrong", "good"), "carol"},
		"a wrong token, wrong WebSocket":  {nil, webSocketHeader("Bearer wrong", "wrong"), ""},
		"another scheme, wrong WebSocket": {nil, webSocketHeader("Basic x", "wrong"), ""},
	} {
		connection := connectionOf()
		if test.certificate != nil {
			connection = connectionOf(test.certificate)
		}
		for range 2 { // the second time by what is remembered
			user, err := a.Authenticate(&http.Request{URL: &url.URL{Path: "/livez"}, Header: test.header, TLS: connection})
			if user.Name != test.want || (err != nil) != (test.want == "") {
				t.Errorf("%s: got %q, %v; want %q", name, user.Name, err, test.want)
			}
		}
	}
}

// webSocketHeader has a token among the subprotocols, too.
func webSocketHeader(authorization, token string) http.Header {
	return http.Header{
		"Authorization": {authorization}, "Connection": {"Upgrade"}, "Upgrade": {"websocket"},
		"Sec-Websocket-Protocol": {webSocketTokenPrefix + base64.RawURLEncoding.EncodeToString([]byte(token)) + ", channel.k8s.io"},
	}
}

// TestCertificateWithoutAName: it is none, unless proxies are known: then only one of theirs.
func TestCertificateWithoutAName(t *testing.T) {
	root, rootKey := certify(t, &x509.Certificate{Subject: pkix.Name{CommonName: "root"}, NotAfter: time.Now().Add(time.Hour), IsCA: true}, nil, nil)
	nameless, _ := certify(t, &x509.Certificate{NotAfter: time.Now().Add(time.Hour)}, root, rootKey)
	_, stranger := clientCertificate(t)
	for name, test := range map[string]struct {
		proxies *RequestHeader
		want    string
	}{
		"no proxies":            {nil, auth.Anonymous},
		"another authority":     {&RequestHeader{CAs: NewAuthorities([]*x509.Certificate{stranger})}, ""},
		"the same authority":    {&RequestHeader{CAs: NewAuthorities([]*x509.Certificate{root})}, auth.Anonymous},
		"proxies of other name": {&RequestHeader{CAs: NewAuthorities([]*x509.Certificate{root}), AllowedNames: []string{"proxy"}}, ""},
	} {
		a := New(Config{ClientCAs: NewAuthorities([]*x509.Certificate{root}), RequestHeader: test.proxies, Logger: slog.New(slog.DiscardHandler)})
		user, err := a.Authenticate(&http.Request{URL: &url.URL{Path: "/livez"}, TLS: connectionOf(nameless)})
		if user.Name != test.want || (err != nil) != (test.want == "") {
			t.Errorf("%s: got %q, %v; want %q", name, user.Name, err, test.want)
		}
	}
}

// oneToken knows the token "good", which is carol's.
type oneToken struct{}

func (oneToken) AuthenticateToken(_ context.Context, token string, _ []string) (auth.Identity, error) {
	if token != "good" {
		return auth.Identity{}, auth.ErrUnknownToken
	}
	return auth.Identity{User: auth.User{Name: "carol"}}, nil
}

// TestReplacedAuthorities count at once on open connections: one that is added accepts
// the certificate that was refused a moment ago, and one that is removed does not accept
// the certificate whose verdict is cached.
func TestReplacedAuthorities(t *testing.T) {
	leaf, authority := clientCertificate(t)
	_, other := clientCertificate(t)
	authorities := NewAuthorities([]*x509.Certificate{other})
	a := New(Config{ClientCAs: authorities, Logger: slog.New(slog.DiscardHandler)})
	connection := connectionOf(leaf)
	for i, test := range []struct {
		roots []*x509.Certificate
		want  string
	}{
		{[]*x509.Certificate{other}, ""}, {[]*x509.Certificate{other, authority}, "alice"},
		{[]*x509.Certificate{authority}, "alice"}, {[]*x509.Certificate{other}, ""}, {nil, ""},
	} {
		authorities.Replace(test.roots)
		for range 2 {
			if got := userOn(a, connection); got != test.want {
				t.Errorf("%d: got %q, want %q", i, got, test.want)
			}
		}
	}
}

// TestCachedVerdictEndsWithTheIssuer: an intermediate authority that expires ends what it
// has certified, although the certificate itself is still valid and its verdict is cached.
func TestCachedVerdictEndsWithTheIssuer(t *testing.T) {
	now := time.Now()
	root, rootKey := certify(t, &x509.Certificate{Subject: pkix.Name{CommonName: "root"}, NotAfter: now.Add(48 * time.Hour), IsCA: true}, nil, nil)
	short, shortKey := certify(t, &x509.Certificate{Subject: pkix.Name{CommonName: "short"}, NotAfter: now.Add(time.Hour), IsCA: true}, root, rootKey)
	leaf, _ := certify(t, &x509.Certificate{Subject: pkix.Name{CommonName: "alice", ExtraNames: []pkix.AttributeTypeAndValue{{Type: uidOID, Value: "u-1"}}}, NotAfter: now.Add(24 * time.Hour)}, short, shortKey)
	v := NewAuthorities([]*x509.Certificate{root}).current.Load()
	connection := connectionOf(leaf, short)
	if user, err := v.user(connection, now); err != nil || user.Name != "alice" || user.UID != "u-1" || len(user.Extra[extraCredential]) != 1 {
		t.Fatalf("%+v, %v", user, err)
	}
	if _, err := v.user(connection, now.Add(59*time.Minute)); err != nil {
		t.Error("refused before the intermediate authority expires")
	}
	if _, err := v.user(connection, now.Add(61*time.Minute)); err == nil {
		t.Error("accepted after the intermediate authority has expired")
	}
}

// certify makes a certificate that issuer signs; nil signs itself.
func certify(t *testing.T, template, issuer *x509.Certificate, signer *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber, template.NotBefore, template.BasicConstraintsValid = big.NewInt(time.Now().UnixNano()), time.Now().Add(-time.Hour), true
	template.KeyUsage, template.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if template.IsCA {
		template.KeyUsage |= x509.KeyUsageCertSign
	}
	if issuer == nil {
		issuer, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, issuer, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return made, key
}

// TestRefusalsAreForgotten with their connections.
func TestRefusalsAreForgotten(t *testing.T) {
	var c refusedConnections
	for range 1000 {
		c.add(&tls.ConnectionState{}, time.Now())
	}
	kept := func() int {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.since)
	}
	for deadline := time.Now().Add(3 * time.Minute); kept() > 10; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("%d connections that have ended are remembered", kept())
		}
		runtime.GC()
	}
}
