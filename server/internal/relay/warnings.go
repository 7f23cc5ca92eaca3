package relay

import (
	"context"
	"net/http"
	"sync/atomic"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// An API server warns everybody who reads a kind that is deprecated. The relay passes that on with
// what it answers from its cache: the warnings of the upstream's last list or watch of the resource.

// warnings are those texts. The zero value has none, and is safe for concurrent use.
type warnings struct{ texts atomic.Pointer[[]string] }

// warningsKey is the key of a context whose request's answer says what the upstream warns of: the
// value is a *warnings.
type warningsKey struct{}

// noting returns a context whose requests note what the upstream warns of.
func (w *warnings) noting(ctx context.Context) context.Context {
	return context.WithValue(ctx, warningsKey{}, w)
}

// latest returns the texts, which nobody changes.
func (w *warnings) latest() []string {
	if texts := w.texts.Load(); texts != nil {
		return *texts
	}
	return nil
}

// notesWarnings notes the warnings of answers that are no errors.
type notesWarnings struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (n notesWarnings) RoundTrip(req *http.Request) (*http.Response, error) {
	response, err := n.next.RoundTrip(req)
	noted, ok := req.Context().Value(warningsKey{}).(*warnings)
	if err != nil || !ok || response.StatusCode != http.StatusOK {
		return response, err
	}
	parsed, _ := utilnet.ParseWarningHeaders(response.Header["Warning"]) // the errors are about those left out
	var texts []string
	for _, warning := range parsed {
		texts = append(texts, warning.Text)
	}
	noted.texts.Store(&texts)
	return response, nil
}

// CloseIdleConnections closes those of the round tripper below, which http.Client looks for.
func (n notesWarnings) CloseIdleConnections() {
	if c, ok := n.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
