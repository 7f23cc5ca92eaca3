package client

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Client talks to one API server. It is safe for concurrent use, and one is
// enough for a process: all its resources share connections.
type Client struct {
	base      *url.URL // with a path that has no slash at its end
	http      *http.Client
	transport *http.Transport
	opts      Options
	counters  counters

	// jsonOnly is set once the server has refused protobuf.
	jsonOnly atomic.Bool
	// noDifference is set once the server has not known what a difference is.
	noDifference atomic.Bool
}

// New makes a client. cfg is client-go's: host, TLS, credentials,
// impersonation, proxy. Its QPS, Burst, RateLimiter and Timeout are not used;
// see the package comment. No connection is opened yet.
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
	rt, transport, err := newTransport(cfg, opts)
	if err != nil {
		return nil, fmt.Errorf("transport for %s: %w", base.Redacted(), err)
	}
	return &Client{base: base, transport: transport, http: &http.Client{Transport: rt}, opts: opts}, nil
}

// FromKubeconfig makes a client for the current context of a kubeconfig file.
func FromKubeconfig(path string, opts Options) (*Client, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", path, err)
	}
	return New(cfg, opts)
}

// Stats returns what the client did so far.
func (c *Client) Stats() Stats { return c.counters.stats() }

// Host returns the server's address, for logs.
func (c *Client) Host() string { return c.base.Redacted() }

// CloseIdleConnections closes connections that no request uses. Requests that
// are running end with their contexts.
func (c *Client) CloseIdleConnections() { c.transport.CloseIdleConnections() }

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
