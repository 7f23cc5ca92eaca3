package server

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/levelwire/levelwire/internal/pki"
	"github.com/levelwire/levelwire/server/internal/auth"
)

// renewInterval is how often the certificates are checked while the server runs, as
// kube-apiserver does for its files.
const renewInterval = time.Minute

// adminUser is the user of the administrator's certificate, unless the server is a relay.
const adminUser = "levelwire-admin"

// certificates are the serving certificate and the administrator's. Those that the
// server makes are renewed long before they expire, also while it runs; configured
// files are read again when they have changed. Connections that are open keep the
// certificate that they began with.
type certificates struct {
	dir       string
	authority *pki.Authority
	hosts     []string
	// certFile and keyFile are a configured serving certificate; "" for one of the
	// authority's.
	certFile, keyFile string
	// kubeconfig is the administrator's file, url the server in it, and admin the user.
	kubeconfig, url, admin string

	serving atomic.Pointer[tls.Certificate]
}

// run renews until ctx ends. A renewal that fails is logged and tried again: what
// was made before is good for weeks.
func (c *certificates) run(ctx context.Context, log *slog.Logger) {
	ticker := time.NewTicker(renewInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		before := c.serving.Load()
		if _, err := c.renew(); err != nil {
			log.Error("certificates could not be renewed: trying again", "error", err)
		} else if now := c.serving.Load(); now != before {
			log.Info("serving with another certificate", "expires", now.Leaf.NotAfter)
		}
	}
}

// renew loads or makes what is missing or expires soon, and returns what verifies
// the serving certificate. The administrator's kubeconfig is written only if its
// content changes.
func (c *certificates) renew() (rootCA []byte, err error) {
	serving, rootCA, err := c.loadServing()
	if err != nil {
		return nil, err
	}
	if before := c.serving.Load(); before == nil || !before.Leaf.Equal(serving.Leaf) {
		c.serving.Store(serving)
	}
	admin, err := c.authority.Client(c.dir, "admin", c.admin, auth.Masters)
	if err != nil {
		return nil, fmt.Errorf("certificates: %w", err)
	}
	if err := pki.WriteKubeconfig(c.kubeconfig, c.url, "admin", rootCA, admin); err != nil {
		return nil, fmt.Errorf("admin kubeconfig: %w", err)
	}
	return rootCA, nil
}

// loadServing takes the configured certificate, or one of the server's own
// authority. The issuer of a configured certificate is unknown, so the kubeconfig
// makes clients trust the last certificate of its chain.
func (c *certificates) loadServing() (serving *tls.Certificate, rootCA []byte, err error) {
	if c.certFile == "" {
		pair, err := c.authority.Serving(c.dir, c.hosts)
		if err != nil {
			return nil, nil, fmt.Errorf("certificates: %w", err)
		}
		return new(pair.TLS()), c.authority.CertificatePEM(), nil
	}
	configured, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return nil, nil, fmt.Errorf("--tls-cert-file and --tls-private-key-file: %w", err)
	}
	last := configured.Certificate[len(configured.Certificate)-1]
	return &configured, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: last}), nil
}

// get implements tls.Config.GetCertificate.
func (c *certificates) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return c.serving.Load(), nil
}
