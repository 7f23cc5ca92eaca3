package metrics

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
)

// The Service of the server.
const (
	namespace = metav1.NamespaceSystem
	name      = "metrics-server"
)

// Options configure a Server.
type Options struct {
	// Installer returns a client with the rights of an administrator. Run calls it twice:
	// at the start for what creates the APIService, the Service and the roles of the
	// server's own user, and at the end for what removes the APIService. In between, the
	// server has no such client. Required.
	Installer func() (*client.Client, error)
	// ServiceAccount is the service account in kube-system that the server's client is.
	// Default metrics-server.
	ServiceAccount string
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Logger receives what operators should see. Default slog.Default().
	Logger *slog.Logger
}

// Server serves metrics on the loopback, to the API server alone.
type Server struct {
	client  *client.Client
	opts    Options
	proxies atomic.Pointer[x509.CertPool] // certify the API server
}

// New makes a server that reads pods and nodes through a client. It sends nothing yet.
func New(c *client.Client, opts Options) (*Server, error) {
	if opts.Installer == nil {
		return nil, errors.New("metrics: Options.Installer is missing: give it what makes the client of an administrator")
	}
	if opts.ServiceAccount == "" {
		opts.ServiceAccount = name
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	s := &Server{client: c, opts: opts}
	s.proxies.Store(x509.NewCertPool()) // nobody, until it is read
	return s, nil
}

const (
	// retryInterval is how long the server waits after an error.
	retryInterval = time.Second
	// proxiesInterval is how often the authorities of the API server are read again.
	proxiesInterval = time.Minute
	readTimeout     = 10 * time.Second
	// removeTimeout bounds the removal of the APIService at the end, and what is asked before it.
	removeTimeout = time.Second
)

// Run serves until ctx ends, and then removes the APIService, so that the API does not
// promise what is not served any more. It blocks.
func (s *Server) Run(ctx context.Context) error {
	certificate, caBundle, err := newCertificate()
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	server := &http.Server{Handler: s.routes(), ReadHeaderTimeout: readTimeout, ErrorLog: slog.NewLogLogger(s.opts.Logger.Handler(), slog.LevelDebug)}
	if err := s.installOnce(ctx, listener.Addr().(*net.TCPAddr), caBundle); err != nil {
		return errors.Join(err, listener.Close())
	}
	// Who connects now waits to be served until it is known who the API server is.
	if !s.awaitProxies(ctx) {
		s.remove(context.WithoutCancel(ctx))
		return listener.Close()
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(tls.NewListener(listener, s.tlsConfig(certificate))) }()
	ticker := time.NewTicker(proxiesInterval)
	defer ticker.Stop()
	for ctx.Err() == nil {
		select {
		case err := <-served:
			s.remove(context.WithoutCancel(ctx))
			return fmt.Errorf("metrics: %w", err)
		case <-ticker.C:
			s.retry(ctx, s.readProxies)
		case <-ctx.Done():
		}
	}
	s.remove(context.WithoutCancel(ctx))
	err = server.Close()
	<-served //nolint:errcheck // It reports that.
	return err
}

func (s *Server) tlsConfig(certificate tls.Certificate) *tls.Config {
	config := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}, NextProtos: []string{"h2", "http/1.1"}}
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		own := config.Clone()
		own.GetConfigForClient = nil
		// Only the API server has such a certificate, and it has authorized its requests.
		own.ClientAuth, own.ClientCAs = tls.RequireAndVerifyClientCert, s.proxies.Load()
		return own, nil
	}
	return config
}

// installOnce makes the server part of the API, by a client of its own that is closed then.
func (s *Server) installOnce(ctx context.Context, address *net.TCPAddr, caBundle []byte) error {
	installer, err := s.opts.Installer()
	if err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	defer installer.CloseIdleConnections()
	s.retry(ctx, func(ctx context.Context) error { return s.install(ctx, installer, address, caBundle) })
	return nil
}

// retry calls f until it succeeds or ctx ends.
func (s *Server) retry(ctx context.Context, f func(context.Context) error) {
	for {
		err := f(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		s.opts.Logger.Debug("metrics are not served yet", "error", err)
		select {
		case <-time.After(retryInterval):
		case <-ctx.Done():
		}
	}
}

// awaitProxies reads the authorities that certify the API server until that succeeds. If ctx ends first,
// it reads them once more: the API server may be waiting for an answer already, and would be refused. It
// reports whether they are known.
func (s *Server) awaitProxies(ctx context.Context) bool {
	s.retry(ctx, s.readProxies)
	if ctx.Err() == nil {
		return true
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
	defer cancel()
	err := s.readProxies(last)
	if err != nil {
		s.opts.Logger.Debug("it is not known who the API server is", "error", err)
	}
	return err == nil
}

// readProxies reads the authorities that certify the API server, by the right that install has
// given the server's user.
func (s *Server) readProxies(ctx context.Context) error {
	published, err := client.For[*corev1.ConfigMap](s.client).Namespace(namespace).Get(ctx, "extension-apiserver-authentication", metav1.GetOptions{})
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(published.Data["requestheader-client-ca-file"])) {
		return errors.New("the ConfigMap extension-apiserver-authentication has no authority of front proxies")
	}
	s.proxies.Store(pool)
	return nil
}

// newCertificate makes the serving certificate, which is its own authority.
func newCertificate() (certificate tls.Certificate, caBundle []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return certificate, nil, err
	}
	const day = 24 * time.Hour
	host := name + "." + namespace + ".svc"
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host},
		NotBefore: time.Now().Add(-365 * day), NotAfter: time.Now().Add(10 * 365 * day), // it lives as long as the process
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true, IsCA: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return certificate, nil, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}
