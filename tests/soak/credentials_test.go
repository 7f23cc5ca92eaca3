package soak

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/internal/atomicfile"
	"github.com/levelwire/levelwire/tests/workload"
)

const (
	// certificateLifetime is so short that a client that keeps its certificate is
	// soon refused.
	certificateLifetime = 20 * time.Second
	rotationInterval    = 4 * time.Second
	// longLifetime, before and after now, is more than the clock jumps.
	longLifetime = 1000 * time.Hour
)

// credentials are files of a client certificate, of CAs and of the server's
// certificate that are rotated all the time, those of clients not atomically. One
// authority certifies users to the server, another one the server to its clients.
type credentials struct {
	t                           *testing.T
	dir                         string
	users, servers              authority
	authorityFile               string // of users
	servingFile, servingKeyFile string
	servingKey                  *ecdsa.PrivateKey
	serial                      int64
}

type authority struct {
	key         *ecdsa.PrivateKey
	certificate *x509.Certificate
}

func newAuthority(t *testing.T, name string) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-longLifetime), NotAfter: time.Now().Add(longLifetime),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return authority{key, certificate}
}

func newCredentials(t *testing.T) *credentials {
	t.Helper()
	c := &credentials{t: t, dir: t.TempDir(), serial: 1, users: newAuthority(t, "clients of the soak"), servers: newAuthority(t, "servers of the soak")}
	c.authorityFile = filepath.Join(c.dir, "clients.crt")
	c.servingFile, c.servingKeyFile = filepath.Join(c.dir, "server.crt"), filepath.Join(c.dir, "server.key")
	var err error
	if c.servingKey, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(c.servingKey)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(c.authorityFile, pemOf("CERTIFICATE", c.users.certificate.Raw), 0o600),
		os.WriteFile(c.servingKeyFile, pemOf("PRIVATE KEY", key), 0o600)); err != nil {
		t.Fatal(err)
	}
	c.rotate()
	return c
}

func pemOf(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// lasting is the configuration of an administrator whose certificate is not rotated.
func (c *credentials) lasting(url string) *rest.Config {
	certificate, key := c.certifyUser(time.Now().Add(-longLifetime), time.Now().Add(longLifetime))
	return &rest.Config{Host: url, TLSClientConfig: rest.TLSClientConfig{
		CAData: pemOf("CERTIFICATE", c.servers.certificate.Raw), CertData: certificate, KeyData: key,
	}}
}

// rotated is the configuration of clients that use the files.
func (c *credentials) rotated(url string) *rest.Config {
	return &rest.Config{Host: url, TLSClientConfig: rest.TLSClientConfig{
		CAFile: filepath.Join(c.dir, "ca.crt"), CertFile: filepath.Join(c.dir, "tls.crt"), KeyFile: filepath.Join(c.dir, "tls.key"),
	}}
}

// certifyUser returns a certificate and its key.
func (c *credentials) certifyUser(from, to time.Time) (certificate, key []byte) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		c.t.Error(err)
		return nil, nil
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(c.serial), Subject: pkix.Name{CommonName: "soak", Organization: []string{"system:masters"}},
		NotBefore: from, NotAfter: to, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, c.users.certificate, private.Public(), c.users.key)
	if err != nil {
		c.t.Error(err)
		return nil, nil
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		c.t.Error(err)
	}
	return pemOf("CERTIFICATE", der), pemOf("PRIVATE KEY", keyDER)
}

// rotate writes new certificates, and every other time another set of authorities:
// the server's, alone or with one more. The server's certificate is replaced in one
// step: a server that starts meanwhile needs one. Clocks may jump by hours while it is
// in use.
func (c *credentials) rotate() {
	c.serial++
	certificate, key := c.certifyUser(time.Now().Add(-time.Minute), time.Now().Add(certificateLifetime)) //passes: another one follows
	authorities := pemOf("CERTIFICATE", c.servers.certificate.Raw)
	if c.serial%4 < 2 {
		authorities = append(authorities, pemOf("CERTIFICATE", c.users.certificate.Raw)...)
	}
	for name, data := range map[string][]byte{"tls.crt": certificate, "tls.key": key, "ca.crt": authorities} {
		if err := os.WriteFile(filepath.Join(c.dir, name), data, 0o600); err != nil {
			c.t.Error(err)
		}
	}
	serving, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(c.serial), Subject: pkix.Name{CommonName: "server"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-2 * maxJump), NotAfter: time.Now().Add(2 * maxJump), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, c.servers.certificate, c.servingKey.Public(), c.servers.key)
	if err != nil {
		c.t.Error(err)
		return
	}
	chain := append(pemOf("CERTIFICATE", serving), pemOf("CERTIFICATE", c.servers.certificate.Raw)...)
	if err := atomicfile.Write(c.servingFile, chain, 0o600); err != nil {
		c.t.Error(err)
	}
}

// keepRotating rotates until the function that it returns is called.
func (c *credentials) keepRotating() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for workload.Wait(ctx, rotationInterval); ctx.Err() == nil; workload.Wait(ctx, rotationInterval) {
			c.rotate()
		}
	}()
	return func() {
		cancel()
		<-done
	}
}
