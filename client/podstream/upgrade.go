package podstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/levelwire/levelwire/client"
)

// upgrade is the change of a connection to another protocol, in one call or, if the
// server refuses the first, two. client-go's packages keep only the text of a
// refusal; upgrade keeps it as an error.
type upgrade struct {
	ctx context.Context // of the call; client-go's dialers have no argument for it
	err error           // of the last attempt; only for the goroutine that connects, and then for its caller
}

// config returns the Client's configuration, for requests that upgrade.
func (u *upgrade) config(c *client.Client) *rest.Config {
	cfg := c.RESTConfig()
	cfg.Wrap(func(base http.RoundTripper) http.RoundTripper { return &upgradeTripper{u, base} })
	return cfg
}

type upgradeTripper struct {
	upgrade *upgrade
	base    http.RoundTripper
}

func (t *upgradeTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.base.RoundTrip(req.WithContext(t.upgrade.ctx))
	t.upgrade.err = err
	var failure *httpstream.UpgradeFailureError
	switch {
	case errors.As(err, &failure) && failure.Cause != nil:
		t.upgrade.err = failure.Cause // it has no Unwrap
	case err == nil && resp.StatusCode >= http.StatusBadRequest:
		t.upgrade.err = refusal(resp)
	case err == nil && resp.StatusCode >= http.StatusMultipleChoices:
		// client-go would follow a redirect, with credentials, to whatever server.
		resp.Request = req // SPDY's has none
		t.upgrade.err = refusal(resp)
		return nil, t.upgrade.err
	}
	return resp, err
}

// maxRefusal bounds what is read of a refusal.
const maxRefusal = 64 << 10

// refusal returns the error in a response, which can still be read afterwards.
func refusal(resp *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxRefusal))
	_ = resp.Body.Close() // the status line is what counts
	resp.Body = io.NopCloser(bytes.NewReader(body))
	if err != nil {
		return err
	}
	return client.ResponseError(resp, body)
}

// needsSPDY reports whether a server, or a proxy before it, does not upgrade to
// WebSocket. A refusal may be that, too: older roles allow to create an exec (SPDY's
// POST) but not to get it (WebSocket's GET).
func needsSPDY(err error) bool {
	return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
}

// failed returns what ended a call: the end of its context, the refusal to upgrade,
// or err.
func (u *upgrade) failed(what, namespace, pod string, err error) error {
	if u.err != nil {
		err = u.err
	}
	cause := context.Cause(u.ctx)
	if deadline, ok := u.ctx.Deadline(); cause == nil && ok && !time.Now().Before(deadline) {
		cause = context.DeadlineExceeded // the connection's deadline is a moment earlier
	}
	switch {
	case err == nil: // client-go has none for the end of a context
		err = cause
	case cause != nil && !errors.Is(err, cause):
		err = fmt.Errorf("%w (%w)", cause, err)
	}
	return fmt.Errorf("%s pod %s/%s: %w", what, namespace, pod, err)
}
