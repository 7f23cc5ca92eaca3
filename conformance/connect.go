package conformance

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

// testedServer is the server under test over both versions of HTTP. Bodies
// arrive as they were sent: nothing is decompressed or retried.
type testedServer struct {
	base   string
	h1, h2 *http.Client // h2 is h1 if the server has no TLS
	secure bool
	pace   *pace
	close  func()
}

// connect makes the clients. It sends nothing yet.
func connect(config *rest.Config) (*testedServer, error) {
	if config == nil || config.Host == "" {
		return nil, errors.New("the configuration names no server")
	}
	base := config.Host
	if !strings.Contains(base, "://") {
		base = "https://" + base
	}
	parsed, err := url.Parse(base)
	if err != nil {
		return nil, fmt.Errorf("the server's address: %w", err)
	}
	config = rest.CopyConfig(config)
	config.RateLimiter, config.QPS = nil, -1
	settings, err := config.TransportConfig()
	if err != nil {
		return nil, err
	}
	tlsConfig, err := transport.TLSConfigFor(settings)
	if err != nil {
		return nil, err
	}
	t := &testedServer{base: strings.TrimSuffix(base, "/"), secure: parsed.Scheme == "https", pace: new(pace)}
	open := &connections{open: map[net.Conn]struct{}{}}
	t.close = open.close
	make := func(protocols ...string) (*http.Client, error) {
		wire := newTransport(settings, tlsConfig, protocols)
		wire.DialContext = open.dialer(wire.DialContext)
		wrapped, err := transport.HTTPWrappersForConfig(settings, wire)
		return &http.Client{Transport: wrapped, CheckRedirect: noRedirect}, err
	}
	if t.h1, err = make("http/1.1"); err != nil {
		return nil, err
	}
	t.h2 = t.h1
	if t.secure {
		if t.h2, err = make("h2", "http/1.1"); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// connections are all that were opened. A transport can close only those that
// are idle, and one is not right after a watch on it was given up.
type connections struct {
	mu   sync.Mutex
	open map[net.Conn]struct{}
}

type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

func (c *connections) dialer(dial dialFunc) dialFunc {
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		counted := &countedConn{conn, c}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.open[counted] = struct{}{}
		return counted, nil
	}
}

func (c *connections) close() {
	c.mu.Lock()
	open := slices.Collect(maps.Keys(c.open))
	c.mu.Unlock()
	for _, conn := range open {
		_ = conn.Close() // no request is under way on it
	}
}

type countedConn struct {
	net.Conn
	in *connections
}

func (c *countedConn) Close() error {
	c.in.mu.Lock()
	delete(c.in.open, c)
	c.in.mu.Unlock()
	return c.Conn.Close()
}

func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

func newTransport(settings *transport.Config, tlsConfig *tls.Config, protocols []string) *http.Transport {
	wire := &http.Transport{
		Proxy: settings.Proxy, DisableCompression: true,
		MaxIdleConnsPerHost: 32, ForceAttemptHTTP2: len(protocols) > 1,
	}
	if wire.Proxy == nil {
		wire.Proxy = http.ProxyFromEnvironment
	}
	if settings.DialHolder != nil {
		wire.DialContext = settings.DialHolder.Dial
	}
	if tlsConfig != nil {
		wire.TLSClientConfig = tlsConfig.Clone()
	} else {
		wire.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	wire.TLSClientConfig.NextProtos = protocols
	return wire
}
