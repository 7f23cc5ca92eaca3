package authentication

import (
	"context"
	"errors"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/status"
)

// TokenIssuer makes tokens of service accounts. It is called concurrently.
type TokenIssuer interface {
	// IssueToken fills in the status of a request for a token of a service
	// account, and what the request left out. An error is a
	// *apierrors.StatusError.
	IssueToken(ctx context.Context, namespace, name string, request *authenticationv1.TokenRequest) error
}

// ReviewToken fills in which user the token of a TokenReview belongs to. As in
// Kubernetes, a review that names no audiences asks about the server's own.
func (a *Authenticator) ReviewToken(ctx context.Context, v *authenticationv1.TokenReview) error {
	if v.Spec.Token == "" {
		return status.BadRequest("token is required for TokenReview in authentication")
	}
	audiences := v.Spec.Audiences
	if len(audiences) == 0 {
		audiences = a.config.Audiences
	}
	token := inHeader(v.Spec.Token)
	if token == "" {
		return nil // as a request without a token
	}
	identity, err := a.identify(ctx, token, audiences)
	switch {
	case errors.Is(err, auth.ErrUnknownToken):
		v.Status.Error = "invalid bearer token"
	case err != nil:
		v.Status.Error = "[invalid bearer token, " + err.Error() + "]"
	default:
		v.Status.Authenticated, v.Status.User, v.Status.Audiences = true, UserInfo(identity.User), identity.Audiences
		// A token without audiences is for this server.
		if identity.Audiences == nil && len(v.Spec.Audiences) > 0 {
			v.Status.Audiences = intersect(v.Spec.Audiences, a.config.Audiences)
			if len(v.Status.Audiences) == 0 {
				v.Status = authenticationv1.TokenReviewStatus{Error: "[invalid bearer token, token audiences do not include any of those asked for]"}
			}
		}
	}
	return nil
}

// inHeader returns what a server finds of a token in an Authorization header.
func inHeader(token string) string {
	token, _, _ = strings.Cut(strings.TrimRight(token, " "), " ")
	return token
}

func intersect(a, b []string) []string {
	var both []string
	for _, s := range a {
		for _, t := range b {
			if s == t {
				both = append(both, s)
			}
		}
	}
	return both
}

// UserInfo returns a user as reviews describe it.
func UserInfo(user auth.User) authenticationv1.UserInfo {
	info := authenticationv1.UserInfo{Username: user.Name, UID: user.UID, Groups: user.Groups}
	for key, values := range user.Extra {
		if info.Extra == nil {
			info.Extra = make(map[string]authenticationv1.ExtraValue, len(user.Extra))
		}
		info.Extra[key] = values
	}
	return info
}
