package authentication

import (
	"crypto/x509"
	"sync/atomic"
)

// Authorities are the authorities whose certificates are accepted from clients. They can
// be replaced while requests are answered. It is safe for concurrent use.
type Authorities struct {
	current atomic.Pointer[verifier]
}

// NewAuthorities returns authorities that are made of certificates.
func NewAuthorities(certificates []*x509.Certificate) *Authorities {
	a := &Authorities{}
	a.Replace(certificates)
	return a
}

// Replace makes these the only authorities. Requests that arrive after it are judged by
// them, on open connections, too: what was found out about certificates by the former
// authorities is forgotten.
func (a *Authorities) Replace(certificates []*x509.Certificate) {
	roots := x509.NewCertPool()
	for _, c := range certificates {
		roots.AddCert(c)
	}
	a.current.Store(&verifier{certificates: certificates, roots: roots})
}

// Certificates returns the current authorities. It is shared and must not be modified.
func (a *Authorities) Certificates() []*x509.Certificate { return a.current.Load().certificates }
