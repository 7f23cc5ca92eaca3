package authentication

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/asn1"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"time"
	"weak"

	"github.com/levelwire/levelwire/server/internal/auth"
)

// userOfCertificate verifies the client certificate here rather than in the TLS
// handshake, so that a certificate of an unknown authority is a 401 that
// clients can read instead of a broken connection, and that a change of the authorities
// counts on connections that are open. The result is unknown if there is no certificate,
// or one that names no user. Where proxies are known, a certificate without a name is a proxy's or
// refused, as in Kubernetes.
func (a *Authenticator) userOfCertificate(r *http.Request) (auth.User, result) {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 || a.config.ClientCAs == nil {
		return auth.User{}, unknown
	}
	now, leaf := time.Now(), r.TLS.PeerCertificates[0]
	a.metrics.remaining.Observe(leaf.NotAfter.Sub(now).Seconds())
	user, err := a.config.ClientCAs.current.Load().user(r.TLS, now)
	switch proxies := a.config.RequestHeader; {
	case err != nil:
		a.logRefusal(r.Context(), leaf, err)
		return auth.User{}, refused
	case user.Name != "":
		return user, succeeded
	case proxies != nil && !proxies.isProxy(r.TLS, now):
		return auth.User{}, refused
	}
	return auth.User{}, unknown
}

// logRefusal says why a certificate was refused, with no more of it than fits in a line: its client is
// not known.
func (a *Authenticator) logRefusal(ctx context.Context, leaf *x509.Certificate, err error) {
	if !a.config.Logger.Enabled(ctx, slog.LevelDebug) {
		return
	}
	const most = 256 // bytes
	short := func(name string) string { return name[:min(len(name), most)] }
	a.config.Logger.Debug("a client certificate was refused", "error", short(err.Error()),
		"subject", short(leaf.Subject.String()), "issuer", short(leaf.Issuer.String()), "notAfter", leaf.NotAfter)
}

var (
	errLongChain     = errors.New("the client sends too many certificates")
	errRefusedBefore = errors.New("refused a moment ago on the same connection")
)

// verifier verifies certificates by one set of authorities, and caches the verdicts. A
// change of the authorities makes another one. It is safe for concurrent use.
type verifier struct {
	certificates []*x509.Certificate
	roots        *x509.CertPool // of certificates
	verified     verifiedCertificates
	refused      refusedConnections
}

// user returns the user whose certificate the client of a connection has, or why no
// authority certifies it. A subject without a common name is a user without a name.
func (v *verifier) user(connection *tls.ConnectionState, now time.Time) (auth.User, error) {
	leaf := connection.PeerCertificates[0]
	if user, ok := v.verified.lookup(leaf, now); ok {
		return user, nil
	}
	switch {
	case len(connection.PeerCertificates) > maxChain:
		return auth.User{}, errLongChain
	case v.refused.has(connection, now):
		return auth.User{}, errRefusedBefore
	}
	intermediates := x509.NewCertPool()
	for _, c := range connection.PeerCertificates[1:] {
		intermediates.AddCert(c)
	}
	chains, err := leaf.Verify(x509.VerifyOptions{
		Roots: v.roots, Intermediates: intermediates, CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		v.refused.add(connection, now)
		return auth.User{}, err
	}
	user := userOfSubject(leaf)
	v.verified.add(leaf, verifiedCertificate{user, validUntil(chains)})
	return user, nil
}

// extraCredential is the key of auth.User.Extra for which credential was used, as
// Kubernetes names it.
const extraCredential = "authentication.kubernetes.io/credential-id"

// uidOID is the attribute of a subject that is the user's uid, under Kubernetes' own
// number.
var uidOID = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57683, 2}

// userOfSubject returns the user that a certificate names: the common name is the name,
// the organizations are the groups.
func userOfSubject(leaf *x509.Certificate) auth.User {
	hash := sha256.Sum256(leaf.Raw)
	user := auth.User{
		Name: leaf.Subject.CommonName, Groups: slices.Clone(leaf.Subject.Organization),
		Extra: map[string][]string{extraCredential: {"X509SHA256=" + hex.EncodeToString(hash[:])}},
	}
	for _, attribute := range leaf.Subject.Names {
		if uid, ok := attribute.Value.(string); ok && attribute.Type.Equal(uidOID) {
			user.UID = uid
		}
	}
	return user.AsAuthenticated()
}

// validUntil returns when the last of the chains ends: a chain ends with the first of its
// certificates.
func validUntil(chains [][]*x509.Certificate) time.Time {
	var last time.Time
	for _, chain := range chains {
		end := chain[0].NotAfter
		for _, c := range chain[1:] {
			if c.NotAfter.Before(end) {
				end = c.NotAfter
			}
		}
		if end.After(last) {
			last = end
		}
	}
	return last
}

// maxChain bounds the certificates of a client: each costs a signature check, and
// intermediates that are alike cost many. Real chains have up to four.
const maxChain = 10

// refusedFor is how long a refusal stands. Its certificate may become valid later.
const refusedFor = 10 * time.Second

// refusedConnections remembers the connections whose certificates were refused, until
// they end. Their clients are not authenticated, and a chain that one has made up can take
// longer to verify than a hundred requests. It is safe for concurrent use.
type refusedConnections struct {
	mu    sync.Mutex
	since map[weak.Pointer[tls.ConnectionState]]time.Time
}

// has reports whether the certificate of a connection, which all its requests share,
// was refused a moment ago.
func (c *refusedConnections) has(connection *tls.ConnectionState, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	since, ok := c.since[weak.Make(connection)]
	return ok && now.Sub(since) < refusedFor
}

func (c *refusedConnections) add(connection *tls.ConnectionState, now time.Time) {
	key := weak.Make(connection)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.since == nil {
		c.since = map[weak.Pointer[tls.ConnectionState]]time.Time{}
	}
	if _, known := c.since[key]; !known {
		runtime.AddCleanup(connection, c.remove, key)
	}
	c.since[key] = now
}

func (c *refusedConnections) remove(key weak.Pointer[tls.ConnectionState]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.since, key)
}

// maxVerified bounds the certificates whose verification is remembered. Beyond
// it the cache is emptied, which costs one verification per certificate.
const maxVerified = 4096

// verifiedCertificates caches the users of verified client certificates. One
// signature check costs as much as a small request, and a client sends
// thousands of requests with the same certificate. It is safe for concurrent
// use.
type verifiedCertificates struct {
	mu      sync.RWMutex
	entries map[[sha256.Size]byte]verifiedCertificate
}

// verifiedCertificate is a verdict: the user, and when the certificate, or one that it
// depends on, expires.
type verifiedCertificate struct {
	user  auth.User
	until time.Time
}

// lookup returns the user of a certificate that was verified before and is
// still within its time of validity.
func (v *verifiedCertificates) lookup(leaf *x509.Certificate, now time.Time) (auth.User, bool) {
	if now.Before(leaf.NotBefore) {
		return auth.User{}, false
	}
	v.mu.RLock()
	defer v.mu.RUnlock()
	entry, ok := v.entries[sha256.Sum256(leaf.Raw)]
	return entry.user, ok && !now.After(entry.until)
}

func (v *verifiedCertificates) add(leaf *x509.Certificate, entry verifiedCertificate) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.entries == nil || len(v.entries) >= maxVerified {
		v.entries = make(map[[sha256.Size]byte]verifiedCertificate)
	}
	v.entries[sha256.Sum256(leaf.Raw)] = entry
}
