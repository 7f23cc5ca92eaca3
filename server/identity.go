package server

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/levelwire/levelwire/internal/pki"
)

// adminGroup may do everything, whatever the authorizer says.
const adminGroup = "system:masters"

// identity is what the server proves who it is with, and what it asks of
// clients.
type identity struct {
	serving   tls.Certificate
	clientCAs *x509.CertPool
}

// prepareIdentity loads or makes the certificates and writes the admin's
// kubeconfig for the address that the server listens on.
func (c *Config) prepareIdentity(address *net.TCPAddr) (*identity, error) {
	dir := filepath.Join(c.DataDir, "pki")
	authority, err := pki.LoadOrCreateAuthority(dir, time.Now)
	if err != nil {
		return nil, fmt.Errorf("certificates: %w", err)
	}
	serving, err := authority.Serving(dir, c.servingHosts())
	if err != nil {
		return nil, fmt.Errorf("certificates: %w", err)
	}
	admin, err := authority.Client(dir, "admin", "levelwire-admin", adminGroup)
	if err != nil {
		return nil, fmt.Errorf("certificates: %w", err)
	}
	if err := pki.WriteKubeconfig(c.kubeconfigPath(), urlOf(address), authority, admin); err != nil {
		return nil, fmt.Errorf("admin kubeconfig: %w", err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(authority.Certificate())
	return &identity{serving: serving.TLS(), clientCAs: pool}, nil
}

// servingHosts are the names under which clients may reach the server.
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

// urlOf is how the machine itself reaches the server.
func urlOf(address *net.TCPAddr) string {
	local := *address
	if local.IP.IsUnspecified() {
		local.IP = net.IPv4(127, 0, 0, 1)
	}
	return "https://" + local.String()
}
