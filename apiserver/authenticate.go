package apiserver

import (
	"context"
	"crypto/subtle"
	"crypto/x509"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// User is who sends a request.
type User struct {
	Name   string
	UID    string
	Groups []string
}

// Authorizer decides whether a user may do something. It is called
// concurrently, once per request.
type Authorizer interface {
	// Authorize returns nil to allow, or why not.
	Authorize(ctx context.Context, a Attributes) error
}

// Attributes is what an Authorizer decides about. For paths that are not
// resources only User, Verb and Path are set.
type Attributes struct {
	User                         User
	Verb                         string
	Path                         string
	Group, Version, Resource     string
	Subresource, Namespace, Name string
}

type allowAll struct{}

func (allowAll) Authorize(context.Context, Attributes) error { return nil }

const (
	groupAuthenticated   = "system:authenticated"
	groupUnauthenticated = "system:unauthenticated"
	userAnonymous        = "system:anonymous"
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
func (s *Server) authenticate(r *http.Request) (User, error) {
	if user, ok := s.userOfCertificate(r); ok {
		return user, nil
	}
	if header := r.Header.Get("Authorization"); header != "" {
		token, ok := strings.CutPrefix(header, "Bearer ")
		if !ok {
			return User{}, apierrors.NewUnauthorized("Unauthorized")
		}
		return s.userOfToken(strings.TrimSpace(token))
	}
	if token, ok := tokenOfSocket(r); ok {
		return s.userOfToken(token)
	}
	if openToAll(r.URL.Path) {
		return User{Name: userAnonymous, Groups: []string{groupUnauthenticated}}, nil
	}
	return User{}, apierrors.NewUnauthorized("Unauthorized")
}

// userOfCertificate verifies here rather than in the handshake, so that a
// certificate of a strange authority is a 401 that clients can read instead of
// a broken connection.
func (s *Server) userOfCertificate(r *http.Request) (User, bool) {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 || s.config.ClientCAs == nil {
		return User{}, false
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
		return User{}, false
	}
	user := User{
		Name:   leaf.Subject.CommonName,
		Groups: withAuthenticated(leaf.Subject.Organization),
	}
	s.verified.add(leaf, user)
	return user, true
}

func (s *Server) userOfToken(token string) (User, error) {
	for known, user := range s.config.Tokens {
		if subtle.ConstantTimeCompare([]byte(known), []byte(token)) == 1 {
			user.Groups = withAuthenticated(user.Groups)
			return user, nil
		}
	}
	return User{}, apierrors.NewUnauthorized("Unauthorized")
}

func withAuthenticated(groups []string) []string {
	if slices.Contains(groups, groupAuthenticated) {
		return groups
	}
	return append(slices.Clone(groups), groupAuthenticated)
}

func (s *Server) authorize(r *http.Request, q *request) error {
	return s.config.Authorizer.Authorize(r.Context(), Attributes{
		User: q.user, Verb: q.verb, Path: r.URL.Path,
		Group: q.resource.Group, Version: q.resource.Version, Resource: q.resource.Plural,
		Subresource: q.subresource, Namespace: q.namespace, Name: q.name,
	})
}

func (s *Server) authorizePath(r *http.Request, user User) error {
	return s.config.Authorizer.Authorize(r.Context(), Attributes{
		User: user, Verb: strings.ToLower(r.Method), Path: r.URL.Path,
	})
}
