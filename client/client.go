package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	clienttransport "k8s.io/client-go/transport"

	"github.com/levelwire/levelwire/client/internal/codec"
	"github.com/levelwire/levelwire/client/internal/gunzip"
	"github.com/levelwire/levelwire/client/internal/transport"
	"github.com/levelwire/levelwire/client/kubeconfig"
	"github.com/levelwire/levelwire/client/scheme"
)

// Client talks to one API server. It is safe for concurrent use, and one is
// enough for a process: all its resources share connections.
type Client struct {
	base      *url.URL // with a path that has no slash at its end
	config    *rest.Config
	http      *http.Client
	transport *transport.Transport
	opts      Options
	counters  counters
	warnings  *warnings

	// headerChanges says that an Authorization header may be another when a request
	// is repeated.
	headerChanges bool

	refusals codec.Refusals // of protobuf

	differenceRefusals differenceRefusals
}

// New makes a client. cfg is client-go's: host, TLS, credentials,
// impersonation, proxy, warning handlers (by default each warning of the server is
// logged once); docs/users/connect.md says of each member what it does, and of the few
// that are not used. Its Timeout, if set, bounds each request with all its attempts, waits
// and the answer's body, but neither watches nor streams; of [Client.Raw] it bounds what comes
// before the answer's body. Its RateLimiter, or QPS above 0 and Burst, limit the requests
// unless Options.RateLimiter is set; there is no limit by default. No connection is opened yet.
//
// Redirects are followed to other paths of the same server only. Any other one, and one
// that would make a write a read, is an error: no server but cfg's gets credentials.
func New(cfg *rest.Config, opts Options) (*Client, error) {
	if cfg == nil {
		return nil, fmt.Errorf("no client configuration: load a kubeconfig or set a host")
	}
	if err := opts.validate(); err != nil {
		return nil, err
	}
	if cfg.Transport != nil {
		return nil, fmt.Errorf("a rest.Config with a Transport of its own is not supported: use Options.WrapTransport or Options.Dial")
	}
	opts = opts.withDefaults()
	if err := opts.disableHTTP2(cfg); err != nil {
		return nil, err
	}
	if opts.ContentType == "" {
		opts.ContentType = JSON
		if cfg.ContentType == string(Protobuf) {
			opts.ContentType = Protobuf
		}
	}
	base, err := baseURL(cfg)
	if err != nil {
		return nil, err
	}
	if opts.RateLimiter == nil {
		opts.RateLimiter = rateLimiterOf(cfg)
		if opts.RateLimiter == nil && cfg.Burst > 0 && cfg.QPS == 0 { // a negative QPS asks for no limit
			opts.Logger.Warn("requests are not limited: Burst of the rest.Config needs QPS", "host", base.Redacted())
		}
	}
	c := &Client{base: base, config: rest.CopyConfig(cfg), opts: opts, warnings: newWarnings(cfg, opts.Logger)}
	if opts.UserAgent != "" {
		c.config.UserAgent = opts.UserAgent
	} else if c.config.UserAgent == "" {
		c.config.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	if err := c.connect(); err != nil {
		return nil, fmt.Errorf("transport for %s: %w", base.Redacted(), err)
	}
	return c, nil
}

// connect makes the Client's transport: client-go's round trippers, which set
// headers, above one that owns the connections. client-go's own shared transports
// are not used because their health checks cannot be set, and because they cut all
// connections when a client certificate is rotated.
func (c *Client) connect() error {
	config, err := c.config.TransportConfig()
	if err != nil {
		return err
	}
	// client-go would leave the certificate out.
	if tls := config.TLS; (tls.CertFile != "" || len(tls.CertData) > 0) != (tls.KeyFile != "" || len(tls.KeyData) > 0) {
		return errors.New("a client certificate needs its key, and a key its certificate: set both of CertFile and KeyFile, or of CertData and KeyData")
	}
	if c.transport, err = c.connections(config); err != nil {
		return err
	}
	c.headerChanges = config.BearerTokenFile != "" || c.config.ExecProvider != nil || c.config.AuthProvider != nil
	if err := transport.UseTokenFile(config, c.opts.Logger); err != nil {
		return err
	}
	var connections http.RoundTripper = c.transport
	if !config.DisableCompression {
		connections = gunzip.Transport(connections)
	}
	rt, err := clienttransport.HTTPWrappersForConfig(config, connections)
	if err != nil {
		return err
	}
	if c.opts.WrapTransport != nil {
		rt = c.opts.WrapTransport(rt)
	}
	c.http = &http.Client{Transport: rt, CheckRedirect: checkRedirect}
	return nil
}

// connections returns what owns the connections: the other Client's transport, or a new one.
func (c *Client) connections(config *clienttransport.Config) (*transport.Transport, error) {
	if other := c.opts.ConnectionsOf; other != nil {
		if other.base.Scheme != c.base.Scheme || other.base.Host != c.base.Host {
			return nil, fmt.Errorf("Options.ConnectionsOf: that client's host is %s", other.base.Redacted())
		}
		theirs, err := other.config.TransportConfig()
		if err != nil {
			return nil, err
		}
		if config.HasCertAuth() || config.HasCertCallback() || theirs.HasCertAuth() || theirs.HasCertCallback() {
			return nil, errors.New("Options.ConnectionsOf: a client certificate or exec plugin belongs to a connection, and both clients would be its user: use bearer tokens or impersonation")
		}
		return other.transport, nil
	}
	dial := c.opts.Dial
	if dial == nil {
		dial = c.config.Dial
	}
	if dial != nil {
		dial = c.containedDial(dial)
	}
	return transport.New(transport.Config{
		Config: config, Dial: dial, ReadIdleTimeout: c.opts.ReadIdleTimeout, PingTimeout: c.opts.PingTimeout,
		ForceHTTP1: c.opts.ForceHTTP1, UnencryptedHTTP2: c.opts.UnencryptedHTTP2, Logger: c.opts.Logger,
	})
}

var errDialPanicked = errors.New("the function Dial panicked")

// dialFunc is what opens connections.
type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// containedDial makes a panic an error: net/http calls dial on goroutines of its own.
func (c *Client) containedDial(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, address string) (conn net.Conn, err error) {
		err = errDialPanicked
		c.contain("Dial", func() { conn, err = dial(ctx, network, address) })
		return conn, err
	}
}

// Stats returns what the client did so far.
func (c *Client) Stats() Stats {
	s := c.counters.stats()
	s.ProtobufRefused = c.refusals.Resources()
	s.CredentialReloads, s.CredentialReloadErrors = c.transport.Reloads()
	return s
}

// Host returns the server's address, for logs.
func (c *Client) Host() string { return c.base.Redacted() }

// Scheme returns what the client knows of Go types: [Options.Scheme], or
// [scheme.Default].
func (c *Client) Scheme() *scheme.Scheme {
	if c == nil || c.opts.Scheme == nil {
		return scheme.Default
	}
	return c.opts.Scheme
}

// RESTConfig returns a copy of the configuration that the Client was made with, for
// libraries that take one.
func (c *Client) RESTConfig() *rest.Config { return rest.CopyConfig(c.config) }

// CloseIdleConnections closes connections that no request uses, neither one of the Client
// nor of another one that shares them. Requests that are running end with their contexts.
func (c *Client) CloseIdleConnections() { c.transport.CloseIdleConnections() }

// Reconnect has requests that begin from now on use new connections, those of another Client
// that shares them too. It is for a program that cannot wait until a dead connection is found,
// which takes Options.ReadIdleTimeout and PingTimeout: over HTTP/2 all requests would hang so
// long. Requests that run, watches above all, go on where they are, and a connection is closed
// after its last one.
func (c *Client) Reconnect() { c.transport.Reconnect() }

// baseURL is where /api and /apis are.
func baseURL(cfg *rest.Config) (*url.URL, error) {
	host := cfg.Host
	if host == "" {
		host = "localhost"
	}
	secure := cfg.CAFile != "" || len(cfg.CAData) > 0 || cfg.CertFile != "" || len(cfg.CertData) > 0 || cfg.Insecure
	base, _, err := rest.DefaultServerURL(host, "", schema.GroupVersion{}, secure)
	if err != nil {
		return nil, fmt.Errorf("server address: %w", err)
	}
	base.Path = strings.TrimRight(base.Path, "/")
	return base, nil
}

// FromKubeconfig makes a client for the current context of a kubeconfig file. If path
// is empty, it looks where kubectl does: in the files that the environment variable
// KUBECONFIG lists, which are merged, or else in ~/.kube/config, and, if there is none
// of these, in the pod for its service account. So a program that has a flag
// -kubeconfig, empty by default, runs in a cluster and outside.
//
// Exec plugins, client certificates, proxies and impersonation are what the file says.
// It is [Load] with a file only, and has its errors.
func FromKubeconfig(path string, opts Options) (*Client, error) {
	c, _, err := Load(kubeconfig.Options{File: path}, opts)
	return c, err
}

// Load makes a client by the loading rules of kubectl, with a context, a namespace and
// a user that replace those of the files. It returns the namespace of the context, or
// of the pod; "default" if neither says one. No request is sent, and no exec plugin
// runs yet. The error matches kubeconfig.ErrNone if there is no configuration anywhere. To
// change the configuration, use New with what kubeconfig.Config returns.
func Load(from kubeconfig.Options, opts Options) (c *Client, namespace string, err error) {
	config, namespace, err := kubeconfig.Config(from)
	if err != nil {
		return nil, "", err
	}
	c, err = New(config, opts)
	return c, namespace, err
}
