package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/levelwire/levelwire/internal/pki"
)

// files are a server's certificate files, of an authority of their own.
type files struct {
	dir, cert, key, authority string
	pool                      *x509.CertPool
	issuer                    *pki.Authority
}

func newFiles(t *testing.T, now func() time.Time) files {
	t.Helper()
	dir := t.TempDir()
	authority, err := pki.LoadOrCreateAuthority(dir, now)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := authority.Serving(dir, []string{"localhost"}); err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(authority.Certificate())
	return files{dir, filepath.Join(dir, "server.crt"), filepath.Join(dir, "server.key"), filepath.Join(dir, "ca.crt"), pool, authority}
}

// replace copies one file over another.
func replace(t *testing.T, with, file string) {
	t.Helper()
	data, err := os.ReadFile(with)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// serve runs a server until the returned function is called, which returns what
// Run did.
func serve(t *testing.T, f files, opts Options) (*Server, func() error) {
	t.Helper()
	opts.Address = "localhost:0"
	if opts.GetCertificate == nil {
		opts.CertFile, opts.KeyFile = f.cert, f.key
	}
	if opts.Handlers == nil {
		opts.Handlers = map[string]http.Handler{"/validate": Validate(func(context.Context, *Request[*widget]) error { return nil })}
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	s, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	<-s.Started()
	stopped := false
	stop := func() error {
		if stopped {
			return nil
		}
		stopped = true
		cancel()
		return <-ended
	}
	t.Cleanup(func() { _ = stop() })
	return s, stop
}

// send posts a review on a connection of its own.
func send(s *Server, path string, config *tls.Config) (code int, body string, err error) {
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true, DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	config.ServerName = "localhost"
	resp, err := (&http.Client{Transport: transport}).Post("https://"+s.Addr().String()+path, "application/json", strings.NewReader(admission("CREATE", plainWidget, "null")))
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(data), err
}

func TestServesReviewsAndHealth(t *testing.T) {
	f := newFiles(t, time.Now)
	s, stop := serve(t, f, Options{})
	if code, body, err := send(s, "/validate?timeout=10s", &tls.Config{RootCAs: f.pool}); code != http.StatusOK || !strings.Contains(body, `"allowed":true`) {
		t.Errorf("%d %s %v", code, body, err)
	}
	for path, want := range map[string]int{healthPath: http.StatusOK, readyPath: http.StatusOK, "/other": http.StatusNotFound} {
		if code, body, err := send(s, path, &tls.Config{RootCAs: f.pool}); code != want {
			t.Errorf("%s: %d %s %v", path, code, body, err)
		}
	}
	if err := s.Healthy(); err != nil {
		t.Error(err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if err := s.Healthy(); err == nil {
		t.Error("healthy after the end")
	}
	if err := s.Run(t.Context()); err == nil {
		t.Error("ran again")
	}
}

func TestCertificatesAreReadAgainWhenTheyChange(t *testing.T) {
	var log bytes.Buffer
	old, next := newFiles(t, time.Now), newFiles(t, time.Now)
	c, err := newCertificates(Options{CertFile: old.cert, KeyFile: old.key, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	c.now = func() time.Time { return now }
	accepts := func(f files) bool {
		config, err := c.current(nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = config.Certificates[0].Leaf.Verify(x509.VerifyOptions{Roots: f.pool, DNSName: "localhost"})
		return err == nil
	}
	if !accepts(old) {
		t.Error("the first certificate is not used")
	}
	replace(t, next.cert, old.cert)
	now = now.Add(certificateInterval)
	if !accepts(old) {
		t.Error("a certificate without its key is used")
	}
	now = now.Add(certificateInterval)
	if !accepts(old) || strings.Count(log.String(), "not used") != 1 {
		t.Errorf("logged %s", &log)
	}
	replace(t, next.key, old.key)
	if !accepts(old) {
		t.Error("files are compared more often than need be")
	}
	now = now.Add(certificateInterval)
	if !accepts(next) || !strings.Contains(log.String(), "using new certificate files") {
		t.Errorf("the new certificate is not used; logged %s", &log)
	}
	if err := c.valid(); err != nil {
		t.Error(err)
	}
	now = now.Add(10 * 365 * 24 * time.Hour)
	if err := c.valid(); !errors.Is(err, errExpired) {
		t.Errorf("got %v", err)
	}
}

// A connection that is open stays; a new one gets the new certificate.
func TestServerUsesRotatedCertificates(t *testing.T) {
	f, next := newFiles(t, time.Now), newFiles(t, time.Now)
	s, _ := serve(t, f, Options{})
	s.certificates.mu.Lock()
	s.certificates.now = func() time.Time { return time.Now().Add(time.Hour) } // the next handshake reads the files
	s.certificates.mu.Unlock()
	replace(t, next.key, f.key)
	replace(t, next.cert, f.cert)
	if code, _, err := send(s, "/validate", &tls.Config{RootCAs: next.pool}); code != http.StatusOK {
		t.Errorf("%d %v", code, err)
	}
	if _, _, err := send(s, "/validate", &tls.Config{RootCAs: f.pool}); err == nil {
		t.Error("the old certificate is still used")
	}
}

// Each reading of the files is counted, and each after which the ones before were used on.
func TestReadingsOfCertificatesAreCounted(t *testing.T) {
	f, next := newFiles(t, time.Now), newFiles(t, time.Now)
	s, _ := serve(t, f, Options{})
	later := time.Duration(0)
	handshake := func(pool *x509.CertPool) {
		t.Helper()
		later += time.Hour // the next handshake reads the files
		s.certificates.mu.Lock()
		s.certificates.now = func() time.Time { return time.Now().Add(later) }
		s.certificates.mu.Unlock()
		if code, _, err := send(s, readyPath, &tls.Config{RootCAs: pool}); code != http.StatusOK {
			t.Errorf("%d %v", code, err)
		}
	}
	for n, step := range []struct {
		change func()
		pool   *x509.CertPool
		want   CertificateStats
	}{
		{func() {}, f.pool, CertificateStats{Reads: 2}},
		{func() { replace(t, next.cert, f.cert) }, f.pool, CertificateStats{Reads: 3, Errors: 1}}, // its key is missing
		{func() {}, f.pool, CertificateStats{Reads: 4, Errors: 2}},
		{func() { replace(t, next.key, f.key) }, next.pool, CertificateStats{Reads: 5, Errors: 2}},
	} {
		step.change()
		handshake(step.pool)
		if got := s.CertificateStats(); got != step.want {
			t.Errorf("step %d: %+v, want %+v", n, got, step.want)
		}
	}
}

func TestCertificatesFromAFunction(t *testing.T) {
	f := newFiles(t, time.Now)
	pair, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		t.Fatal(err)
	}
	s, _ := serve(t, f, Options{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &pair, nil }})
	if code, _, err := send(s, "/validate", &tls.Config{RootCAs: f.pool}); code != http.StatusOK || s.Healthy() != nil {
		t.Errorf("%d %v, %v", code, err, s.Healthy())
	}
	if got := s.CertificateStats(); got != (CertificateStats{}) {
		t.Errorf("%+v without files", got)
	}
}

func TestClientsNeedACertificateIfSo(t *testing.T) {
	f, other := newFiles(t, time.Now), newFiles(t, time.Now)
	s, _ := serve(t, f, Options{ClientCAFile: f.authority})
	client := func(f files) *tls.Config {
		pair, err := f.issuer.Client(f.dir, "client", "kube-apiserver")
		if err != nil {
			t.Fatal(err)
		}
		return &tls.Config{RootCAs: f.pool, Certificates: []tls.Certificate{pair.TLS()}}
	}
	if code, _, err := send(s, "/validate", client(f)); code != http.StatusOK {
		t.Errorf("with a certificate: %d %v", code, err)
	}
	if code, _, err := send(s, "/validate", &tls.Config{RootCAs: f.pool}); code != http.StatusUnauthorized {
		t.Errorf("without: %d %v", code, err)
	}
	if code, _, err := send(s, readyPath, &tls.Config{RootCAs: f.pool}); code != http.StatusOK {
		t.Errorf("a health check without: %d %v", code, err)
	}
	stranger := client(other)
	stranger.RootCAs = f.pool
	if code, _, err := send(s, "/validate", stranger); err == nil && code != http.StatusUnauthorized {
		t.Errorf("with another authority's: %d", code)
	}
}

// A review that runs when the server stops is finished; the server is not ready
// meanwhile.
func TestStopFinishesReviews(t *testing.T) {
	f := newFiles(t, time.Now)
	begun, finish := make(chan struct{}), make(chan struct{})
	s, stop := serve(t, f, Options{Handlers: map[string]http.Handler{"/slow": Validate(func(context.Context, *Request[*widget]) error {
		close(begun)
		<-finish
		return nil
	})}})
	code := make(chan int)
	go func() {
		got, _, _ := send(s, "/slow", &tls.Config{RootCAs: f.pool})
		code <- got
	}()
	<-begun
	ended := make(chan error)
	go func() { ended <- stop() }()
	for s.Healthy() == nil {
		select {
		case err := <-ended:
			t.Fatalf("ended with %v while a review runs", err)
		default:
		}
	}
	close(finish)
	if got := <-code; got != http.StatusOK {
		t.Errorf("the review got %d", got)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestStopDoesNotWaitForEver(t *testing.T) {
	f := newFiles(t, time.Now)
	begun := make(chan struct{})
	s, stop := serve(t, f, Options{ShutdownTimeout: time.Millisecond, Handlers: map[string]http.Handler{"/stuck": Validate(func(ctx context.Context, _ *Request[*widget]) error {
		close(begun)
		<-ctx.Done()
		return ctx.Err()
	})}})
	ended := make(chan struct{})
	go func() { defer close(ended); _, _, _ = send(s, "/stuck", &tls.Config{RootCAs: f.pool}) }()
	<-begun
	if err := stop(); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	<-ended
}

// With one slot, the second review waits for the first.
func TestReviewsWaitForTheirTurn(t *testing.T) {
	f := newFiles(t, time.Now)
	running, turn := make(chan struct{}), make(chan struct{})
	s, _ := serve(t, f, Options{MaxInFlight: 1, Handlers: map[string]http.Handler{"/": Validate(func(context.Context, *Request[*widget]) error {
		running <- struct{}{}
		<-turn
		return nil
	})}})
	codes := make(chan int)
	for range 2 {
		go func() {
			code, _, _ := send(s, "/", &tls.Config{RootCAs: f.pool})
			codes <- code
		}()
	}
	for range 2 {
		<-running
		select {
		case <-running:
			t.Error("two reviews run")
		default:
		}
		turn <- struct{}{}
		if code := <-codes; code != http.StatusOK {
			t.Errorf("got %d", code)
		}
	}
}

func TestOptionsAreChecked(t *testing.T) {
	f := newFiles(t, time.Now)
	handlers := map[string]http.Handler{"/a": Validate(func(context.Context, *Request[*widget]) error { return nil })}
	for name, opts := range map[string]Options{
		"no certificate":     {Handlers: handlers},
		"two certificates":   {Handlers: handlers, CertFile: f.cert, KeyFile: f.key, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, nil }},
		"no such file":       {Handlers: handlers, CertFile: f.cert, KeyFile: "none"},
		"not a pair":         {Handlers: handlers, CertFile: f.authority, KeyFile: f.key},
		"not an authority":   {Handlers: handlers, CertFile: f.cert, KeyFile: f.key, ClientCAFile: f.key},
		"no handlers":        {CertFile: f.cert, KeyFile: f.key},
		"a relative path":    {CertFile: f.cert, KeyFile: f.key, Handlers: map[string]http.Handler{"a": handlers["/a"]}},
		"the server's path":  {CertFile: f.cert, KeyFile: f.key, Handlers: map[string]http.Handler{readyPath: handlers["/a"]}},
		"a handler of nil":   {CertFile: f.cert, KeyFile: f.key, Handlers: map[string]http.Handler{"/a": nil}},
		"a function of nil":  {CertFile: f.cert, KeyFile: f.key, Handlers: map[string]http.Handler{"/a": Validate[*widget](nil)}},
		"a malformed path":   {CertFile: f.cert, KeyFile: f.key, Handlers: map[string]http.Handler{"/a/{": handlers["/a"]}},
		"paths in conflict":  {CertFile: f.cert, KeyFile: f.key, Handlers: map[string]http.Handler{"/{x}/b": handlers["/a"], "/a/{y}": handlers["/a"]}},
		"negative timeout":   {CertFile: f.cert, KeyFile: f.key, Handlers: handlers, Timeout: -1},
		"negative in flight": {CertFile: f.cert, KeyFile: f.key, Handlers: handlers, MaxInFlight: -1},
		// Numbers without a unit.
		"10 ns for a review": {CertFile: f.cert, KeyFile: f.key, Handlers: handlers, Timeout: 10},
		"5 ns before a stop": {CertFile: f.cert, KeyFile: f.key, Handlers: handlers, ShutdownDelay: 5},
		"30 ns to finish":    {CertFile: f.cert, KeyFile: f.key, Handlers: handlers, ShutdownTimeout: 30},
	} {
		if _, err := New(opts); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	opts := Options{CertFile: f.cert, KeyFile: f.key, Handlers: handlers}
	s, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	if s.Name() != "webhook" || s.NeedLeaderElection() || s.Addr() != nil || s.Healthy() == nil {
		t.Errorf("%s before it runs: %v", s.Name(), s.Healthy())
	}
}

func TestStatsCountReviews(t *testing.T) {
	f := newFiles(t, time.Now)
	small := Validate(func(context.Context, *Request[*widget]) error { return nil })
	small.MaxBodyBytes = 1
	s, stop := serve(t, f, Options{Handlers: map[string]http.Handler{
		"/deny":  Validate(func(context.Context, *Request[*widget]) error { return errors.New("no") }),
		"/panic": Validate(func(context.Context, *Request[*widget]) error { panic("a bug") }),
		"/small": small,
		"/other": http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }),
	}})
	for _, path := range []string{"/deny", "/panic", "/small", "/other"} {
		_, _, _ = send(s, path, &tls.Config{RootCAs: f.pool})
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	stats := s.Stats()
	for n, want := range []Stats{{Path: "/deny", Succeeded: 1}, {Path: "/other", Failed: 1, Panics: 1}, {Path: "/panic", Failed: 1, Panics: 1}, {Path: "/small", Rejected: 1}} {
		got := stats[n]
		if got.Took <= 0 {
			t.Errorf("%+v", got)
		}
		var reviews uint64
		for _, in := range got.TookWithin {
			reviews += in
		}
		got.Took, got.TookWithin = 0, [Buckets]uint64{}
		if got != want || reviews != 1 {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}
