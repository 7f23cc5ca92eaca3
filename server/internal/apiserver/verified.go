package apiserver

import (
	"crypto/sha256"
	"crypto/x509"
	"sync"
	"time"

	"github.com/levelwire/levelwire/server/internal/auth"
)

// maxVerified bounds the certificates whose verification is remembered. Over
// it everything is forgotten, which costs one verification per certificate.
const maxVerified = 4096

// verifiedCertificates remembers who a client certificate stands for. One
// signature check costs as much as a small request, and a client sends
// thousands of requests with the same certificate.
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
