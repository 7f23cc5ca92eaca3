package kubeconfig_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	_ "k8s.io/client-go/plugin/pkg/client/auth/oidc" // as programs that use it do

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/kubeconfig"
	_ "github.com/levelwire/levelwire/internal/testwatchdog"
)

// The test binary is an exec plugin, and a program with a proxy in its environment,
// when it is started so.
const (
	asPlugin = "LEVELWIRE_TEST_EXEC_PLUGIN"
	asChild  = "LEVELWIRE_TEST_PROXY_CHILD"
)

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(asPlugin) != "":
		pluginMain()
	case os.Getenv(asChild) != "":
		childMain()
	default:
		goleak.VerifyTestMain(m)
	}
}

// pluginMain answers with a token that says for which cluster it was asked, and how
// often. A plugin must write nothing else.
func pluginMain() {
	var info struct {
		Spec struct {
			Cluster struct {
				Server string `json:"server"`
			} `json:"cluster"`
		} `json:"spec"`
	}
	_ = json.Unmarshal([]byte(os.Getenv("KUBERNETES_EXEC_INFO")), &info)
	calls, _ := os.ReadFile(os.Getenv(asPlugin))
	_ = os.WriteFile(os.Getenv(asPlugin), append(calls, '.'), 0o600)
	fmt.Printf(`{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"%s-%d"}}`,
		strings.TrimPrefix(info.Spec.Cluster.Server, "https://"), len(calls)+1)
}

// childMain asks for a version by the kubeconfig that it is given.
func childMain() {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	c, _, err := client.Load(kubeconfig.Options{File: os.Getenv(asChild)}, client.Options{})
	if err == nil {
		var resp *http.Response
		if resp, err = c.Raw(ctx, client.RawRequest{Path: "/version"}); err == nil {
			_, err = io.Copy(os.Stdout, resp.Body)
		}
	}
	if err != nil {
		fmt.Print(err)
	}
}

// apiServer is a server that answers with what it saw.
type apiServer struct {
	*httptest.Server
	ca []byte

	mu   sync.Mutex
	seen []http.Header
	// refuse is a token that is answered with 401.
	refuse string
}

func startServer(t *testing.T) *apiServer {
	t.Helper()
	s := &apiServer{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		seen := r.Header.Clone()
		seen.Set("Protocol", r.Proto)
		s.seen = append(s.seen, seen)
		refused := s.refuse != "" && r.Header.Get("Authorization") == "Bearer "+s.refuse
		s.mu.Unlock()
		if refused {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(w, "the version")
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	s.ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	return s
}

func (s *apiServer) last(t *testing.T) http.Header {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.seen) == 0 {
		t.Fatal("no request arrived")
	}
	return s.seen[len(s.seen)-1]
}

type object = map[string]any

// config writes a kubeconfig for the server, with more members of the cluster and of
// the user.
func (s *apiServer) config(t *testing.T, cluster, user object) string {
	t.Helper()
	merged := object{"server": s.URL, "certificate-authority-data": s.ca}
	for name, value := range cluster {
		merged[name] = value
	}
	data, err := json.Marshal(object{"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"contexts": []any{object{"name": "c", "context": object{"cluster": "k", "user": "u"}}},
		"clusters": []any{object{"name": "k", "cluster": merged}}, "users": []any{object{"name": "u", "user": user}}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// load makes a client whose connections the test closes.
func load(t *testing.T, from kubeconfig.Options) *client.Client {
	t.Helper()
	c, _, err := client.Load(from, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// version asks for /version, and returns the status.
func version(t *testing.T, c *client.Client) int {
	t.Helper()
	resp, err := c.Raw(t.Context(), client.RawRequest{Path: "/version"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode
}

// A plugin is run once for many requests, and again when the server refuses its token.
func TestExecPlugin(t *testing.T) {
	s := startServer(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	calls := filepath.Join(t.TempDir(), "calls")
	c := load(t, kubeconfig.Options{File: s.config(t, nil, object{"exec": object{
		"apiVersion": "client.authentication.k8s.io/v1", "command": self, "interactiveMode": "Never", "provideClusterInfo": true,
		"env": []any{object{"name": asPlugin, "value": calls}},
	}})})
	host := strings.TrimPrefix(s.URL, "https://")
	for range 3 {
		version(t, c)
	}
	if got := s.last(t).Get("Authorization"); got != "Bearer "+host+"-1" {
		t.Errorf("the server saw %q", got)
	}
	s.mu.Lock()
	s.refuse = host + "-1"
	s.mu.Unlock()
	if got := version(t, c); got != http.StatusOK {
		t.Errorf("after the token was refused: %d", got)
	}
	if got := s.last(t).Get("Authorization"); got != "Bearer "+host+"-2" {
		t.Errorf("after the token was refused the server saw %q", got)
	}
}

func TestExecPluginThatIsMissing(t *testing.T) {
	s := startServer(t)
	c := load(t, kubeconfig.Options{File: s.config(t, nil, object{"exec": object{
		"apiVersion": "client.authentication.k8s.io/v1", "command": "no-such-plugin", "interactiveMode": "Never", "installHint": "install the plugin from example.com",
		"args": []string{s.URL}, // client-go repeats a hint for the same plugin only now and then
	}})})
	_, err := c.Raw(t.Context(), client.RawRequest{Path: "/version"})
	if err == nil || !strings.Contains(err.Error(), "install the plugin from example.com") {
		t.Errorf("got %v", err)
	}
}

// token is an ID token that ends at a time. Nothing here checks its signature.
func token(subject string, ends time.Time) string {
	part := func(v object) string {
		data, _ := json.Marshal(v)
		return base64.RawURLEncoding.EncodeToString(data)
	}
	return part(object{"alg": "none"}) + "." + part(object{"sub": subject, "exp": ends.Unix()}) + ".c2ln"
}

// An expired ID token is refreshed at its issuer, and written to the kubeconfig.
func TestOIDC(t *testing.T) {
	s := startServer(t)
	fresh := token("alice", time.Now().Add(time.Hour))
	var issuer *httptest.Server
	issuer = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/.well-known/openid-configuration" {
			_ = json.NewEncoder(w).Encode(object{"issuer": issuer.URL, "token_endpoint": issuer.URL + "/token"})
			return
		}
		if r.URL.Path != "/token" || r.FormValue("refresh_token") != "refresh" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		_ = json.NewEncoder(w).Encode(object{"access_token": "a", "token_type": "Bearer", "refresh_token": "refresh", "id_token": fresh, "expires_in": 3600})
	}))
	t.Cleanup(issuer.Close)
	path := s.config(t, nil, object{"auth-provider": object{"name": "oidc", "config": object{
		"idp-issuer-url": issuer.URL, "client-id": "levelwire", "client-secret": "s", "refresh-token": "refresh",
		"id-token":                       token("alice", time.Now().Add(-time.Hour)),
		"idp-certificate-authority-data": base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: issuer.Certificate().Raw})),
	}}})
	version(t, load(t, kubeconfig.Options{File: path}))
	if got := s.last(t).Get("Authorization"); got != "Bearer "+fresh {
		t.Errorf("the server saw %q", got)
	}
	if data, err := os.ReadFile(path); err != nil || !strings.Contains(string(data), fresh) {
		t.Errorf("the kubeconfig: %s, %v", data, err)
	}
}

func TestImpersonation(t *testing.T) {
	s := startServer(t)
	path := s.config(t, nil, object{"token": "admin", "as": "alice", "as-uid": "u", "as-groups": []string{"developers", "testers"},
		"as-user-extra": object{"example.com/reason": []string{"support"}}})
	version(t, load(t, kubeconfig.Options{File: path}))
	got := s.last(t)
	for header, want := range map[string][]string{
		"Authorization": {"Bearer admin"}, "Impersonate-User": {"alice"}, "Impersonate-Uid": {"u"},
		"Impersonate-Group": {"developers", "testers"}, "Impersonate-Extra-Example.com%2freason": {"support"},
	} {
		if strings.Join(got.Values(header), ",") != strings.Join(want, ",") {
			t.Errorf("%s: the server saw %q", header, got.Values(header))
		}
	}
	flag := kubeconfig.Options{File: path}
	flag.Impersonate.UserName = "bob"
	version(t, load(t, flag))
	if got := s.last(t).Get("Impersonate-User"); got != "bob" {
		t.Errorf("with a flag: %q", got)
	}
}

// proxy tunnels every CONNECT to one address, and remembers for which it was asked.
type proxy struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string
}

func startProxy(t *testing.T, address string) *proxy {
	t.Helper()
	p := &proxy{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.asked = append(p.asked, r.Method+" "+r.Host)
		p.mu.Unlock()
		server, err := net.Dial("tcp", address)
		if err != nil || r.Method != http.MethodConnect {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer func() { _ = server.Close() }()
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
		var both sync.WaitGroup
		pipe := func(to, from net.Conn) { _, _ = io.Copy(to, from); _ = to.Close() }
		both.Go(func() { pipe(server, conn) })
		both.Go(func() { pipe(conn, server) })
		both.Wait()
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *proxy) list() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.asked, ", ")
}

func TestProxyOfTheKubeconfig(t *testing.T) {
	s := startServer(t)
	p := startProxy(t, s.Listener.Addr().String())
	c := load(t, kubeconfig.Options{File: s.config(t, object{"server": "https://example.com", "proxy-url": p.URL}, object{"token": "t"})})
	if got := version(t, c); got != http.StatusOK || p.list() != "CONNECT example.com:443" {
		t.Errorf("%d, the proxy was asked for %q", got, p.list())
	}
	if got := s.last(t).Get("Protocol"); got != "HTTP/2.0" {
		t.Errorf("the server was spoken to in %s", got)
	}
}

// The environment is read once in a process, so another one is started.
func TestProxyOfTheEnvironment(t *testing.T) {
	s := startServer(t)
	p := startProxy(t, s.Listener.Addr().String())
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	config := s.config(t, object{"server": "https://example.com"}, object{"token": "t"})
	cmd.Env = append(os.Environ(), asChild+"="+config, "HTTPS_PROXY="+p.URL, "NO_PROXY=")
	got, err := cmd.CombinedOutput()
	if err != nil || string(got) != "the version" || p.list() != "CONNECT example.com:443" {
		t.Errorf("got %q, %v, the proxy was asked for %q", got, err, p.list())
	}
}
