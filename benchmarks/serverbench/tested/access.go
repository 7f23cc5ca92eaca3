package tested

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
)

// Access is how clients reach a server.
type Access struct {
	URL           string
	CA, Cert, Key []byte // PEM; a client certificate if the server wants one
}

// TLS returns what a client of HTTP/2 needs.
func (a Access) TLS() (*tls.Config, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(a.CA) {
		return nil, errors.New("the server's authority is no certificate")
	}
	config := &tls.Config{RootCAs: roots, NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS13}
	if len(a.Cert) > 0 {
		pair, err := tls.X509KeyPair(a.Cert, a.Key)
		if err != nil {
			return nil, fmt.Errorf("client certificate: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// HTTPClient returns a client of net/http with connections of its own.
func (a Access) HTTPClient() (*http.Client, error) {
	config, err := a.TLS()
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true, DisableCompression: true}}, nil
}

// Reach is what it takes to dial the server: as whom, and its host and port.
func (a Access) Reach() (config *tls.Config, address string, err error) {
	if config, err = a.TLS(); err != nil {
		return nil, "", err
	}
	u, err := url.Parse(a.URL)
	if err != nil {
		return nil, "", err
	}
	return config, u.Host, nil
}
