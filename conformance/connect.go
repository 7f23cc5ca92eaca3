package conformance

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

// target is the server under test, reached over both versions of HTTP. Bodies
// arrive as they were sent: nothing is decompressed or retried.
type target struct {
	base   string
	h1, h2 *http.Client // h2 is h1 if the server has no TLS
	secure bool
	close  func()
}

// connect makes the clients. It sends nothing yet.
func connect(config *rest.Config) (*target, error) {
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
	t := &target{base: strings.TrimSuffix(base, "/"), secure: parsed.Scheme == "https"}
	var plain []*http.Transport
	make := func(protocols ...string) (*http.Client, error) {
		wire := newTransport(settings, tlsConfig, protocols)
		plain = append(plain, wire)
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
	t.close = func() {
		for _, wire := range plain {
			wire.CloseIdleConnections()
		}
	}
	return t, nil
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
