package webhookclient

import (
	"os"
	"path/filepath"
	"testing"
)

// TestUserFor: the name of a user says for which hosts it is.
func TestUserFor(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	const content = `apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {user: current, cluster: none}}]
users:
- {name: hook.ns.svc, user: {token: exact}}
- {name: "hook.ns.svc:8443", user: {token: port}}
- {name: "*.ns.svc", user: {token: namespace}}
- {name: "*.example.com:9443", user: {token: suffix}}
- {name: current, user: {token: current}}
`
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := LoadCredentials(file)
	if err != nil {
		t.Fatal(err)
	}
	for target, want := range map[string]string{
		"hook.ns.svc:443": "exact", "hook.ns.svc:8443": "port", "other.ns.svc:443": "namespace", "other.ns.svc:444": "current",
		"a.b.example.com:9443": "suffix", "example.com:9443": "current", "[::1]:443": "current", "": "current",
	} {
		if got := c.userFor(target); got == nil || got.Token != want {
			t.Errorf("%s: %v, want %s", target, got, want)
		}
	}
	if got := (*Credentials)(nil).userFor("hook.ns.svc:443"); got != nil {
		t.Errorf("without credentials: %v", got)
	}
	for target, want := range map[string]string{"https://h": "h:443", "https://h:1/p": "h:1", "https://[::1]/p": "[::1]:443"} {
		if got := hostPort(target); got != want {
			t.Errorf("%s is at %s, want %s", target, got, want)
		}
	}
}
