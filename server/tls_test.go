package server_test

import (
	"crypto/tls"
	"strings"
	"testing"

	"github.com/levelwire/levelwire/server"
)

// TestTLSAsConfigured: connections of older versions, and with other suites, are refused in the
// handshake.
func TestTLSAsConfigured(t *testing.T) {
	const suite = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"
	for name, test := range map[string]struct {
		change  func(*server.Config)
		client  *tls.Config
		refused bool
	}{
		"as it is":      {func(*server.Config) {}, &tls.Config{MaxVersion: tls.VersionTLS12}, false},
		"too old":       {func(c *server.Config) { c.TLSMinVersion = "VersionTLS13" }, &tls.Config{MaxVersion: tls.VersionTLS12}, true},
		"new enough":    {func(c *server.Config) { c.TLSMinVersion = "VersionTLS13" }, &tls.Config{}, false},
		"a suite":       {func(c *server.Config) { c.TLSCipherSuites = []string{suite} }, &tls.Config{MaxVersion: tls.VersionTLS12}, false},
		"another suite": {func(c *server.Config) { c.TLSCipherSuites = []string{suite} }, &tls.Config{MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			config := server.Config{DataDir: t.TempDir(), Storage: server.Memory, AuthorizationModes: []string{"AlwaysAllow"}}
			test.change(&config)
			s := start(t, config)
			test.client.InsecureSkipVerify = true
			dialer := &tls.Dialer{Config: test.client}
			conn, err := dialer.DialContext(deadline(t), "tcp", strings.TrimPrefix(s.URL(), "https://"))
			if err == nil {
				_ = conn.Close()
			}
			if (err != nil) != test.refused {
				t.Errorf("%v", err)
			}
		})
	}
}
