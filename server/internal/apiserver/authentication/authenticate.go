package authentication

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"log/slog"
	"net/http"
	"strings"

	"github.com/gorilla/websocket"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/levelwire/levelwire/server/internal/auth"
)

// Config says which credentials are accepted.
type Config struct {
	// ClientCAs verifies client certificates; nil accepts none.
	ClientCAs *x509.CertPool
	// Tokens authenticates bearer tokens; nil accepts none.
	Tokens auth.TokenAuthenticator
	// Audiences are the names of this server in tokens that are restricted to
	// certain servers.
	Audiences []string
	// Logger receives, at debug level, why a token was refused. Required.
	Logger *slog.Logger
}

// Authenticator authenticates requests. It is safe for concurrent use.
type Authenticator struct {
	config   Config
	verified verifiedCertificates
}

// New returns an Authenticator.
func New(config Config) *Authenticator { return &Authenticator{config: config} }

// NeedsNoCredentials reports whether a path is answered without credentials:
// load balancers and clients ask for it before they can have any.
func NeedsNoCredentials(path string) bool {
	switch path {
	case "/version", "/version/", "/healthz", "/livez", "/readyz":
		return true
	}
	return strings.HasPrefix(path, "/healthz/") || strings.HasPrefix(path, "/livez/") || strings.HasPrefix(path, "/readyz/")
}

// Authenticate returns the user of a request: by client certificate (the common
// name is the user, the organizations are the groups), or by bearer token. A
// request without credentials is anonymous where that is allowed; wrong
// credentials are a 401.
func (a *Authenticator) Authenticate(r *http.Request) (auth.User, error) {
	if user, ok := a.userOfCertificate(r); ok {
		return user, nil
	}
	if header := r.Header.Get("Authorization"); header != "" {
		// The scheme's case does not matter (RFC 9110, section 11.1).
		scheme, token, ok := strings.Cut(strings.TrimSpace(header), " ")
		if !ok || !strings.EqualFold(scheme, "Bearer") {
			return auth.User{}, unauthorized()
		}
		return a.userOfToken(r.Context(), strings.TrimSpace(token))
	}
	if token, ok := webSocketToken(r); ok {
		return a.userOfToken(r.Context(), token)
	}
	if NeedsNoCredentials(r.URL.Path) {
		return auth.User{Name: auth.Anonymous, Groups: []string{auth.Unauthenticated}}, nil
	}
	return auth.User{}, unauthorized()
}

// unauthorized is the whole answer to wrong credentials: any detail would help
// an attacker.
func unauthorized() error { return apierrors.NewUnauthorized("Unauthorized") }

// userOfToken returns the user of a bearer token that is meant for this server.
// The reason of a refusal goes to the log only.
func (a *Authenticator) userOfToken(ctx context.Context, token string) (auth.User, error) {
	identity, err := a.identify(ctx, token, a.config.Audiences)
	if err != nil {
		if !errors.Is(err, auth.ErrUnknownToken) {
			a.config.Logger.Debug("a token was refused", "error", err)
		}
		return auth.User{}, unauthorized()
	}
	return identity.User, nil
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
