package server

import (
	"crypto/tls"
	"fmt"
	"slices"
	"strings"
)

// tlsVersions are the values of --tls-min-version.
var tlsVersions = map[string]uint16{"VersionTLS12": tls.VersionTLS12, "VersionTLS13": tls.VersionTLS13}

// tlsConfig is how connections are accepted. It fails if the flags about it make no sense.
func (c *Config) tlsConfig() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if name := c.TLSMinVersion; name != "" {
		version, ok := tlsVersions[name]
		if !ok {
			return nil, fmt.Errorf("--tls-min-version %q is neither VersionTLS12 nor VersionTLS13: older versions are not secure", name)
		}
		config.MinVersion = version
	}
	for _, name := range c.TLSCipherSuites {
		suites := tls.CipherSuites()
		i := slices.IndexFunc(suites, func(s *tls.CipherSuite) bool { return s.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("--tls-cipher-suites: %q is none of the secure ones, which are %s", name, strings.Join(suiteNames(suites), ", "))
		}
		config.CipherSuites = append(config.CipherSuites, suites[i].ID)
	}
	if len(config.CipherSuites) > 0 && config.MinVersion < tls.VersionTLS13 && !slices.ContainsFunc(config.CipherSuites, forHTTP2) {
		return nil, fmt.Errorf("--tls-cipher-suites needs %s or %s, without which HTTP/2 cannot be served over TLS 1.2",
			tls.CipherSuiteName(tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256), tls.CipherSuiteName(tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256))
	}
	return config, nil
}

func suiteNames(suites []*tls.CipherSuite) (names []string) {
	for _, s := range suites {
		names = append(names, s.Name)
	}
	return names
}

// forHTTP2 reports whether a suite is one of those that RFC 9113, section 9.2.2, requires.
func forHTTP2(suite uint16) bool {
	return suite == tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 || suite == tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256
}

// serving is the configuration of the listener's connections.
func (s *Server) serving() *tls.Config {
	config := s.config.tls.Clone()
	config.GetCertificate = s.identity.certificates.get
	return config
}
