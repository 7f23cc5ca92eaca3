package apiserver

import (
	"crypto/x509"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/levelwire/levelwire/server/internal/auth"
)

// openToAll says whether a path is answered without credentials: what load
// balancers and clients ask before they can have any.
func openToAll(path string) bool {
	switch path {
	case "/version", "/version/", "/healthz", "/livez", "/readyz":
		return true
	}
	return strings.HasPrefix(path, "/healthz/") || strings.HasPrefix(path, "/livez/") || strings.HasPrefix(path, "/readyz/")
}

// authenticate returns the user of a request: by client certificate (common
// name is the user, organizations are the groups), or by bearer token. A
// request without credentials is anonymous; wrong credentials are an error.
func (s *Server) authenticate(r *http.Request) (auth.User, error) {
	if user, ok := s.userOfCertificate(r); ok {
		return user, nil
	}
	if header := r.Header.Get("Authorization"); header != "" {
		// The scheme's case does not matter (RFC 9110, section 11.1).
		scheme, token, ok := strings.Cut(strings.TrimSpace(header), " ")
		if !ok || !strings.EqualFold(scheme, "Bearer") {
			return auth.User{}, unauthorized()
		}
		return s.userOfToken(r, strings.TrimSpace(token))
	}
	if token, ok := tokenOfSocket(r); ok {
		return s.userOfToken(r, token)
	}
	if openToAll(r.URL.Path) {
		return auth.User{Name: auth.Anonymous, Groups: []string{auth.Unauthenticated}}, nil
	}
	return auth.User{}, unauthorized()
}

// unauthorized is all that somebody with wrong credentials is told.
func unauthorized() error { return apierrors.NewUnauthorized("Unauthorized") }

// userOfCertificate verifies here rather than in the handshake, so that a
// certificate of a strange authority is a 401 that clients can read instead of
// a broken connection.
func (s *Server) userOfCertificate(r *http.Request) (auth.User, bool) {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 || s.config.ClientCAs == nil {
		return auth.User{}, false
	}
	leaf := r.TLS.PeerCertificates[0]
	if user, ok := s.verified.lookup(leaf, time.Now()); ok {
		return user, true
	}
	intermediates := x509.NewCertPool()
	for _, c := range r.TLS.PeerCertificates[1:] {
		intermediates.AddCert(c)
	}
	_, err := leaf.Verify(x509.VerifyOptions{
		Roots: s.config.ClientCAs, Intermediates: intermediates,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil || leaf.Subject.CommonName == "" {
		return auth.User{}, false
	}
	user := auth.User{Name: leaf.Subject.CommonName, Groups: slices.Clone(leaf.Subject.Organization)}.AsAuthenticated()
	s.verified.add(leaf, user)
	return user, true
}

// userOfToken returns whom a bearer token that is for this server stands for.
// Why another is refused is for the log: it would help those who guess.
func (s *Server) userOfToken(r *http.Request, token string) (auth.User, error) {
	identity, err := s.identify(r, token, s.config.Audiences)
	if err != nil {
		if !errors.Is(err, auth.ErrUnknownToken) {
			s.config.Logger.Debug("a token was refused", "error", err)
		}
		return auth.User{}, unauthorized()
	}
	return identity.User, nil
}

// identify asks who knows the token. The user is in the group of those with
// valid credentials.
func (s *Server) identify(r *http.Request, token string, audiences []string) (auth.Identity, error) {
	if s.config.Tokens == nil || token == "" {
		return auth.Identity{}, auth.ErrUnknownToken
	}
	identity, err := s.config.Tokens.AuthenticateToken(r.Context(), token, audiences)
	identity.User = identity.User.AsAuthenticated()
	return identity, err
}
