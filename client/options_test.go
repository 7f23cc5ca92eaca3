package client

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// tlsServer answers with the protocol that a request came in.
func tlsServer(t *testing.T) (*httptest.Server, *rest.Config) {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answerJSON(w, 200, `{"metadata":{"name":"`+r.Proto+`","namespace":"`+r.Header.Get("X-Wrapped")+r.Header.Get("Authorization")+`"}}`)
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	cfg := &rest.Config{Host: s.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	return s, cfg
}

func name(t *testing.T, cfg *rest.Config, opts Options) string {
	t.Helper()
	client, err := New(cfg, opts)
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	pod, err := For[*corev1.Pod](client).Namespace("ns").Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return pod.Name + " " + pod.Namespace
}

func TestProtocolOverTLS(t *testing.T) {
	_, cfg := tlsServer(t)
	if got := name(t, cfg, Options{}); got != "HTTP/2.0 " {
		t.Errorf("by default: %s", got)
	}
	if got := name(t, cfg, Options{ForceHTTP1: true}); got != "HTTP/1.1 " {
		t.Errorf("forced: %s", got)
	}
}

// HTTP/2 can be turned off as in client-go: by NextProtos that lack it, and by the
// environment.
func TestHTTP2IsDisabledAsInClientGo(t *testing.T) {
	_, cfg := tlsServer(t)
	for _, test := range []struct {
		protocols   []string
		environment string
		want        string
	}{
		{nil, "", "HTTP/2.0 "},
		{[]string{"http/1.1"}, "", "HTTP/1.1 "},
		{[]string{"http/1.1", "http/1.0"}, "", "HTTP/1.1 "},
		{[]string{"h2"}, "", "HTTP/2.0 "},
		{[]string{"http/1.1", "h2"}, "", "HTTP/2.0 "}, // it is the server that chooses
		{nil, "true", "HTTP/1.1 "},
		{nil, "1", "HTTP/1.1 "},
		{[]string{"h2"}, "true", "HTTP/1.1 "},
	} {
		t.Setenv("DISABLE_HTTP2", test.environment)
		cfg.NextProtos = test.protocols
		if got := name(t, cfg, Options{}); got != test.want {
			t.Errorf("NextProtos %q, DISABLE_HTTP2=%s: %s", test.protocols, test.environment, got)
		}
		if got := name(t, cfg, Options{ForceHTTP1: true}); got != "HTTP/1.1 " {
			t.Errorf("NextProtos %q, DISABLE_HTTP2=%s, ForceHTTP1: %s", test.protocols, test.environment, got)
		}
		_, err := New(cfg, Options{UnencryptedHTTP2: true})
		if refused := test.want == "HTTP/1.1 "; refused != (err != nil) {
			t.Errorf("NextProtos %q, DISABLE_HTTP2=%s, UnencryptedHTTP2: %v", test.protocols, test.environment, err)
		}
	}
}

func TestCredentialsAndWrapping(t *testing.T) {
	_, cfg := tlsServer(t)
	cfg.BearerToken = "secret"
	if got := name(t, cfg, Options{}); got != "HTTP/2.0 Bearer secret" {
		t.Errorf("got %s", got)
	}
	cfg.BearerToken = ""
	wrap := func(rt http.RoundTripper) http.RoundTripper {
		return roundTripFunc(func(r *http.Request) (*http.Response, error) {
			r = r.Clone(r.Context())
			r.Header.Set("X-Wrapped", "yes")
			return rt.RoundTrip(r)
		})
	}
	if got := name(t, cfg, Options{WrapTransport: wrap}); got != "HTTP/2.0 yes" {
		t.Errorf("got %s", got)
	}
}

type roundTripFunc func(*http.Request) (*http.Response, error)

func (f roundTripFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestNewRefusesWhatCannotWork(t *testing.T) {
	for name, opts := range map[string]Options{
		"content type": {ContentType: "text/xml"},
		"ping timeout": {PingTimeout: -1},
		"protocols":    {ForceHTTP1: true, UnencryptedHTTP2: true},
		"retry":        {Retry: RetryOptions{MaxWait: -1}},

		"a dialer for connections of another client":  {ConnectionsOf: new(Client), Dial: new(net.Dialer).DialContext},
		"HTTP/1.1 on connections of another client":   {ConnectionsOf: new(Client), ForceHTTP1: true},
		"HTTP/2 on connections of another client":     {ConnectionsOf: new(Client), UnencryptedHTTP2: true},
		"an idle timeout for those of another client": {ConnectionsOf: new(Client), ReadIdleTimeout: time.Second},
		"a ping timeout for those of another client":  {ConnectionsOf: new(Client), PingTimeout: time.Second},
		"a ping timeout without pings":                {ReadIdleTimeout: -1, PingTimeout: time.Second},
		"a wait without retries":                      {Retry: RetryOptions{Max: -1, MaxWait: time.Second}},
		"an idle timeout without a unit":              {ReadIdleTimeout: 10},
		"a ping timeout without a unit":               {PingTimeout: 5},
		"a wait without a unit":                       {Retry: RetryOptions{MaxWait: 30}},
	} {
		if err := opts.validate(); err == nil {
			t.Errorf("%s: no error", name)
		}
		if _, err := New(&rest.Config{}, opts); err == nil {
			t.Errorf("%s: New: no error", name)
		}
	}
	tokenFile := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(tokenFile, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, cfg := range map[string]*rest.Config{
		"none":                nil,
		"transport":           {Transport: http.DefaultTransport},
		"user and token":      {Username: "alice", BearerToken: "secret"},
		"user and token file": {Username: "alice", BearerTokenFile: tokenFile},
		"user and both":       {Username: "alice", BearerToken: "secret", BearerTokenFile: tokenFile},
		"both plugins":        {ExecProvider: &clientcmdapi.ExecConfig{}, AuthProvider: &clientcmdapi.AuthProviderConfig{}},
		"no key":              {Host: "https://x", TLSClientConfig: rest.TLSClientConfig{CertData: []byte("x")}},
		"no certificate":      {Host: "https://x", TLSClientConfig: rest.TLSClientConfig{KeyFile: tokenFile}},
		"insecure with a CA":  {Host: "https://x", TLSClientConfig: rest.TLSClientConfig{Insecure: true, CAData: []byte("x")}},
		"host":                {Host: "http://a b"},
		"certificate":         {Host: "https://x", TLSClientConfig: rest.TLSClientConfig{CAFile: "/does/not/exist"}},
	} {
		if _, err := New(cfg, Options{}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestDefaultLogger(t *testing.T) {
	c, err := New(&rest.Config{}, Options{})
	if err != nil || c.opts.Logger != slog.Default() {
		t.Errorf("got %v, %v", c.opts.Logger, err)
	}
}

func TestContentTypeOfTheConfig(t *testing.T) {
	for _, test := range []struct {
		config string
		option ContentType
		want   ContentType
	}{{"", "", JSON}, {string(Protobuf), "", Protobuf}, {string(Protobuf), JSON, JSON}, {"application/cbor", "", JSON}} {
		c, err := New(&rest.Config{ContentConfig: rest.ContentConfig{ContentType: test.config}}, Options{ContentType: test.option})
		if err != nil || c.opts.ContentType != test.want {
			t.Errorf("%+v: got %v, %v", test, c.opts.ContentType, err)
		}
	}
}

func TestFromKubeconfig(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	if _, err := FromKubeconfig(path, Options{}); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v", err)
	}
	config := `{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"k","user":"u"}}],
		"clusters":[{"name":"k","cluster":{"server":"https://example.com:6443/prefix/"}}],"users":[{"name":"u","user":{"token":"t"}}]}`
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := FromKubeconfig(path, Options{})
	if err != nil || c.Host() != "https://example.com:6443/prefix" {
		t.Errorf("got %v, %v", c, err)
	}
}

// A server behind a path is reached there.
func TestPathOfTheServer(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answerJSON(w, 200, `{"metadata":{"name":"`+r.URL.Path+`"}}`)
	}))
	defer s.Close()
	if got := name(t, &rest.Config{Host: s.URL + "/clusters/one"}, Options{}); got != "/clusters/one/api/v1/namespaces/ns/pods/a " {
		t.Errorf("got %s", got)
	}
}

// The caller's context is the only limit in time.
func TestContextEndsRequests(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	defer s.Close()
	client, err := New(&rest.Config{Host: s.URL}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond) //passes: the server never answers
	defer cancel()
	if _, err = For[*corev1.Pod](client).List(ctx, metav1.ListOptions{}); err == nil || !strings.Contains(err.Error(), "deadline") {
		t.Errorf("got %v", err)
	}
}
