package authentication

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/levelwire/levelwire/server/internal/auth"
)

// byToken authenticates the user that the token names.
type byToken struct{}

func (byToken) AuthenticateToken(_ context.Context, token string, _ []string) (auth.Identity, error) {
	switch token {
	case "unknown":
		return auth.Identity{}, auth.ErrUnknownToken
	case "bad":
		return auth.Identity{}, errors.New("expired")
	}
	return auth.Identity{User: auth.User{Name: token}}, nil
}

// TestMetrics: requests are counted by kube-apiserver's labels, whatever users are called.
func TestMetrics(t *testing.T) {
	a := New(Config{Tokens: byToken{}, Logger: slog.New(slog.DiscardHandler)})
	for _, test := range []struct{ path, header string }{
		{"/api", "Bearer admin"}, {"/api", "Bearer jane"}, {"/api", "Bearer bob"}, {"/api", "Bearer jane@example.com"},
		{"/api", "Bearer unknown"}, {"/api", "Bearer bad"}, {"/api", "Basic x"}, {"/api", ""}, {"/healthz", ""},
	} {
		r := httptest.NewRequest(http.MethodGet, test.path, nil)
		if test.header != "" {
			r.Header.Set("Authorization", test.header)
		}
		_, _ = a.Authenticate(r)
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(a.Collectors()...)
	const want = `
# HELP authenticated_user_requests Authenticated requests, by the kind of their user.
# TYPE authenticated_user_requests counter
authenticated_user_requests{username="admin"} 1
authenticated_user_requests{username="email_id"} 1
authenticated_user_requests{username="other"} 3
# HELP authentication_attempts Requests, by whether their user was authenticated: success, failure (no known credentials) or error.
# TYPE authentication_attempts counter
authentication_attempts{result="error"} 1
authentication_attempts{result="failure"} 3
authentication_attempts{result="success"} 5
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "authenticated_user_requests", "authentication_attempts"); err != nil {
		t.Error(err)
	}
	if n := testutil.CollectAndCount(a.metrics.duration); n != 3 {
		t.Errorf("%d durations", n)
	}
}
