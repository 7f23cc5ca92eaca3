package apiserver

import (
	"strings"
	"testing"

	"github.com/levelwire/levelwire/server/internal/auth"
)

// TestImpersonation: every part of the impersonated user must be allowed, and
// its permissions then decide.
func TestImpersonation(t *testing.T) {
	c := newCluster(t, func(s *setup) {
		s.config.Authorizer = authorizerFunc(func(a auth.Attributes) (auth.Decision, string) {
			switch {
			case a.Verb == "impersonate":
				allowed := a.User.Name == "tester" && a.Name != "root" && a.Name != "wheel" && a.Subresource != "scopes"
				return map[bool]auth.Decision{true: auth.Allow}[allowed], ""
			case a.User.Name == "jane", a.User.In("dev"), a.User.In(auth.ServiceAccounts + ":ns"):
				return auth.Allow, ""
			}
			return auth.NoOpinion, "not a user of this test"
		})
	})
	const path = "/api/v1/namespaces/a/pods"
	// A refusal names the kind of right that the user has used last.
	if got := c.get(path, "Impersonate-User: jane"); got.code != 200 {
		t.Errorf("as a user: %d %s", got.code, got.body)
	}
	for name, test := range map[string]struct {
		headers []string
		code    int
		says    string
	}{
		"oneself":        {nil, 403, `pods is forbidden: User \"tester\" cannot list resource \"pods\" in API group \"\" in the namespace \"a\": not a user of this test`},
		"a user":         {[]string{"Impersonate-User: jane"}, 200, ""},
		"a group":        {[]string{"Impersonate-User: x", "Impersonate-Group: dev"}, 200, ""},
		"an account":     {[]string{"Impersonate-User: system:serviceaccount:ns:sa"}, 200, ""},
		"not allowed":    {[]string{"Impersonate-User: root"}, 403, `users \"root\" is forbidden: User \"tester\" cannot impersonate resource \"users\"`},
		"not that group": {[]string{"Impersonate-User: jane", "Impersonate-Group: wheel"}, 403, `groups \"wheel\" is forbidden`},
		"not that extra": {[]string{"Impersonate-User: jane", "Impersonate-Extra-Scopes: all"}, 403, `userextras/scopes`},
		"no user":        {[]string{"Impersonate-Group: dev"}, 400, "no user"},
	} {
		if got := c.get(path, test.headers...); got.code != test.code || !strings.Contains(string(got.body), test.says) {
			t.Errorf("%s: %d %s", name, got.code, got.body)
		}
	}
	if got := c.get("/version", "Authorization: ", "Impersonate-User: jane"); got.code != 403 {
		t.Errorf("without credentials: %d %s", got.code, got.body)
	}
}
