package authenticationconfig

import (
	"testing"

	"github.com/levelwire/levelwire/internal/testwait"
	"github.com/levelwire/levelwire/server/internal/auth"
)

// load makes an Authenticator that has loaded a file.
func load(t *testing.T, data []byte) *Authenticator {
	t.Helper()
	a := New(Options{DisallowedIssuers: []string{"https://own.example"}, Examined: NewMetrics()})
	t.Cleanup(a.Close)
	if err := a.Load(data); err != nil {
		t.Fatal(err)
	}
	return a
}

// await waits until a token is accepted, and returns its user.
func await(t *testing.T, a *Authenticator, token string) auth.User {
	t.Helper()
	var user auth.User
	testwait.Stable(t, "the token is accepted", func() (any, bool) {
		identity, err := a.AuthenticateToken(t.Context(), token, nil)
		user = identity.User
		return err, err == nil
	})
	return user
}

// awaitRefusal waits until a token is refused, one of its own at each try.
func awaitRefusal(t *testing.T, a *Authenticator, token func(i int) string) {
	t.Helper()
	tokens := 0
	testwait.Stable(t, "the tokens are refused", func() (any, bool) {
		identity, err := a.AuthenticateToken(t.Context(), token(tokens), nil)
		tokens++
		return identity, err != nil
	})
}
