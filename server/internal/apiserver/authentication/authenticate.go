package authentication

import (
	"context"
	"encoding/base64"
	"errors"
	"iter"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/levelwire/levelwire/server/internal/auth"
)

// Config says which credentials are accepted.
type Config struct {
	// ClientCAs verifies client certificates; nil accepts none.
	ClientCAs *Authorities
	// RequestHeader accepts users that a proxy names; nil accepts none.
	RequestHeader *RequestHeader
	// Tokens authenticates bearer tokens; nil accepts none.
	Tokens auth.TokenAuthenticator
	// Audiences are the names of this server in tokens that are restricted to
	// certain servers.
	Audiences []string
	// Anonymous reports whether a path is answered without credentials, as the user
	// system:anonymous, as far as that user may. Default NeedsNoCredentials.
	Anonymous func(path string) bool
	// Logger receives, at debug level, why a token was refused. Required.
	Logger *slog.Logger
}

// Authenticator authenticates requests. It is safe for concurrent use.
type Authenticator struct {
	config  Config
	pool    atomic.Pointer[acceptablePool]
	metrics metrics
}

// New returns an Authenticator.
func New(config Config) *Authenticator {
	if config.Anonymous == nil {
		config.Anonymous = NeedsNoCredentials
	}
	return &Authenticator{config: config, metrics: newMetrics()}
}

// NeedsNoCredentials reports whether a path is answered without credentials:
// load balancers and clients ask for it before they can have any.
func NeedsNoCredentials(path string) bool {
	switch path {
	case "/version", "/version/", "/healthz", "/livez", "/readyz":
		return true
	}
	return strings.HasPrefix(path, "/healthz/") || strings.HasPrefix(path, "/livez/") || strings.HasPrefix(path, "/readyz/")
}

// Authenticate returns the user of a request: by the headers of a proxy, by client
// certificate (the common name is the user, the organizations are the groups), or by
// bearer token. As in Kubernetes, the first that is accepted counts, whatever is wrong with
// the others. A request without credentials is anonymous where that is allowed; wrong
// credentials are a 401.
func (a *Authenticator) Authenticate(r *http.Request) (auth.User, error) {
	begin := time.Now()
	user, result := a.authenticate(r)
	a.metrics.count(result, user.Name, time.Since(begin))
	if result != succeeded {
		return auth.User{}, unauthorized()
	}
	return user, nil
}

func (a *Authenticator) authenticate(r *http.Request) (auth.User, result) {
	if user, ok := a.config.RequestHeader.user(r, time.Now()); ok {
		return user, succeeded
	}
	user, ofCertificate := a.userOfCertificate(r)
	if ofCertificate == succeeded {
		return user, succeeded
	}
	wrong, sent := ofCertificate == refused, false
	for token := range tokensOf(r) {
		user, ofToken := a.userOfToken(r.Context(), token)
		if ofToken == succeeded {
			return user, succeeded
		}
		wrong = wrong || ofToken == refused
		sent = true
	}
	switch {
	case wrong:
		return auth.User{}, refused // wrong credentials are not the same as none
	case sent:
		return auth.User{}, unknown
	}
	if a.config.Anonymous(r.URL.Path) {
		return auth.User{Name: auth.Anonymous, Groups: []string{auth.Unauthenticated}}, succeeded
	}
	return auth.User{}, unknown
}

// tokensOf yields the bearer tokens of a request.
func tokensOf(r *http.Request) iter.Seq[string] {
	return func(yield func(string) bool) {
		if token, _ := bearerToken(r.Header.Get("Authorization")); token != "" && !yield(token) {
			return
		}
		if token, ok := webSocketToken(r); ok {
			yield(token)
		}
	}
}

// bearerToken returns the token of a header Authorization: "" if that is of another scheme, or has
// no token, and so counts as if it were not there, as in Kubernetes. spaced says that it has none
// because of a further space before it.
func bearerToken(header string) (token string, spaced bool) {
	// The scheme's case does not matter (RFC 9110, section 11.1).
	scheme, rest, ok := strings.Cut(strings.TrimSpace(header), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return "", false
	}
	token, _, more := strings.Cut(rest, " ")
	return token, token == "" && more
}

// Warning returns what the client should be told about a token that is ignored, in Kubernetes'
// words; "" if there is none.
func Warning(r *http.Request) string {
	if _, spaced := bearerToken(r.Header.Get("Authorization")); spaced {
		return "the provided Authorization header contains extra space before the bearer token, and is ignored"
	}
	return ""
}

// unauthorized is the whole answer to wrong credentials: any detail would help
// an attacker.
func unauthorized() error { return apierrors.NewUnauthorized("Unauthorized") }

// userOfToken returns the user of a bearer token that is meant for this server.
// The reason of a refusal goes to the log only.
func (a *Authenticator) userOfToken(ctx context.Context, token string) (auth.User, result) {
	identity, err := a.identify(ctx, token, a.config.Audiences)
	switch {
	case err == nil:
		return identity.User, succeeded
	case errors.Is(err, auth.ErrUnknownToken):
		return auth.User{}, unknown
	}
	a.config.Logger.Debug("a token was refused", "error", err)
	return auth.User{}, refused
}

// identify authenticates a token for any of the audiences. The user is in the
// group of authenticated users.
func (a *Authenticator) identify(ctx context.Context, token string, audiences []string) (auth.Identity, error) {
	if a.config.Tokens == nil || token == "" {
		return auth.Identity{}, auth.ErrUnknownToken
	}
	identity, err := a.config.Tokens.AuthenticateToken(ctx, token, audiences)
	identity.User = identity.User.AsAuthenticated()
	return identity, err
}

// webSocketTokenPrefix begins a subprotocol that is a bearer token: browsers
// cannot set headers. The server never selects it.
const webSocketTokenPrefix = "base64url.bearer.authorization.k8s.io."

// webSocketToken returns the bearer token among the subprotocols of a WebSocket
// request.
func webSocketToken(r *http.Request) (string, bool) {
	if !websocket.IsWebSocketUpgrade(r) {
		return "", false
	}
	for _, protocol := range websocket.Subprotocols(r) {
		if encoded, ok := strings.CutPrefix(protocol, webSocketTokenPrefix); ok {
			token, err := base64.RawURLEncoding.DecodeString(encoded)
			return string(token), err == nil
		}
	}
	return "", false
}

// RemoveWebSocketToken removes bearer tokens from the subprotocols of a WebSocket request,
// for another server that must not learn them.
func RemoveWebSocketToken(header http.Header) {
	const name = "Sec-Websocket-Protocol"
	var kept []string
	for _, protocol := range strings.Split(strings.Join(header.Values(name), ","), ",") {
		if protocol = strings.TrimSpace(protocol); protocol != "" && !strings.HasPrefix(protocol, webSocketTokenPrefix) {
			kept = append(kept, protocol)
		}
	}
	if kept == nil {
		header.Del(name)
		return
	}
	header.Set(name, strings.Join(kept, ", "))
}
