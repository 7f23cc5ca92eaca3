// Package webhookclient calls the webhooks of users: admission and conversion webhooks,
// which are named by a URL or by a Service of the cluster. It bounds what a webhook that
// hangs, redirects, or answers without end can cost.
package webhookclient

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/propagation"

	"github.com/levelwire/levelwire/server/internal/runqueue"
)

const (
	idleTimeout    = time.Minute
	maxConnections = 32 // of one client; HTTP/2 needs one
	maxQuotedBytes = 500
)

// Resolve returns the address, host:port, at which a Service is reached.
type Resolve func(ctx context.Context, namespace, name string, port int32) (string, error)

// Service names a port of a Service.
type Service struct {
	Namespace, Name, Path string
	Port                  int32
}

// Target says where a webhook is. Exactly one of URL and Service is set.
type Target struct {
	URL     string
	Service *Service
	// CABundle are the authorities of its certificate, in PEM; empty: the system's.
	CABundle []byte
	// Credentials are the users as one of which the webhook is called; nil: without credentials.
	Credentials *Credentials
}

// Client calls one webhook. Its connections are kept. It is safe for concurrent use.
type Client struct {
	url       string
	http      *http.Client
	transport http.RoundTripper // the innermost
}

// New returns a Client, which calls nothing yet. resolve may be nil: a Service is then
// reached by its name in the cluster's DNS. The error says that the CABundle holds no
// certificate, or that a token cannot be read.
func New(target Target, resolve Resolve) (*Client, error) {
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, IdleConnTimeout: idleTimeout, MaxConnsPerHost: maxConnections,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
	}
	if ca := bytes.TrimSpace(target.CABundle); len(ca) > 0 {
		transport.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !transport.TLSClientConfig.RootCAs.AppendCertsFromPEM(ca) {
			return nil, errors.New("its caBundle holds no certificate")
		}
	}
	c := &Client{url: cleanPath(target.URL), transport: transport}
	if target.Service != nil {
		c.reach(transport, target.Service, resolve)
	}
	authenticated, err := authenticate(transport, target.Credentials.userFor(hostPort(c.url)))
	if err != nil {
		return nil, err
	}
	c.http = &http.Client{Transport: authenticated, CheckRedirect: stay}
	return c, nil
}

// WithTransport returns a Client that calls a URL over a transport of its own.
func WithTransport(url string, transport http.RoundTripper) *Client {
	return &Client{url: url, http: &http.Client{Transport: transport, CheckRedirect: stay}, transport: transport}
}

// URL is where the webhook is, by the name that its certificate must have.
func (c *Client) URL() string { return c.url }

// hostPort returns where a URL leads, with the port.
func hostPort(target string) string {
	u, err := url.Parse(target)
	if err != nil {
		return ""
	}
	if u.Port() != "" {
		return u.Host
	}
	return net.JoinHostPort(u.Hostname(), "443")
}

// cleanPath removes empty segments from a URL's path, as kube-apiserver does: envtest writes
// "https://host//path", which Go's ServeMux would answer with a redirection.
func cleanPath(target string) string {
	u, err := url.Parse(target)
	if err != nil || !strings.Contains(u.Path, "//") {
		return target
	}
	slash := strings.HasSuffix(u.Path, "/")
	u.Path, u.RawPath = path.Clean(u.Path), ""
	if slash && u.Path != "/" {
		u.Path += "/"
	}
	return u.String()
}

// stay does not follow redirections, so that a webhook cannot choose which address
// the server calls next. The answer then counts as an error.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// reach makes the client call a Service. Its certificate must be for the Service's name.
func (c *Client) reach(transport *http.Transport, s *Service, resolve Resolve) {
	u := url.URL{Scheme: "https", Host: net.JoinHostPort(s.Name+"."+s.Namespace+".svc", strconv.Itoa(int(s.Port))), Path: s.Path}
	if u.Path == "" {
		u.Path = "/"
	}
	c.url = u.String()
	if resolve == nil {
		return
	}
	transport.Proxy = nil
	transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		address, err := resolve(ctx, s.Namespace, s.Name, s.Port)
		if err != nil {
			return nil, &ResolveError{err}
		}
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
}

// Close closes idle connections.
func (c *Client) Close() {
	(&http.Client{Transport: c.transport}).CloseIdleConnections()
}

// Post sends a JSON document and returns an answer of at most limit bytes. query is added
// to the URL's. An error is an *AnswerError if the webhook itself has answered.
func (c *Client) Post(ctx context.Context, query url.Values, body []byte, limit int) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if len(query) > 0 {
		all := request.URL.Query()
		for name, values := range query {
			all[name] = values
		}
		request.URL.RawQuery = all.Encode()
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(request.Header)) // nothing, unless the request is traced
	task := runqueue.FromContext(ctx)
	task.Block() // until the answer is there
	defer task.Unblock()
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(response.Body, int64(limit)+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read its answer: %w", err)
	case len(answer) > limit:
		return nil, &AnswerError{fmt.Sprintf("its answer has more than %d bytes", limit)}
	case isGatewayError(response.StatusCode):
		return nil, fmt.Errorf("it answered %s: %q", response.Status, answer[:min(len(answer), maxQuotedBytes)])
	case response.StatusCode != http.StatusOK:
		return nil, &AnswerError{fmt.Sprintf("it answered %s: %q", response.Status, answer[:min(len(answer), maxQuotedBytes)])}
	}
	return answer, nil
}

// isGatewayError reports whether a proxy answered in the webhook's place.
func isGatewayError(code int) bool {
	return code == http.StatusBadGateway || code == http.StatusServiceUnavailable || code == http.StatusGatewayTimeout
}

// AnswerError is an answer that is of no use.
type AnswerError struct{ Message string }

// Error implements error.
func (e *AnswerError) Error() string { return e.Message }

// ResolveError means that the webhook's Service has no address. To find that out
// costs no call.
type ResolveError struct{ Cause error }

// Error implements error.
func (e *ResolveError) Error() string { return e.Cause.Error() }

// Unwrap returns the cause.
func (e *ResolveError) Unwrap() error { return e.Cause }
