package authentication

import (
	"crypto/sha256"
	"crypto/x509"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/levelwire/levelwire/server/internal/auth"
)

// userOfCertificate verifies the client certificate here rather than in the TLS
// handshake, so that a certificate of an unknown authority is a 401 that
// clients can read instead of a broken connection.
func (a *Authenticator) userOfCertificate(r *http.Request) (auth.User, bool) {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 || a.config.ClientCAs == nil {
		return auth.User{}, false
	}
	leaf := r.TLS.PeerCertificates[0]
	if user, ok := a.verified.lookup(leaf, time.Now()); ok {
		return user, true
	}
	intermediates := x509.NewCertPool()
	for _, c := range r.TLS.PeerCertificates[1:] {
		intermediates.AddCert(c)
	}
	_, err := leaf.Verify(x509.VerifyOptions{
		Roots: a.config.ClientCAs, Intermediates: intermediates,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil || leaf.Subject.CommonName == "" {
		return auth.User{}, false
	}
	user := auth.User{Name: leaf.Subject.CommonName, Groups: slices.Clone(leaf.Subject.Organization)}.AsAuthenticated()
	a.verified.add(leaf, user)
	return user, true
}

// maxVerified bounds the certificates whose verification is remembered. Beyond
// it the cache is emptied, which costs one verification per certificate.
const maxVerified = 4096

// verifiedCertificates caches the users of verified client certificates. One
// signature check costs as much as a small request, and a client sends
// thousands of requests with the same certificate. It is safe for concurrent
// use.
type verifiedCertificates struct {
	mu    sync.RWMutex
	users map[[sha256.Size]byte]auth.User
}

// lookup returns the user of a certificate that was verified before and is
// still within its time of validity.
func (v *verifiedCertificates) lookup(leaf *x509.Certificate, now time.Time) (auth.User, bool) {
	if now.Before(leaf.NotBefore) || now.After(leaf.NotAfter) {
		return auth.User{}, false
	}
	v.mu.RLock()
	defer v.mu.RUnlock()
	user, ok := v.users[sha256.Sum256(leaf.Raw)]
	return user, ok
}

func (v *verifiedCertificates) add(leaf *x509.Certificate, user auth.User) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.users == nil || len(v.users) >= maxVerified {
		v.users = make(map[[sha256.Size]byte]auth.User)
	}
	v.users[sha256.Sum256(leaf.Raw)] = user
}
