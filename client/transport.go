package client

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

const (
	dialTimeout         = 30 * time.Second
	tlsHandshakeTimeout = 10 * time.Second
	idleConnTimeout     = 90 * time.Second
	idleConnsPerHost    = 25
)

// newTransport builds the stack of round trippers for a configuration, and
// returns the bottom one too: it owns the connections. client-go's shared
// transports are not used because their health checks cannot be set.
func newTransport(cfg *rest.Config, opts Options) (http.RoundTripper, *http.Transport, error) {
	tc, err := cfg.TransportConfig()
	if err != nil {
		return nil, nil, err
	}
	if opts.UserAgent != "" {
		tc.UserAgent = opts.UserAgent
	} else if tc.UserAgent == "" {
		tc.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	tlsConfig, err := transport.TLSConfigFor(tc)
	if err != nil {
		return nil, nil, err
	}
	if tlsConfig == nil {
		tlsConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	proxy := tc.Proxy
	if proxy == nil {
		proxy = http.ProxyFromEnvironment
	}
	bottom := &http.Transport{
		Proxy:               proxy,
		DialContext:         dialer(tc, opts),
		TLSClientConfig:     tlsConfig,
		TLSHandshakeTimeout: tlsHandshakeTimeout,
		MaxIdleConnsPerHost: idleConnsPerHost,
		IdleConnTimeout:     idleConnTimeout,
		DisableCompression:  tc.DisableCompression,
		Protocols:           protocols(opts),
		HTTP2:               http2Config(opts),
	}
	var rt http.RoundTripper = bottom
	if rt, err = transport.HTTPWrappersForConfig(tc, rt); err != nil {
		return nil, nil, err
	}
	if opts.WrapTransport != nil {
		rt = opts.WrapTransport(rt)
	}
	return rt, bottom, nil
}

// protocols says which versions of HTTP may be spoken.
func protocols(opts Options) *http.Protocols {
	p := new(http.Protocols)
	switch {
	case opts.UnencryptedHTTP2:
		p.SetHTTP2(true)
		p.SetUnencryptedHTTP2(true)
	case opts.ForceHTTP1:
		p.SetHTTP1(true)
	default:
		p.SetHTTP1(true)
		p.SetHTTP2(true)
	}
	return p
}

// http2Config has the pings that find a half-open connection. All streams of a
// server share one connection, so without them one lost packet flow silences
// every watch at once until the kernel gives up, a quarter of an hour later.
func http2Config(opts Options) *http.HTTP2Config {
	if opts.ReadIdleTimeout < 0 {
		return nil
	}
	return &http.HTTP2Config{
		SendPingTimeout:  opts.ReadIdleTimeout,
		PingTimeout:      opts.PingTimeout,
		WriteByteTimeout: opts.ReadIdleTimeout + opts.PingTimeout,
	}
}

// dialer opens connections: the caller's way, or TCP with keep-alives that
// find a dead peer about as fast as the HTTP/2 pings do.
func dialer(tc *transport.Config, opts Options) func(ctx context.Context, network, address string) (net.Conn, error) {
	if opts.Dial != nil {
		return opts.Dial
	}
	if tc.DialHolder != nil && tc.DialHolder.Dial != nil {
		return tc.DialHolder.Dial
	}
	d := &net.Dialer{Timeout: dialTimeout}
	if opts.ReadIdleTimeout < 0 {
		d.KeepAlive = -1
		return d.DialContext
	}
	d.KeepAliveConfig = net.KeepAliveConfig{
		Enable:   true,
		Idle:     opts.ReadIdleTimeout,
		Interval: max(opts.PingTimeout/keepAliveProbes, time.Second),
		Count:    keepAliveProbes,
	}
	d.Control = setUserTimeout(opts.ReadIdleTimeout + opts.PingTimeout)
	return d.DialContext
}

// keepAliveProbes is how many keep-alives share PingTimeout: one lost packet
// must not cost a healthy connection.
const keepAliveProbes = 3
