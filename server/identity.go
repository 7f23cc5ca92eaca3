package server

import (
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/levelwire/levelwire/internal/pki"
	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/serviceaccount"
)

// identity holds the server's certificate and keys, and what clients are
// authenticated by.
type identity struct {
	serving   tls.Certificate
	clientCAs *x509.CertPool
	// rootCA, in PEM, verifies serving.
	rootCA []byte
	// tokenKey signs the tokens of service accounts, tokenKeys verify them, too.
	tokenKey  crypto.Signer
	tokenKeys []crypto.PublicKey
	// tokens authenticates the bearer tokens of a file; nil if there is none.
	tokens auth.TokenAuthenticator
}

// prepareIdentity loads or makes certificates and keys and writes the admin's
// kubeconfig for the address that the server listens on.
func (c *Config) prepareIdentity(address *net.TCPAddr) (*identity, error) {
	dir := filepath.Join(c.DataDir, "pki")
	authority, err := pki.LoadOrCreateAuthority(dir, time.Now)
	if err != nil {
		return nil, fmt.Errorf("certificates: %w", err)
	}
	id := &identity{clientCAs: x509.NewCertPool()}
	id.clientCAs.AddCert(authority.Certificate())
	if err := id.prepareServing(c, dir, authority); err != nil {
		return nil, err
	}
	if err := id.readClients(c); err != nil {
		return nil, err
	}
	if err := id.prepareTokenKeys(c, dir); err != nil {
		return nil, err
	}
	admin, err := authority.Client(dir, "admin", "levelwire-admin", auth.Masters)
	if err != nil {
		return nil, fmt.Errorf("certificates: %w", err)
	}
	if err := pki.WriteKubeconfig(c.kubeconfigPath(), urlOf(address), id.rootCA, admin); err != nil {
		return nil, fmt.Errorf("admin kubeconfig: %w", err)
	}
	return id, nil
}

// prepareServing takes the configured certificate, or one of the server's own
// authority. The issuer of a configured certificate is unknown, so the kubeconfig
// makes clients trust the last certificate of its chain.
func (id *identity) prepareServing(c *Config, dir string, authority *pki.Authority) error {
	if c.TLSCertFile == "" {
		serving, err := authority.Serving(dir, c.servingHosts())
		if err != nil {
			return fmt.Errorf("certificates: %w", err)
		}
		id.serving, id.rootCA = serving.TLS(), authority.CertificatePEM()
		return nil
	}
	serving, err := tls.LoadX509KeyPair(c.TLSCertFile, c.TLSKeyFile)
	if err != nil {
		return fmt.Errorf("--tls-cert-file and --tls-private-key-file: %w", err)
	}
	last := serving.Certificate[len(serving.Certificate)-1]
	id.serving, id.rootCA = serving, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: last})
	return nil
}

// readClients reads what else authenticates clients: another authority for client
// certificates, and a file of tokens.
func (id *identity) readClients(c *Config) error {
	if c.ClientCAFile != "" {
		data, err := os.ReadFile(c.ClientCAFile)
		if err != nil {
			return fmt.Errorf("--client-ca-file: %w", err)
		}
		if !id.clientCAs.AppendCertsFromPEM(data) {
			return fmt.Errorf("--client-ca-file: %s: no PEM certificate in the file", c.ClientCAFile)
		}
	}
	if c.TokenAuthFile == "" {
		return nil
	}
	tokens, err := auth.ReadTokenFile(c.TokenAuthFile)
	if err != nil {
		return fmt.Errorf("--token-auth-file: %w", err)
	}
	id.tokens = tokens
	return nil
}

// prepareTokenKeys reads the configured keys; without a signing key, the server
// makes its own.
func (id *identity) prepareTokenKeys(c *Config, dir string) (err error) {
	if c.ServiceAccountSigningKeyFile == "" {
		key, err := pki.LoadOrCreateKey(dir, "service-account")
		if err != nil {
			return fmt.Errorf("key of service account tokens: %w", err)
		}
		id.tokenKey = key
	} else if id.tokenKey, err = serviceaccount.ReadSigningKey(c.ServiceAccountSigningKeyFile); err != nil {
		return fmt.Errorf("--service-account-signing-key-file: %w", err)
	}
	for _, path := range c.ServiceAccountKeyFiles {
		keys, err := serviceaccount.ReadPublicKeys(path)
		if err != nil {
			return fmt.Errorf("--service-account-key-file: %w", err)
		}
		id.tokenKeys = append(id.tokenKeys, keys...)
	}
	return nil
}

// servingHosts are the names and addresses by which clients may reach the server.
func (c *Config) servingHosts() []string {
	hosts := []string{
		"localhost", "127.0.0.1", "::1", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
		c.ServiceCIDR.Masked().Addr().Next().String(),
	}
	if ip := net.ParseIP(c.BindAddress); !ip.IsUnspecified() {
		hosts = append(hosts, ip.String())
	} else if name, err := os.Hostname(); err == nil {
		hosts = append(hosts, name)
	}
	hosts = append(hosts, c.Hosts...)
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

func (c *Config) kubeconfigPath() string { return filepath.Join(c.DataDir, "admin.kubeconfig") }

// urlOf is the URL by which the same machine reaches the server.
func urlOf(address *net.TCPAddr) string {
	local := *address
	if local.IP.IsUnspecified() {
		local.IP = net.IPv4(127, 0, 0, 1)
	}
	return "https://" + local.String()
}
