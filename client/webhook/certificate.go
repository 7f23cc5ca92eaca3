package webhook

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// certificateInterval is how often, at most, files are compared with what is in
// use. They are read by handshakes, so a server without clients reads nothing.
const certificateInterval = time.Second

// certificates are the server's certificate and the authorities of its clients,
// from files. What cannot be read, or does not fit together because only one of
// two files has been replaced yet, is logged, and what was in use stays.
type certificates struct {
	certFile, keyFile, clientCAFile string
	get                             func(*tls.ClientHelloInfo) (*tls.Certificate, error) // in place of files; nil: none
	log                             *slog.Logger
	now                             func() time.Time

	mu      sync.Mutex
	checked time.Time
	content [3][]byte // of the files, as they were last used
	failed  bool      // the last attempt; so that one failure is logged once
	config  *tls.Config
	expires time.Time // zero: not known
	stats   CertificateStats
}

// CertificateStats is what a Server has done with its certificate files.
type CertificateStats struct {
	// Reads counts how often the files were read: when the Server was made, and
	// by handshakes, once a second at most. It is 0 without files.
	Reads uint64
	// Errors are those of Reads after which the files before them were used on:
	// a file is missing, or does not fit the others.
	Errors uint64
}

// CertificateStats returns the counters of this moment.
func (s *Server) CertificateStats() CertificateStats {
	s.certificates.mu.Lock()
	defer s.certificates.mu.Unlock()
	return s.certificates.stats
}

func newCertificates(opts Options) (*certificates, error) {
	c := &certificates{certFile: opts.CertFile, keyFile: opts.KeyFile, clientCAFile: opts.ClientCAFile, get: opts.GetCertificate, log: opts.Logger, now: time.Now}
	if err := c.read(); err != nil {
		return nil, fmt.Errorf("webhook server: %w", err)
	}
	return c, nil
}

// current returns the configuration of a handshake.
func (c *certificates) current(*tls.ClientHelloInfo) (*tls.Config, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.now(); now.Sub(c.checked) >= certificateInterval || now.Before(c.checked) {
		c.checked = now
		err := c.read()
		if err != nil && !c.failed {
			c.log.Warn("new certificate files are not used, the ones before are", "error", err)
		}
		c.failed = err != nil
	}
	return c.config, nil
}

// read is load, counted. It needs c.mu.
func (c *certificates) read() error {
	err := c.load()
	if c.certFile != "" || c.clientCAFile != "" {
		c.stats.Reads++
		if err != nil {
			c.stats.Errors++
		}
	}
	return err
}

// load reads the files, and uses them if they have changed. It needs c.mu.
func (c *certificates) load() error {
	var content [3][]byte
	for n, file := range []string{c.certFile, c.keyFile, c.clientCAFile} {
		if file == "" {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		content[n] = data
	}
	if c.config != nil && bytes.Equal(content[0], c.content[0]) && bytes.Equal(content[1], c.content[1]) && bytes.Equal(content[2], c.content[2]) {
		return nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, GetCertificate: c.get}
	var expires time.Time
	if c.get == nil {
		pair, err := tls.X509KeyPair(content[0], content[1])
		if err != nil {
			return fmt.Errorf("%s and %s: %w", c.certFile, c.keyFile, err)
		}
		config.Certificates, expires = []tls.Certificate{pair}, pair.Leaf.NotAfter
	}
	if c.clientCAFile != "" {
		config.ClientCAs, config.ClientAuth = x509.NewCertPool(), tls.VerifyClientCertIfGiven
		if !config.ClientCAs.AppendCertsFromPEM(content[2]) {
			return fmt.Errorf("%s holds no certificate", c.clientCAFile)
		}
	}
	if c.config != nil {
		c.log.Info("using new certificate files", "expires", expires)
	}
	c.content, c.config, c.expires = content, config, expires
	return nil
}

var errExpired = errors.New("the serving certificate has expired")

// valid returns an error if clients cannot accept the certificate any more.
func (c *certificates) valid() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.expires.IsZero() && c.now().After(c.expires) {
		return fmt.Errorf("%w at %v", errExpired, c.expires)
	}
	return nil
}
