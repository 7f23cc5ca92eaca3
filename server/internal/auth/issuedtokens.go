package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"strings"
	"sync"
)

// IssuedTokens are tokens of users within the process, such as its components. They are in
// memory only, and so valid until the process ends; their users are as many as the process
// asks for. The zero value has no tokens. It is safe for concurrent use.
type IssuedTokens struct {
	users sync.Map // from [sha256.Size]byte, the hash of a token, to User
}

// issuedPrefix begins these tokens, so that others cost no hash.
const issuedPrefix = "levelwire-process-"

// Issue returns a new token for a user.
func (t *IssuedTokens) Issue(user User) string {
	token := issuedPrefix + rand.Text()
	t.users.Store(sha256.Sum256([]byte(token)), user)
	return token
}

// AuthenticateToken implements TokenAuthenticator.
func (t *IssuedTokens) AuthenticateToken(_ context.Context, token string, _ []string) (Identity, error) {
	if !strings.HasPrefix(token, issuedPrefix) {
		return Identity{}, ErrUnknownToken
	}
	user, ok := t.users.Load(sha256.Sum256([]byte(token)))
	if !ok {
		return Identity{}, ErrUnknownToken
	}
	return Identity{User: user.(User)}, nil
}
