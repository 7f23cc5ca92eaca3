package attacks

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"strings"
	"time"

	"golang.org/x/net/http2"
)

// What clients do before the server knows them.

// cookies sends requests of few bytes with hundreds of cookie fields, which a server joins.
func cookies(ctx context.Context, a *attacker) error {
	c, err := a.dial(ctx, a.config, false)
	if err != nil {
		return err
	}
	defer c.close()
	// An empty cookie field is one byte: the 32nd of HPACK's static table.
	many := bytes.Repeat([]byte{0x80 | 32}, 900)
	for range 10 {
		c.request(true, many, http.MethodGet, "/version", "")
	}
	c.do(c.framer.WritePing(false, [8]byte{}))
	return c.failed
}

// unknownStreams opens many streams with long header lists, and no window for the answers.
func unknownStreams(ctx context.Context, a *attacker) error {
	c, err := a.dial(ctx, a.config, false, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	if err != nil {
		return err
	}
	defer c.close()
	for range 100 {
		c.request(true, nil, http.MethodGet, "/version", "", "x-long", strings.Repeat("x", 15<<10))
	}
	return c.wait(ctx)
}

// silent opens a connection and does not even begin with TLS.
func silent(ctx context.Context, a *attacker) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", a.host)
	if err != nil {
		return err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	_, err = io.Copy(io.Discard, conn)
	return err
}

// refusedCertificate sends requests with a certificate that the server does not trust.
func refusedCertificate(ctx context.Context, a *attacker) error {
	config := a.config.Clone()
	config.Certificates = []tls.Certificate{a.refused}
	c, err := a.dial(ctx, config, false)
	if err != nil {
		return err
	}
	defer c.close()
	for range 20 {
		c.request(true, nil, http.MethodGet, a.Lists+"?limit=1", "")
	}
	ended, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return c.wait(ended)
}

// longChain is a certificate with a chain of n authorities above it.
func longChain(n int) (tls.Certificate, error) {
	var chain tls.Certificate
	var parent *x509.Certificate
	var signer *ecdsa.PrivateKey
	for i := range n + 1 {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return chain, err
		}
		template := &x509.Certificate{
			SerialNumber: big.NewInt(int64(i + 1)), Subject: pkix.Name{CommonName: fmt.Sprint("authority ", i)},
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
			IsCA: i < n, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		}
		if parent == nil {
			parent, signer = template, key
		}
		der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
		if err != nil {
			return chain, err
		}
		if parent, err = x509.ParseCertificate(der); err != nil {
			return chain, err
		}
		signer = key
		chain.Certificate = append([][]byte{der}, chain.Certificate...)
		chain.PrivateKey = key
	}
	return chain, nil
}
