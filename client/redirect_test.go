package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// eachVerb sends one request of each kind.
func eachVerb(c *Client) map[string]func(context.Context) error {
	pods := For[*corev1.Pod](c).Namespace("ns")
	pod := func() *corev1.Pod { return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "ns"}} }
	return map[string]func(context.Context) error{
		"get":  func(ctx context.Context) error { _, err := pods.Get(ctx, "a", metav1.GetOptions{}); return err },
		"list": func(ctx context.Context) error { _, err := pods.List(ctx, metav1.ListOptions{}); return err },
		"watch": func(ctx context.Context) error {
			w, err := pods.Watch(ctx, metav1.ListOptions{})
			if err == nil {
				w.Close()
			}
			return err
		},
		"create": func(ctx context.Context) error { _, err := pods.Create(ctx, pod(), metav1.CreateOptions{}); return err },
		"update": func(ctx context.Context) error { _, err := pods.Update(ctx, pod(), metav1.UpdateOptions{}); return err },
		"patch": func(ctx context.Context) error {
			_, err := pods.Patch(ctx, "a", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{})
			return err
		},
		"delete": func(ctx context.Context) error { return pods.Delete(ctx, "a", metav1.DeleteOptions{}) },
		"served": func(ctx context.Context) error { _, err := pods.Served(ctx); return err },
	}
}

// No server but the configured one gets a request, and with it credentials, whatever they
// are. The error names it.
func TestRedirectToAnotherServerIsNotFollowed(t *testing.T) {
	var asked atomic.Int64
	stranger := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		answerJSON(w, http.StatusOK, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}`)
	})
	plain, secure := httptest.NewServer(stranger), httptest.NewTLSServer(stranger)
	defer plain.Close()
	defer secure.Close()
	tokenFile := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(tokenFile, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	credentials := map[string]rest.Config{
		"a token":       {BearerToken: "secret"},
		"a token file":  {BearerTokenFile: tokenFile},
		"a password":    {Username: "me", Password: "secret"},
		"impersonation": {Impersonate: rest.ImpersonationConfig{UserName: "secret"}},
	}
	for what, target := range map[string]string{
		"another port": plain.URL, "another host": strings.Replace(plain.URL, "127.0.0.1", "localhost", 1), "https": secure.URL,
	} {
		for _, code := range []int{301, 302, 303, 307, 308} {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, target+"/login?state=secret", code)
			}))
			for who, config := range credentials {
				config.Host = s.URL
				c, err := New(&config, Options{})
				if err != nil {
					t.Fatal(err)
				}
				for verb, send := range eachVerb(c) {
					err := send(t.Context())
					if err == nil || !strings.Contains(err.Error(), "redirects to "+target) || !strings.Contains(err.Error(), s.URL) || strings.Contains(err.Error(), "secret") {
						t.Errorf("%s by %d, with %s: %s: %v", what, code, who, verb, err)
					}
				}
				c.CloseIdleConnections()
			}
			s.Close()
		}
	}
	if n := asked.Load(); n > 0 {
		t.Errorf("the other servers got %d requests", n)
	}
}

// Raw returns the redirect, as it returns every answer.
func TestRawReturnsARedirectToAnotherServer(t *testing.T) {
	c, _ := serve(t, Options{}, &recorder{answer: func(_ int, w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://idp.example.com/login", http.StatusFound)
	}})
	resp, err := c.Raw(t.Context(), RawRequest{Path: "/api/v1/namespaces/ns/services/web/proxy/"})
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusFound || resp.Header.Get("Location") != "https://idp.example.com/login" || len(body) == 0 {
		t.Errorf("%d %v %q %v", resp.StatusCode, resp.Header, body, err)
	}
	_ = resp.Body.Close()
}

// A redirect to another path of the same server is followed, with the credentials, by
// reads, and by writes whose method and body it keeps. A write is never made a read.
func TestRedirectWithinTheServer(t *testing.T) {
	for code, keepsMethod := range map[int]bool{301: false, 302: false, 303: false, 307: true, 308: true} {
		rec := &recorder{answer: func(_ int, w http.ResponseWriter, r *http.Request) {
			if path, moved := strings.CutPrefix(r.URL.Path, "/moved"); moved && r.Header.Get("Authorization") == "Bearer secret" {
				body := `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}`
				switch {
				case strings.HasSuffix(path, "/pods") && r.Method == http.MethodGet:
					body = `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}`
				case path == "/api/v1":
					body = `{"kind":"APIResourceList","resources":[]}`
				}
				answerJSON(w, http.StatusOK, body)
				return
			}
			http.Redirect(w, r, "/moved"+r.URL.RequestURI(), code)
		}}
		server := httptest.NewServer(rec)
		c, err := New(&rest.Config{Host: server.URL, BearerToken: "secret"}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for verb, send := range eachVerb(c) {
			err := send(t.Context())
			write := verb == "create" || verb == "update" || verb == "patch" || verb == "delete"
			if refused := write && !keepsMethod; refused != (err != nil) || refused && !strings.Contains(err.Error(), "redirects to another path") {
				t.Errorf("%d: %s: %v", code, verb, err)
			}
			if got := rec.last(t); err == nil && (!strings.HasPrefix(got.uri, "/moved/") || verb == "create" && (got.method != http.MethodPost || got.body == "")) {
				t.Errorf("%d: %s: the server saw %+v", code, verb, got)
			}
		}
		c.CloseIdleConnections()
		server.Close()
	}
}

// A server that redirects without an end is asked a few times.
func TestRedirectsWithoutAnEnd(t *testing.T) {
	rec := &recorder{answer: func(n int, w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, fmt.Sprintf("/%d", n), http.StatusTemporaryRedirect)
	}}
	c, _ := serve(t, Options{}, rec)
	if _, err := For[*corev1.Pod](c).Namespace("ns").Get(t.Context(), "a", metav1.GetOptions{}); err == nil || rec.last(t).uri != "/"+strconv.Itoa(maxRedirects-1) {
		t.Errorf("the last request was for %s; %v", rec.last(t).uri, err)
	}
}
