package main

import (
	"encoding/json"
	"encoding/xml"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/levelwire/levelwire/conformance"
	"github.com/levelwire/levelwire/levelwiretest"
)

func TestVerify(t *testing.T) {
	t.Parallel()
	s := levelwiretest.Start(t)
	verify := func(args ...string) result {
		return invoke(t.Context(), append([]string{"verify", "--kubeconfig", s.Kubeconfig(), "--run", "^get/(consistent|not-found)$"}, args...)...)
	}
	table := verify()
	if table.code != exitOK || !strings.Contains(table.stdout, "get/consistent") || !strings.Contains(table.stdout, "2 passed, 0 failed, 0 not decided, 0 skipped") {
		t.Errorf("%+v", table)
	}
	var report conformance.Report
	if got := verify("-o", "json", "--parallel", "1"); json.Unmarshal([]byte(got.stdout), &report) != nil || report.Count(conformance.Pass) != 2 {
		t.Errorf("%+v", got)
	}
	var suite struct {
		Tests int `xml:"tests,attr"`
	}
	if got := verify("-o", "junit"); xml.Unmarshal([]byte(got.stdout), &suite) != nil || suite.Tests != 2 {
		t.Errorf("%+v", got)
	}
	// Without --slow what is slow is skipped, and named.
	slow := invoke(t.Context(), "verify", "--kubeconfig", s.Kubeconfig(), "--run", "^bookmark/every-minute$")
	if slow.code != exitOK || !strings.Contains(slow.stdout, "--slow") {
		t.Errorf("%+v", slow)
	}
}

// TestVerifyFails: a server that is none keeps no guarantee, and the exit code
// says so.
func TestVerifyFails(t *testing.T) {
	nothing := httptest.NewServer(http.NotFoundHandler())
	defer nothing.Close()
	path := writeKubeconfig(t, nothing.URL)
	got := invoke(t.Context(), "verify", "--kubeconfig", path, "--run", "^list/order$")
	if got.code != exitFailed || !strings.Contains(got.stdout, "fail") || !strings.Contains(got.stdout, "404") ||
		!strings.Contains(got.stderr, "1 of 1 guarantees are not kept") {
		t.Errorf("%+v", got)
	}
	nothing.Close()
	got = invoke(t.Context(), "verify", "--kubeconfig", path, "--run", "^list/order$")
	mustFail(t, got, exitFailed, "connection refused")
}

// TestVerifyDecidesNothing: a server that is too busy has broken no guarantee, and
// the exit code is another one than for one that has.
func TestVerifyDecidesNothing(t *testing.T) {
	for name, quiet := range map[string]string{"from the beginning": "", "later": "/api/v1/namespaces"} {
		t.Run(name, func(t *testing.T) {
			busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == quiet {
					http.NotFound(w, r)
					return
				}
				http.Error(w, "come back later", http.StatusTooManyRequests)
			}))
			defer busy.Close()
			got := invoke(t.Context(), "verify", "--kubeconfig", writeKubeconfig(t, busy.URL), "--run", "^list/order$")
			if got.code != exitNotDecided || !strings.Contains(got.stdout, "0 passed, 0 failed, 1 not decided") ||
				!strings.Contains(got.stdout, "come back later") || !strings.Contains(got.stderr, "1 of 1 guarantees are not decided") {
				t.Errorf("%+v", got)
			}
		})
	}
}

func writeKubeconfig(t *testing.T, server string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	content := `apiVersion: v1
kind: Config
current-context: there
clusters: [{name: there, cluster: {server: "` + server + `"}}]
contexts: [{name: there, context: {cluster: there}}, {name: nowhere, context: {cluster: none}}]
`
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestVerifyUsage(t *testing.T) {
	t.Chdir(t.TempDir())
	for flag, names := range map[string]string{
		"--run=(":      "--run",
		"--output=xml": "--output",
		"--parallel=0": "--parallel",
		"everything":   `"everything"`,
	} {
		mustFail(t, invoke(t.Context(), "verify", flag), exitUsage, names)
	}
	path := writeKubeconfig(t, "http://127.0.0.1:1")
	mustFail(t, invoke(t.Context(), "verify", "--kubeconfig", path, "--context", "nowhere"), exitFailed, "--kubeconfig")
	mustFail(t, invoke(t.Context(), "verify", "--kubeconfig", path, "--run", "no-such-check"), exitFailed, "no-such-check")
}
