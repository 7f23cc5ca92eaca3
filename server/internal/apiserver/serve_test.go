package apiserver

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/internal/pki"
	"github.com/levelwire/levelwire/internal/testwait"
	"github.com/levelwire/levelwire/server/internal/apiserver/authentication"
	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
	"github.com/levelwire/levelwire/server/internal/apiserver/health"
	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/status"
	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/memory"
)

func TestCredentials(t *testing.T) {
	authority, err := pki.LoadOrCreateAuthority(t.TempDir(), time.Now)
	must(t, err)
	stranger, err := pki.LoadOrCreateAuthority(t.TempDir(), time.Now)
	must(t, err)
	seen := make(chan auth.Attributes, 10)
	c := newCluster(t, func(s *setup) {
		s.config.ClientCAs = authentication.NewAuthorities([]*x509.Certificate{authority.Certificate()})
		s.config.Authorizer = authorizerFunc(func(a auth.Attributes) (auth.Decision, string) { seen <- a; return auth.Allow, "" })
	})
	good, err := authority.Client(t.TempDir(), "good", "alice", "painters")
	must(t, err)
	bad, err := stranger.Client(t.TempDir(), "bad", "mallory", "system:masters")
	must(t, err)
	withCertificate := func(pair *pki.Pair) *http.Client {
		transport := c.http2.Transport.(*http.Transport).Clone()
		transport.TLSClientConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			certificate := pair.TLS()
			return &certificate, nil
		}
		t.Cleanup(transport.CloseIdleConnections)
		return &http.Client{Transport: transport}
	}
	const path = "/api/v1/namespaces/a/pods"
	for range 2 { // the second time from memory
		resp := c.open(t.Context(), withCertificate(good), http.MethodGet, path, "", "Authorization: ")
		resp.Body.Close()
		if a := <-seen; resp.StatusCode != 200 || a.User.Name != "alice" || a.Verb != "list" || a.Namespace != "a" || a.Resource != "pods" ||
			fmt.Sprint(a.User.Groups) != "[painters system:authenticated]" {
			t.Errorf("certificate: %d, %+v", resp.StatusCode, a)
		}
	}
	resp := c.open(t.Context(), withCertificate(bad), http.MethodGet, path, "", "Authorization: ")
	resp.Body.Close()
	if resp.StatusCode != 401 {
		t.Errorf("a certificate of a strange authority: %d", resp.StatusCode)
	}
	if got := c.get(path); got.code != 200 {
		t.Errorf("token: %d", got.code)
	}
	if a := <-seen; a.User.Name != "tester" {
		t.Errorf("token stands for %+v", a.User)
	}
	for _, header := range []string{"Authorization: ", "Authorization: Bearer wrong", "Authorization: Basic eDp5"} {
		got := c.get(path, header)
		if status := got.status(t); got.code != 401 || status.Reason != metav1.StatusReasonUnauthorized {
			t.Errorf("%s: %d %s", header, got.code, status.Reason)
		}
	}
	for _, open := range []string{"/version", "/healthz", "/livez", "/readyz", "/readyz/ping"} {
		if got := c.get(open, "Authorization: "); got.code != 200 {
			t.Errorf("%s without credentials: %d", open, got.code)
		}
		<-seen
	}
}

// TestIgnoredToken: what is no bearer token counts as none, and a client that meant one is told.
func TestIgnoredToken(t *testing.T) {
	c := newCluster(t)
	for header, warning := range map[string]string{
		"Basic eDp5": "", "Bearer": "",
		"Bearer  " + testToken: `299 - "the provided Authorization header contains extra space before the bearer token, and is ignored"`,
	} {
		for path, code := range map[string]int{"/livez": 200, "/api/v1/pods": 401} {
			if got := c.get(path, "Authorization: "+header); got.code != code || got.header.Get("Warning") != warning {
				t.Errorf("%s with %q: %d, warning %q", path, header, got.code, got.header.Get("Warning"))
			}
		}
	}
}

type authorizerFunc func(auth.Attributes) (auth.Decision, string)

func (f authorizerFunc) Authorize(_ context.Context, a auth.Attributes) (auth.Decision, string, error) {
	decision, reason := f(a)
	return decision, reason, nil
}

func TestAuthorizerDecides(t *testing.T) {
	c := newCluster(t, func(s *setup) {
		s.config.Authorizer = authorizerFunc(func(a auth.Attributes) (auth.Decision, string) {
			if a.Verb == "watch" || a.Path == "/metrics" {
				return auth.NoOpinion, "not today"
			}
			return auth.Allow, ""
		})
	})
	for path, code := range map[string]int{"/api/v1/pods": 200, "/api/v1/pods?watch=1": 403, "/metrics": 403, "/version": 200} {
		if got := c.get(path); got.code != code {
			t.Errorf("%s: %d, want %d", path, got.code, code)
		}
	}
}

var corePods = schema.GroupResource{Resource: "pods"}

func TestHealth(t *testing.T) {
	broken := errors.New("the disk is full")
	c := newCluster(t, func(s *setup) {
		s.config.HealthChecks = []health.Check{
			{Name: "store", Check: func(context.Context) error { return broken }},
			{Name: "alive", Check: func(context.Context) error { return nil }, Live: true},
		}
	})
	for _, tt := range []struct {
		path, text string
		code       int
	}{
		{"/livez", "ok", 200},
		{"/healthz", "ok", 200},
		{"/livez?verbose", "[+]ping ok\n[+]alive ok\nlivez check passed\n", 200},
		{"/readyz", "[+]ping ok\n[+]caches ok\n[+]shutdown ok\n[-]store failed: the disk is full\n[+]alive ok\nreadyz check failed\n", 500},
		{"/readyz?exclude=store", "ok", 200},
		{"/readyz/ping", "ok", 200},
		{"/readyz/store", "[-]store failed: the disk is full\nreadyz check failed\n", 500},
	} {
		if got := c.get(tt.path, "Authorization: "); got.code != tt.code || string(got.body) != tt.text {
			t.Errorf("%s: %d %q, want %d %q", tt.path, got.code, got.body, tt.code, tt.text)
		}
	}
	if got := c.get("/readyz/none"); got.code != 404 {
		t.Errorf("an unknown check: %d", got.code)
	}
}

// gate lets a test hold requests inside the server.
type gate struct {
	storage.Reader
	entered chan struct{}
	open    chan struct{}
}

func (g *gate) Current(ctx context.Context) (storage.Revision, error) {
	g.entered <- struct{}{}
	select {
	case <-g.open:
		return g.Reader.Current(ctx)
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

func TestInFlightLimit(t *testing.T) {
	g := &gate{entered: make(chan struct{}, 8), open: make(chan struct{})}
	c := newCluster(t, func(s *setup) {
		g.Reader, s.config.Store = s.config.Store, g
		s.config.MaxReadsInFlight = 1
	})
	done := make(chan reply)
	go func() { done <- c.get("/api/v1/pods") }()
	<-g.entered
	got := c.get("/api/v1/pods?resourceVersion=0")
	if status := got.status(t); got.code != 429 || status.Reason != metav1.StatusReasonTooManyRequests || got.header.Get("Retry-After") != "1" {
		t.Errorf("over the limit: %d %+v", got.code, status)
	}
	if got := c.get("/healthz"); got.code != 200 {
		t.Errorf("health is refused under load: %d", got.code)
	}
	c.watch("/api/v1/pods?watch=1&resourceVersion=1") // does not count
	close(g.open)
	if got := <-done; got.code != 200 {
		t.Errorf("the first request: %d", got.code)
	}
}

func TestRequestTimeout(t *testing.T) {
	g := &gate{entered: make(chan struct{}, 8), open: make(chan struct{})}
	c := newCluster(t, func(s *setup) {
		g.Reader, s.config.Store = s.config.Store, g
		s.config.RequestTimeout = 50 * time.Millisecond
	})
	got := c.get("/api/v1/pods")
	if status := got.status(t); got.code != 504 || status.Reason != metav1.StatusReasonTimeout {
		t.Errorf("got %d %+v", got.code, status)
	}
}

func TestDrainIsBounded(t *testing.T) {
	g := &gate{entered: make(chan struct{}, 8), open: make(chan struct{})}
	c := newCluster(t, func(s *setup) {
		g.Reader, s.config.Store = s.config.Store, g
		s.config.ShutdownTimeout = 100 * time.Millisecond
	})
	failed := make(chan error, 1)
	go func() {
		req, _ := http.NewRequest(http.MethodGet, c.url+"/api/v1/pods", nil)
		req.Header.Set("Authorization", "Bearer "+testToken)
		resp, err := c.http1.Do(req)
		if err == nil {
			resp.Body.Close()
		}
		failed <- err
	}()
	<-g.entered
	c.stop()
	if err := <-failed; err == nil {
		t.Error("a request that outlived the drain was answered")
	}
}

// TestDrainDoesNotKeepHTTP1 has a request over HTTP/2 outlast everything else: an
// idle connection of HTTP/1.1 is closed meanwhile, and not kept for more requests.
func TestDrainDoesNotKeepHTTP1(t *testing.T) {
	g := &gate{entered: make(chan struct{}, 8), open: make(chan struct{})}
	c := newCluster(t, func(s *setup) {
		g.Reader, s.config.Store = s.config.Store, g
		s.config.ShutdownTimeout = 3 * time.Minute
	})
	roots := x509.NewCertPool()
	roots.AddCert(c.authority)
	idle, err := tls.Dial("tcp", strings.TrimPrefix(c.url, "https://"), &tls.Config{RootCAs: roots})
	must(t, err)
	defer idle.Close()
	must(t, idle.SetDeadline(time.Now().Add(time.Minute))) // before the drain is over
	_, err = io.WriteString(idle, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
	must(t, err)
	answers := bufio.NewReader(idle)
	resp, err := http.ReadResponse(answers, nil)
	must(t, err)
	_, err = io.Copy(io.Discard, resp.Body)
	must(t, err)
	done := make(chan reply)
	go func() { done <- c.get("/api/v1/pods") }()
	<-g.entered
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		c.stop()
	}()
	if _, err := answers.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("the idle connection was not closed: %v", err)
	}
	close(g.open)
	if got := <-done; got.code != 200 {
		t.Errorf("the request that was under way: %d", got.code)
	}
	<-stopped
}

// panicking is a table that panics on one name.
type panicking struct{ *resource.Table }

func (p panicking) Lookup(group, version, plural string) *resource.Resource {
	if plural == "bombs" {
		panic("boom")
	}
	return p.Table.Lookup(group, version, plural)
}

func TestPanicIsA500ForOne(t *testing.T) {
	c := newCluster(t, func(s *setup) { s.config.Resources = panicking{s.config.Resources.(*resource.Table)} })
	got := c.get("/api/v1/bombs")
	if status := got.status(t); got.code != 500 || status.Reason != metav1.StatusReasonInternalError || strings.Contains(status.Message, "boom") {
		t.Errorf("got %d %+v", got.code, status)
	}
	if got := c.get("/api/v1/pods"); got.code != 200 {
		t.Errorf("afterwards: %d", got.code)
	}
}

func TestErrorsBecomeStatus(t *testing.T) {
	for _, tt := range []struct {
		err    error
		code   int32
		reason metav1.StatusReason
	}{
		{apierrors.NewNotFound(corePods, "x"), 404, metav1.StatusReasonNotFound},
		{fmt.Errorf("wrapped: %w", apierrors.NewConflict(corePods, "x", errors.New("y"))), 409, metav1.StatusReasonConflict},
		{fmt.Errorf("get: %w", storage.ErrCompacted), 410, metav1.StatusReasonExpired},
		{&storage.ConflictError{Key: "k"}, 409, metav1.StatusReasonConflict},
		{storage.ErrFutureRevision, 504, metav1.StatusReasonTimeout},
		{storage.ErrTooLarge, 413, metav1.StatusReasonRequestEntityTooLarge},
		{fmt.Errorf("x: %w", storage.ErrUnavailable), 503, metav1.StatusReasonServiceUnavailable},
		{storage.ErrClosed, 503, metav1.StatusReasonServiceUnavailable},
		{context.DeadlineExceeded, 504, metav1.StatusReasonTimeout},
		{errors.New("a bug"), 500, metav1.StatusReasonInternalError},
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		encoding.WriteError(w, r, tt.err)
		var status metav1.Status
		must(t, json.Unmarshal(w.Body.Bytes(), &status))
		if w.Code != int(tt.code) || status.Code != tt.code || status.Reason != tt.reason || status.Kind != "Status" {
			t.Errorf("%v: %d %s", tt.err, w.Code, w.Body)
		}
	}
}

func TestErrorsAreNegotiated(t *testing.T) {
	c := newCluster(t)
	got := c.get("/api/v1/gadgets", "Accept: "+protobufType)
	var status metav1.Status
	must(t, status.Unmarshal(unwrap(t, got.body, "v1", "Status")))
	if status.Code != 404 || got.header.Get("Content-Type") != protobufType {
		t.Errorf("got %+v", status)
	}
	if got := c.get("/api/v1/pods", "Accept: text/html"); got.code != 406 || got.status(t).Reason != metav1.StatusReasonNotAcceptable {
		t.Errorf("unacceptable: %d %s", got.code, got.body)
	}
}

func TestBodyLimit(t *testing.T) {
	s := &Server{config: Config{MaxBodyBytes: 10}}
	for _, length := range []int64{11, -1} { // announced, and not
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("12345678901"))
		r.ContentLength = length
		_, err := encoding.ReadBody(httptest.NewRecorder(), r, s.config.MaxBodyBytes)
		if status.Of(err).Code != 413 || status.Of(err).Reason != metav1.StatusReasonRequestEntityTooLarge {
			t.Errorf("length %d: %v", length, err)
		}
	}
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("1234567890"))
	if body, err := encoding.ReadBody(httptest.NewRecorder(), r, s.config.MaxBodyBytes); err != nil || len(body) != 10 {
		t.Errorf("at the limit: %q %v", body, err)
	}
}

func TestWarningsAreOneLine(t *testing.T) {
	w := httptest.NewRecorder()
	request.AddWarnings(w, "unknown field \"x\"\nand more")
	if got := w.Header().Get("Warning"); got != `299 - "unknown field \"x\"and more"` {
		t.Errorf("got %s", got)
	}
}

func TestIncompleteConfigIsRefused(t *testing.T) {
	store, err := memory.Open(memory.Options{})
	must(t, err)
	defer store.Close()
	table, err := resource.NewTable()
	must(t, err)
	for name, config := range map[string]Config{
		"Resources": {Store: store, Cache: func(*resource.Resource) *watchcache.Cache { return nil }},
		"Cache":     {Store: store, Resources: table},
		"Store":     {Resources: table, Cache: func(*resource.Resource) *watchcache.Cache { return nil }},
	} {
		if _, err := New(config); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s: %v", name, err)
		}
	}
}

func TestServeReportsABrokenListener(t *testing.T) {
	c := newCluster(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	must(t, listener.Close())
	if err := c.server.Serve(t.Context(), listener, nil); err == nil || !strings.Contains(err.Error(), listener.Addr().String()) {
		t.Errorf("got %v", err)
	}
}

// TestServeThatFailsEndsItsConnections: clients of a server whose listener has failed learn of it.
func TestServeThatFailsEndsItsConnections(t *testing.T) {
	c := newCluster(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	authority, err := pki.LoadOrCreateAuthority(t.TempDir(), time.Now)
	must(t, err)
	serving, err := authority.Serving(t.TempDir(), []string{"127.0.0.1"})
	must(t, err)
	served := make(chan error, 1)
	go func() {
		served <- c.server.Serve(t.Context(), listener, &tls.Config{Certificates: []tls.Certificate{serving.TLS()}})
	}()
	http2, http1 := clients(authority.Certificate())
	var watches []io.ReadCloser
	for _, client := range []*http.Client{http2, http1} {
		defer client.CloseIdleConnections()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+listener.Addr().String()+"/api/v1/pods?watch=1", nil)
		must(t, err)
		request.Header.Set("Authorization", "Bearer "+testToken)
		answer, err := client.Do(request)
		must(t, err)
		defer answer.Body.Close()
		watches = append(watches, answer.Body)
	}
	must(t, listener.Close())
	if err := <-served; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Serve: %v", err)
	}
	for _, watch := range watches {
		if _, err := io.ReadAll(watch); err != nil {
			t.Errorf("a watch ends with %v", err)
		}
	}
	// Of a connection that is idle and closes by itself, Shutdown says that it is closed while it is closing.
	testwait.Stable(t, "no connection is open", func() (any, bool) { seen := c.server.connections.Open(); return seen, seen == 0 })
}
