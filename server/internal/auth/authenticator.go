package auth

import (
	"context"
	"crypto/sha256"
	"errors"
)

// ErrUnknownToken is what a TokenAuthenticator says of a token that is none of
// its own, so that the next one is asked.
var ErrUnknownToken = errors.New("the token is not known")

// Identity is what a bearer token stands for.
type Identity struct {
	User User
	// Audiences are those of the audiences asked for that the token is for; nil
	// if tokens of its kind are for nobody in particular.
	Audiences []string
}

// TokenAuthenticator knows what bearer tokens stand for. It is called
// concurrently, once per request that shows a token.
type TokenAuthenticator interface {
	// AuthenticateToken returns what a token stands for. The token must be for
	// one of the audiences, if its kind has any. The error is ErrUnknownToken if
	// the token is none that this authenticator judges, and any other if it is
	// one that is not valid.
	AuthenticateToken(ctx context.Context, token string, audiences []string) (Identity, error)
}

// Union asks several authenticators in turn, until one knows the token.
type Union []TokenAuthenticator

// AuthenticateToken implements TokenAuthenticator.
func (u Union) AuthenticateToken(ctx context.Context, token string, audiences []string) (Identity, error) {
	for _, a := range u {
		identity, err := a.AuthenticateToken(ctx, token, audiences)
		if !errors.Is(err, ErrUnknownToken) {
			return identity, err
		}
	}
	return Identity{}, ErrUnknownToken
}

// StaticTokens are tokens that are known from the start and stay valid as long
// as the server runs.
type StaticTokens struct {
	// The tokens' hashes are looked up, not the tokens: how long that takes says
	// nothing about them.
	users map[[sha256.Size]byte]User
}

// NewStaticTokens returns an authenticator of tokens and their users.
func NewStaticTokens(users map[string]User) *StaticTokens {
	s := &StaticTokens{users: make(map[[sha256.Size]byte]User, len(users))}
	for token, user := range users {
		s.users[sha256.Sum256([]byte(token))] = user
	}
	return s
}

// AuthenticateToken implements TokenAuthenticator.
func (s *StaticTokens) AuthenticateToken(_ context.Context, token string, _ []string) (Identity, error) {
	user, ok := s.users[sha256.Sum256([]byte(token))]
	if !ok {
		return Identity{}, ErrUnknownToken
	}
	return Identity{User: user}, nil
}
