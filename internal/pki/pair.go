package pki

import (
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/levelwire/levelwire/internal/atomicfile"
)

// Pair is a certificate with its private key.
type Pair struct {
	CertPEM, KeyPEM []byte
	Leaf            *x509.Certificate
	key             *ecdsa.PrivateKey
}

// TLS returns the pair in the form crypto/tls takes.
func (p *Pair) TLS() tls.Certificate {
	return tls.Certificate{Certificate: [][]byte{p.Leaf.Raw}, PrivateKey: p.key, Leaf: p.Leaf}
}

func newPair(der []byte, key *ecdsa.PrivateKey) (*Pair, error) {
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return &Pair{
		CertPEM: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		KeyPEM:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
		Leaf:    leaf,
		key:     key,
	}, nil
}

// save writes the key first: a crash in between leaves a key without a
// certificate, or with that of an older pair, which the next start replaces.
func (p *Pair) save(dir, name string) error {
	if err := atomicfile.Write(filepath.Join(dir, name+".key"), p.KeyPEM, 0o600); err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(dir, name+".crt"), p.CertPEM, 0o644)
}

func loadPair(dir, name string) (*Pair, error) {
	certPath, keyPath := filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")
	certPEM, err := os.ReadFile(certPath)
	if err != nil {
		return nil, err
	}
	key, err := loadKey(keyPath)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(certPEM)
	if block == nil {
		return nil, fmt.Errorf("%s: no PEM certificate in the file", certPath)
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", certPath, err)
	}
	if !key.PublicKey.Equal(leaf.PublicKey) {
		return nil, fmt.Errorf("%s and %s: %w", keyPath, certPath, errMismatched)
	}
	return newPair(leaf.Raw, key)
}

var errMismatched = errors.New("the key does not belong to the certificate")

func loadKey(path string) (*ecdsa.PrivateKey, error) {
	keyPEM, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	key, err := parseKey(keyPEM)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return key, nil
}

func parseKey(keyPEM []byte) (*ecdsa.PrivateKey, error) {
	block, _ := pem.Decode(keyPEM)
	if block == nil {
		return nil, errors.New("no PEM private key in the file")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("a %T, want an ECDSA key", parsed)
	}
	return key, nil
}
