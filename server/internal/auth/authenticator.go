package auth

import (
	"context"
	"crypto/sha256"
	"errors"
	"sync/atomic"
)

// ErrUnknownToken is the error of a TokenAuthenticator for a token of another kind
// than its own, so that the next authenticator is asked.
var ErrUnknownToken = errors.New("the token is not known")

// Identity is the result of authenticating a bearer token.
type Identity struct {
	User User
	// Audiences are those of the requested audiences that the token is for; nil if
	// tokens of its kind have none.
	Audiences []string
}

// TokenAuthenticator authenticates bearer tokens. It is called concurrently, once
// per request with a token.
type TokenAuthenticator interface {
	// AuthenticateToken returns the identity of a token. The token must be for one
	// of the audiences, if its kind has any. The error is ErrUnknownToken if the
	// token is not of this authenticator's kind, and any other if the token is not
	// valid.
	AuthenticateToken(ctx context.Context, token string, audiences []string) (Identity, error)
}

// Union asks several authenticators in turn, until one accepts the token.
type Union []TokenAuthenticator

// AuthenticateToken implements TokenAuthenticator. As in Kubernetes, a token that one
// authenticator refuses may be another's: two issuers can have the same name. The error
// has the reasons of all that know the token's kind.
func (u Union) AuthenticateToken(ctx context.Context, token string, audiences []string) (Identity, error) {
	var refusals []error
	for _, a := range u {
		identity, err := a.AuthenticateToken(ctx, token, audiences)
		if err == nil {
			return identity, nil
		}
		if !errors.Is(err, ErrUnknownToken) {
			refusals = append(refusals, err)
		}
	}
	if len(refusals) > 0 {
		return Identity{}, errors.Join(refusals...)
	}
	return Identity{}, ErrUnknownToken
}

// StaticTokens are tokens that are configured. They are valid until they are replaced.
type StaticTokens struct {
	// Keys are hashes of the tokens, so that the time of a look-up reveals nothing
	// about the tokens.
	users atomic.Pointer[map[[sha256.Size]byte]User]
}

// NewStaticTokens returns an authenticator of tokens and their users.
func NewStaticTokens(users map[string]User) *StaticTokens {
	s := &StaticTokens{}
	s.Replace(users)
	return s
}

// Replace makes these the only tokens.
func (s *StaticTokens) Replace(users map[string]User) {
	hashed := make(map[[sha256.Size]byte]User, len(users))
	for token, user := range users {
		hashed[sha256.Sum256([]byte(token))] = user
	}
	s.users.Store(&hashed)
}

// AuthenticateToken implements TokenAuthenticator.
func (s *StaticTokens) AuthenticateToken(_ context.Context, token string, _ []string) (Identity, error) {
	user, ok := (*s.users.Load())[sha256.Sum256([]byte(token))]
	if !ok {
		return Identity{}, ErrUnknownToken
	}
	return Identity{User: user}, nil
}
