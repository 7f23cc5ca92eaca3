// Package transport opens a client's connections: with client-go's configuration of
// TLS and credentials, probes that find half-open connections, and a change to new
// connections when certificates or CAs are rotated.
package transport

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"time"

	clienttransport "k8s.io/client-go/transport"
)

// Config says how a Transport connects.
type Config struct {
	// Config is client-go's: TLS, proxy, compression. Its DialHolder is not used.
	Config *clienttransport.Config
	// Dial opens connections; nil: TCP with keep-alives.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	ReadIdleTimeout  time.Duration // negative: no probes
	PingTimeout      time.Duration
	ForceHTTP1       bool
	UnencryptedHTTP2 bool
	Logger           *slog.Logger // not nil
}

const (
	dialTimeout         = 30 * time.Second
	tlsHandshakeTimeout = 10 * time.Second
	idleConnTimeout     = 90 * time.Second
	idleConnsPerHost    = 25
)

// newHTTP builds the transport of one generation of credentials.
func (c Config) newHTTP(creds *credentials) *http.Transport {
	proxy := c.Config.Proxy
	if proxy == nil {
		proxy = http.ProxyFromEnvironment
	}
	if c.ForceHTTP1 { // the server must not choose what is not spoken
		creds.tls.NextProtos = slices.DeleteFunc(slices.Clone(creds.tls.NextProtos), func(p string) bool { return p == "h2" })
	}
	return &http.Transport{
		Proxy:               proxy,
		DialContext:         c.dialer(),
		TLSClientConfig:     creds.tls,
		TLSHandshakeTimeout: tlsHandshakeTimeout,
		MaxIdleConnsPerHost: idleConnsPerHost,
		IdleConnTimeout:     idleConnTimeout,
		DisableCompression:  true, // gunzip asks for it
		Protocols:           c.protocols(),
		HTTP2:               c.http2(),
	}
}

// protocols are the versions of HTTP that may be spoken.
func (c Config) protocols() *http.Protocols {
	p := new(http.Protocols)
	switch {
	case c.UnencryptedHTTP2:
		p.SetHTTP2(true)
		p.SetUnencryptedHTTP2(true)
	case c.ForceHTTP1:
		p.SetHTTP1(true)
	default:
		p.SetHTTP1(true)
		p.SetHTTP2(true)
	}
	return p
}

// http2 has the pings that find a half-open connection. All streams of a server
// share one connection, so without pings one lost packet flow silences every watch
// at once, until the kernel gives up a quarter of an hour later.
func (c Config) http2() *http.HTTP2Config {
	if c.ReadIdleTimeout < 0 {
		return nil
	}
	return &http.HTTP2Config{
		SendPingTimeout:  c.ReadIdleTimeout,
		PingTimeout:      c.PingTimeout,
		WriteByteTimeout: c.ReadIdleTimeout + c.PingTimeout,
	}
}

// dialer returns Config.Dial, or opens TCP connections with keep-alives that find a
// dead peer about as fast as the HTTP/2 pings do.
func (c Config) dialer() func(ctx context.Context, network, address string) (net.Conn, error) {
	if c.Dial != nil {
		return c.Dial
	}
	d := &net.Dialer{Timeout: dialTimeout}
	if c.ReadIdleTimeout < 0 {
		d.KeepAlive = -1
		return d.DialContext
	}
	d.KeepAliveConfig = net.KeepAliveConfig{
		Enable:   true,
		Idle:     c.ReadIdleTimeout,
		Interval: max(c.PingTimeout/keepAliveProbes, time.Second),
		Count:    keepAliveProbes,
	}
	d.Control = setUserTimeout(c.ReadIdleTimeout + c.PingTimeout)
	return d.DialContext
}

// keepAliveProbes is how many keep-alives share PingTimeout: one lost packet
// must not cost a healthy connection.
const keepAliveProbes = 3
