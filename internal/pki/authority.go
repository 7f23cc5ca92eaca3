package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Lifetimes. A serving or client certificate is renewed when less than renewBefore of
// it is left, or when the clock has gone back to before it.
const (
	authorityLifetime   = 10 * 365 * 24 * time.Hour
	certificateLifetime = 365 * 24 * time.Hour
	renewBefore         = 30 * 24 * time.Hour
	// clockSkew lets clients whose clock is behind accept a fresh certificate.
	clockSkew = 5 * time.Minute
	// authorityBackdate is how far before its making an authority is valid from. A
	// machine whose clock was ahead when it made the authority, and is set right
	// then, could use nothing that it signs until that time has come.
	authorityBackdate = 365 * 24 * time.Hour
)

// Authority signs certificates. It is safe for concurrent use.
type Authority struct {
	pair *Pair
	now  func() time.Time
}

// LoadAuthority reads ca.crt and ca.key below dir. It makes nothing: the error is
// fs.ErrNotExist if there is no authority.
func LoadAuthority(dir string, now func() time.Time) (*Authority, error) {
	pair, err := loadPair(dir, "ca")
	if err != nil {
		return nil, err
	}
	return &Authority{pair: pair, now: now}, nil
}

// LoadOrCreateAuthority reads ca.crt and ca.key below dir, or makes them if
// both are absent. A key without its certificate is what a crash at the first
// start leaves: it is certified again, and whatever it signed stays valid. A
// certificate without its key is an error: making a new authority would
// silently invalidate every kubeconfig in use.
func LoadOrCreateAuthority(dir string, now func() time.Time) (*Authority, error) {
	return loadOrCreate(dir, "ca", "levelwire-ca", now)
}

// LoadOrCreateFrontProxyAuthority is LoadOrCreateAuthority for front-proxy-ca.crt and
// front-proxy-ca.key: the authority of the client certificates of proxies, which name
// their users in headers. It must not be the one that certifies users.
func LoadOrCreateFrontProxyAuthority(dir string, now func() time.Time) (*Authority, error) {
	return loadOrCreate(dir, "front-proxy-ca", "levelwire-front-proxy-ca", now)
}

func loadOrCreate(dir, name, commonName string, now func() time.Time) (*Authority, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	pair, err := loadPair(dir, name)
	if err == nil {
		return &Authority{pair: pair, now: now}, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	certificate := filepath.Join(dir, name+".crt")
	if _, statErr := os.Stat(certificate); statErr == nil {
		return nil, fmt.Errorf("%w; restore it, or remove %s as well to start with a new authority", err, certificate)
	}
	key, err := loadKey(filepath.Join(dir, name+".key"))
	if errors.Is(err, fs.ErrNotExist) {
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	}
	if err != nil {
		return nil, err
	}
	return createAuthority(dir, name, commonName, key, now)
}

func createAuthority(dir, name, commonName string, key *ecdsa.PrivateKey, now func() time.Time) (*Authority, error) {
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: commonName},
		NotBefore:             now().Add(-authorityBackdate),
		NotAfter:              now().Add(authorityLifetime),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	pair, err := newPair(der, key)
	if err != nil {
		return nil, err
	}
	return &Authority{pair: pair, now: now}, pair.save(dir, name)
}

// CertificatePEM returns the authority's own certificate.
func (a *Authority) CertificatePEM() []byte { return a.pair.CertPEM }

// Certificate returns the authority's own certificate.
func (a *Authority) Certificate() *x509.Certificate { return a.pair.Leaf }

// Serving loads or issues the server's certificate for the given host names
// and IP addresses. One that lacks a host or expires soon is replaced.
func (a *Authority) Serving(dir string, hosts []string) (*Pair, error) {
	return a.loadOrIssue(dir, "server", func(leaf *x509.Certificate) bool {
		for _, host := range hosts {
			if leaf.VerifyHostname(host) != nil {
				return false
			}
		}
		return true
	}, func(template *x509.Certificate) {
		template.Subject = pkix.Name{CommonName: "levelwire"}
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		for _, host := range hosts {
			if ip := net.ParseIP(host); ip != nil {
				template.IPAddresses = append(template.IPAddresses, ip)
			} else {
				template.DNSNames = append(template.DNSNames, host)
			}
		}
	})
}

// Client loads or issues a client certificate: Kubernetes takes the common
// name for the user and the organizations for the groups.
func (a *Authority) Client(dir, name, user string, groups ...string) (*Pair, error) {
	return a.loadOrIssue(dir, name, func(leaf *x509.Certificate) bool {
		return leaf.Subject.CommonName == user
	}, clientTemplate(user, groups))
}

// IssueClient issues a client certificate as Client does, and saves it nowhere. It is
// valid for lifetime, but not longer than the authority is.
func (a *Authority) IssueClient(user string, groups []string, lifetime time.Duration) (*Pair, error) {
	return a.issue(func(template *x509.Certificate) {
		clientTemplate(user, groups)(template)
		template.NotAfter = a.now().Add(lifetime)
		if end := a.pair.Leaf.NotAfter; template.NotAfter.After(end) {
			template.NotAfter = end
		}
	})
}

func clientTemplate(user string, groups []string) func(*x509.Certificate) {
	return func(template *x509.Certificate) {
		template.Subject = pkix.Name{CommonName: user, Organization: groups}
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	}
}

// loadOrIssue keeps a pair that was signed by this authority, is not about to
// expire and satisfies fits; otherwise it issues and saves another, also for
// the two halves of different pairs that a crash during a renewal leaves.
func (a *Authority) loadOrIssue(dir, name string, fits func(*x509.Certificate) bool, fill func(*x509.Certificate)) (*Pair, error) {
	pair, err := loadPair(dir, name)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errMismatched):
		return nil, err
	case err == nil && a.stillGood(pair.Leaf) && fits(pair.Leaf):
		return pair, nil
	}
	pair, err = a.issue(fill)
	if err != nil {
		return nil, err
	}
	return pair, pair.save(dir, name)
}

func (a *Authority) stillGood(leaf *x509.Certificate) bool {
	now := a.now()
	return leaf.CheckSignatureFrom(a.pair.Leaf) == nil && now.Add(renewBefore).Before(leaf.NotAfter) && !now.Before(leaf.NotBefore)
}

func (a *Authority) issue(fill func(*x509.Certificate)) (*Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		NotBefore:    a.now().Add(-clockSkew),
		NotAfter:     a.now().Add(certificateLifetime),
		KeyUsage:     x509.KeyUsageDigitalSignature,
	}
	fill(template)
	der, err := x509.CreateCertificate(rand.Reader, template, a.pair.Leaf, key.Public(), a.pair.key)
	if err != nil {
		return nil, err
	}
	return newPair(der, key)
}

// newSerial draws 127 random bits: RFC 5280 allows up to 20 octets and wants
// them positive.
func newSerial() (*big.Int, error) {
	return rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
}
