package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// RawRequest is a request for a path of the server that is no object of a resource:
// /version, /readyz, /metrics, /openapi/v3, what is behind a proxy subresource.
type RawRequest struct {
	// Method defaults to GET.
	Method string
	// Path begins with a slash, is below the server's address, and may have a query:
	// "/healthz?verbose". What is special in it must be escaped as in a URL.
	Path string
	// Header is added to what the client sends: Accept, Content-Type, If-None-Match.
	// Without an Accept everything is accepted.
	Header http.Header
	// Body is sent as it is; nil is none.
	Body []byte
}

// Raw sends a request and returns the answer, whatever its status: a 404, a 500 or a
// redirect to another server is no error here, [ResponseError] makes one of it. An error is returned if there is no answer, or if the path cannot be used.
// The client's credentials, rate limiter, retries, statistics and Observer (as verb raw)
// apply as for other requests.
//
// The caller must close the answer's Body. It ends with ctx.
func (c *Client) Raw(ctx context.Context, r RawRequest) (*http.Response, error) {
	u, err := url.Parse(r.Path)
	if err != nil || !strings.HasPrefix(r.Path, "/") || u.Host != "" || u.Fragment != "" {
		return nil, fmt.Errorf("path %q: it must begin with one slash, be escaped, and have no host", r.Path)
	}
	q := &request{verb: "raw", method: r.Method, path: u.Path, escaped: u.EscapedPath(), rawQuery: u.RawQuery,
		header: r.Header, raw: r.Body, anyStatus: true, name: r.Path}
	if q.method == "" {
		q.method = http.MethodGet
	}
	ans, err := c.do(ctx, q)
	if err != nil {
		return nil, err
	}
	ans.resp.Body, ans.body = rawBody{ans}, ans.resp.Body
	return ans.resp, nil
}

// rawBody is the body of an answer that counts and reports as the others do.
type rawBody struct{ answer *answer }

// Read implements io.Reader.
func (b rawBody) Read(p []byte) (int, error) { return b.answer.Read(p) }

// Close implements io.Closer.
func (b rawBody) Close() error {
	b.answer.close()
	return nil
}
