package transport

import (
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	clienttransport "k8s.io/client-go/transport"
)

// UseTokenFile makes config's bearer token that in its token file: read at least
// every minute, and again after a 401, which client-go's own wrapper does not do. It
// does nothing if there is no token file. Beside a user name the file would not be used:
// that is an error, as client-go's is.
func UseTokenFile(config *clienttransport.Config) error {
	if config.BearerTokenFile == "" {
		return nil
	}
	if config.HasBasicAuth() {
		return errors.New("username/password or bearer token file may be set, but not both")
	}
	source := clienttransport.NewCachedFileTokenSource(config.BearerTokenFile)
	first := config.BearerToken
	if first == "" {
		token, err := source.Token()
		if err != nil {
			return err
		}
		first = token.AccessToken
	}
	last := new(atomic.Pointer[string])
	last.Store(&first)
	config.BearerToken, config.BearerTokenFile = "", ""
	config.Wrap(func(base http.RoundTripper) http.RoundTripper {
		return &tokenFileTransport{base: base, source: source, last: last}
	})
	return nil
}

// tokenFileTransport sets the Authorization header unless there is one.
type tokenFileTransport struct {
	base   http.RoundTripper
	source clienttransport.ResettableTokenSource
	last   *atomic.Pointer[string] // used while the file cannot be read
}

func (t *tokenFileTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Header.Get("Authorization") != "" {
		return t.base.RoundTrip(req)
	}
	if token, err := t.source.Token(); err == nil {
		t.last.Store(&token.AccessToken)
	}
	started := time.Now()
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "Bearer "+*t.last.Load())
	resp, err := t.base.RoundTrip(req)
	if err == nil && resp.StatusCode == http.StatusUnauthorized {
		t.source.ResetTokenOlderThan(started)
	}
	return resp, err
}

// WrappedRoundTripper lets client-go find what is below.
func (t *tokenFileTransport) WrappedRoundTripper() http.RoundTripper { return t.base }
