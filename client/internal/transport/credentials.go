package transport

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"os"
	"slices"

	clienttransport "k8s.io/client-go/transport"
)

// credentials are what new connections use until they are rotated. They are never
// changed.
type credentials struct {
	files      fileContents
	clientCert *tls.Certificate // of the files; nil: none
	tls        *tls.Config      // for one http.Transport
}

// fileContents are the files' bytes, to compare.
type fileContents struct{ ca, cert, key []byte }

func (f fileContents) equal(other fileContents) bool {
	return bytes.Equal(f.ca, other.ca) && bytes.Equal(f.cert, other.cert) && bytes.Equal(f.key, other.key)
}

// source is where credentials come from. As in client-go, data in a configuration
// takes precedence over files, and a certificate over an exec plugin's.
type source struct {
	config                    *clienttransport.Config
	caFile, certFile, keyFile string                           // empty: cannot be rotated
	getCert                   func() (*tls.Certificate, error) // an exec plugin's; nil: none
}

func newSource(c *clienttransport.Config) source {
	s := source{config: c}
	if len(c.TLS.CAData) == 0 {
		s.caFile = c.TLS.CAFile
	}
	switch {
	case len(c.TLS.CertData) == 0 && c.TLS.CertFile != "" && len(c.TLS.KeyData) == 0 && c.TLS.KeyFile != "":
		s.certFile, s.keyFile = c.TLS.CertFile, c.TLS.KeyFile
	case !c.HasCertAuth() && c.HasCertCallback():
		s.getCert = c.TLS.GetCertHolder.GetCert
	}
	return s
}

// read reads the files.
func (s source) read() (fileContents, error) {
	var f fileContents
	for _, file := range []struct {
		path string
		into *[]byte
	}{{s.caFile, &f.ca}, {s.certFile, &f.cert}, {s.keyFile, &f.key}} {
		if file.path == "" {
			continue
		}
		data, err := os.ReadFile(file.path)
		if err != nil {
			return f, err
		}
		if len(data) == 0 {
			return f, fmt.Errorf("%s is empty", file.path)
		}
		*file.into = data
	}
	return f, nil
}

// rotates reports whether there are files that may change.
func (s source) rotates() bool { return s.caFile != "" || s.certFile != "" }

// load reads the files and checks them.
func (s source) load() (*credentials, error) {
	files, err := s.read()
	if err != nil {
		return nil, err
	}
	return s.credentials(files)
}

// credentials checks what the files contain and builds the TLS configuration of it.
func (s source) credentials(files fileContents) (*credentials, error) {
	c := &credentials{files: files}
	config := *s.config
	if s.caFile != "" {
		config.TLS.CAData = files.ca
	}
	if s.certFile != "" {
		pair, err := tls.X509KeyPair(files.cert, files.key)
		if err != nil {
			return nil, fmt.Errorf("%s and %s: %w", s.certFile, s.keyFile, err)
		}
		c.clientCert = &pair
		config.TLS.CertData, config.TLS.KeyData = files.cert, files.key
	}
	var err error
	if c.tls, err = clienttransport.TLSConfigFor(&config); err != nil {
		return nil, err
	}
	if c.tls == nil {
		c.tls = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return c, nil
}

// sameCertificate compares by what is sent to the server: a plugin may return the
// same certificate again and again.
func sameCertificate(a, b *tls.Certificate) bool {
	if a == nil || b == nil {
		return a == b
	}
	return slices.EqualFunc(a.Certificate, b.Certificate, bytes.Equal)
}
