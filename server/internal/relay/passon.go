package relay

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/http/httpguts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/server/internal/aggregation"
	"github.com/levelwire/levelwire/server/internal/auth"
)

// Administrator is the user of admin.kubeconfig. Requests of that user are passed on with
// the relay's own credentials, those of all others by impersonation. A Levelwire upstream
// calls its administrator otherwise: that one has rights of its own there.
const Administrator = "levelwire-relay-admin"

// baseURL is where the upstream is.
func (r *Relay) baseURL() (*url.URL, error) {
	base, _, err := rest.DefaultServerUrlFor(r.opts.Config)
	return base, err
}

// connect makes the connections of requests that are passed on. Each kind of request has
// connections of its own, so that none waits for those of another.
func (r *Relay) connect() error {
	for kind := range r.transports {
		opts := client.Options{Logger: r.opts.Logger, ForceHTTP1: aggregation.Kind(kind) == aggregation.Upgrade}
		opts.WrapTransport = func(complete http.RoundTripper) http.RoundTripper {
			r.transports[kind] = complete
			return complete
		}
		if _, err := client.New(r.opts.Config, opts); err != nil {
			return err
		}
	}
	return nil
}

// Unavailable implements apiserver.Upstream: whether the upstream answers is seen when it
// is asked.
func (r *Relay) Unavailable() error { return nil }

// RoundTripper implements apiserver.Upstream.
func (r *Relay) RoundTripper(kind aggregation.Kind) http.RoundTripper { return passOn{r, kind} }

type passOn struct {
	relay *Relay
	kind  aggregation.Kind
}

// RoundTrip implements http.RoundTripper.
func (p passOn) RoundTrip(req *http.Request) (*http.Response, error) {
	out := req.Clone(req.Context())
	base := p.relay.base
	out.URL.Scheme, out.URL.Host = base.Scheme, base.Host
	if prefix := base.Path; len(prefix) > 1 {
		out.URL.Path = prefix + out.URL.Path
	}
	p.relay.counts.passedOn.Add(1)
	response, err := p.relay.transports[p.kind].RoundTrip(out)
	if err != nil && req.Context().Err() == nil {
		return nil, apierrors.NewServiceUnavailable("the upstream of the relay does not answer: " + err.Error())
	}
	return response, err
}

// SetUser implements apiserver.Upstream.
func (r *Relay) SetUser(req *http.Request, user auth.User) {
	if isAdministrator(user) {
		return
	}
	req.Header.Set(transport.ImpersonateUserHeader, user.Name)
	if user.UID != "" {
		req.Header.Set(transport.ImpersonateUIDHeader, user.UID)
	}
	for _, group := range user.Groups {
		if group != auth.Authenticated && group != auth.Unauthenticated { // which the upstream adds itself
			req.Header.Add(transport.ImpersonateGroupHeader, group)
		}
	}
	for key, values := range user.Extra {
		for _, value := range values {
			req.Header.Add(transport.ImpersonateUserExtraHeaderPrefix+escapeHeaderKey(key), value)
		}
	}
}

// escapeHeaderKey makes a part of a header's name of any text, as client-go does: what
// cannot be in such a name is percent-encoded.
func escapeHeaderKey(key string) string {
	var b strings.Builder
	for i := range len(key) {
		if c := key[i]; c != '%' && httpguts.ValidHeaderFieldName(string(rune(c))) && c < utf8.RuneSelf {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// isAdministrator reports whether a user is that of admin.kubeconfig.
func isAdministrator(user auth.User) bool {
	return user.Name == Administrator && slices.Contains(user.Groups, auth.Masters)
}
