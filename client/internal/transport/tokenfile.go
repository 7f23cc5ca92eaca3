package transport

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	clienttransport "k8s.io/client-go/transport"
)

// UseTokenFile makes config's bearer token that in its token file: read at least
// every minute, and again after a 401, which client-go's own wrapper does not do. It
// does nothing if there is no token file. Beside a user name the file would not be used:
// that is an error, as client-go's is.
func UseTokenFile(config *clienttransport.Config, log *slog.Logger) error {
	if config.BearerTokenFile == "" {
		return nil
	}
	if config.HasBasicAuth() {
		return errors.New("username/password or bearer token file may be set, but not both")
	}
	file := &tokenFile{path: config.BearerTokenFile, source: clienttransport.NewCachedFileTokenSource(config.BearerTokenFile), log: log}
	first := strings.TrimSpace(config.BearerToken) // in a pod, client-go has put the file's contents there
	if first == "" {
		var err error
		if first, err = file.read(); err != nil {
			return err
		}
	}
	file.last.Store(&first)
	config.BearerToken, config.BearerTokenFile = "", ""
	config.Wrap(func(base http.RoundTripper) http.RoundTripper {
		return &tokenFileTransport{base: base, file: file}
	})
	return nil
}

// tokenFile is a file with a token that is replaced before it expires.
type tokenFile struct {
	path    string
	source  clienttransport.ResettableTokenSource
	log     *slog.Logger
	last    atomic.Pointer[string] // used while the file has none that can be sent
	failing atomic.Bool            // the file has none, which was logged
}

// token returns the file's token, or the last one if there is none that can be sent.
func (f *tokenFile) token() string {
	token, err := f.read()
	if err != nil {
		if !f.failing.Swap(true) {
			f.log.Warn("the token file cannot be used; the last token stays in use", "error", err)
		}
		return *f.last.Load()
	}
	f.failing.Store(false)
	f.last.Store(&token)
	return token
}

// read returns the file's token, without the white space around it. White space or a control
// character within it cannot be sent, or would never be accepted: the file is half of another
// one, or has more than a token. It is then read again at the next request.
func (f *tokenFile) read() (string, error) {
	found, err := f.source.Token()
	if err != nil {
		return "", err
	}
	token := found.AccessToken
	if at := strings.IndexFunc(token, func(r rune) bool { return r <= ' ' || r == 0x7f }); at >= 0 {
		f.source.ResetTokenOlderThan(time.Now().Add(1))
		return "", fmt.Errorf("token file %q: there is %q within the token: the file must have one token, and nothing else", f.path, token[at])
	}
	return token, nil
}

// tokenFileTransport sets the Authorization header unless there is one.
type tokenFileTransport struct {
	base http.RoundTripper
	file *tokenFile
}

func (t *tokenFileTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Header.Get("Authorization") != "" {
		return t.base.RoundTrip(req)
	}
	token, started := t.file.token(), time.Now()
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := t.base.RoundTrip(req)
	if err == nil && resp.StatusCode == http.StatusUnauthorized {
		t.file.source.ResetTokenOlderThan(started)
	}
	return resp, err
}

// WrappedRoundTripper lets client-go find what is below.
func (t *tokenFileTransport) WrappedRoundTripper() http.RoundTripper { return t.base }
