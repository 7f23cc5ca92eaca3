package transport

import (
	"crypto/tls"
	"encoding/pem"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	clienttransport "k8s.io/client-go/transport"

	"github.com/levelwire/levelwire/internal/faultnet"
	_ "github.com/levelwire/levelwire/internal/testwatchdog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Connections that were replaced are forgotten once their last request has ended,
// however often credentials are rotated.
func TestReplacedConnectionsAreForgotten(t *testing.T) {
	authority := httptest.NewTLSServer(http.NotFoundHandler())
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority.Certificate().Raw})
	authority.Close()
	for name, config := range map[string]Config{"HTTP/1.1": {ForceHTTP1: true}, "HTTP/2": {UnencryptedHTTP2: true}} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "ca.crt")
			synctest.Test(t, func(t *testing.T) { rotateOften(t, config, file, ca) })
		})
	}
}

// rotateOften counts the connections that are left of many rotations.
func rotateOften(t *testing.T, config Config, file string, ca []byte) {
	network := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/watch" {
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}
	}))
	rotate := func(n int) {
		t.Helper()
		if err := os.WriteFile(file, append(ca, strings.Repeat("\n", n)...), 0o600); err != nil {
			t.Fatal(err)
		}
		time.Sleep(checkInterval)
	}
	rotate(0)
	config.Config = &clienttransport.Config{TLS: clienttransport.TLSConfig{CAFile: file}}
	config.Dial, config.ReadIdleTimeout, config.PingTimeout, config.Logger = network.Dial, time.Minute, time.Minute, slog.New(slog.DiscardHandler)
	tr, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	get := func(path string) *http.Response {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://server"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := tr.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	watch := get("/watch")
	const rotations = 20
	for n := range rotations {
		rotate(n + 1)
		_ = get("/").Body.Close()
	}
	if reloads, failures := tr.Reloads(); reloads != rotations || failures != 0 {
		t.Errorf("%d reloads, %d failures", reloads, failures)
	}
	alive := func() (n int) {
		time.Sleep(2 * idleConnTimeout)
		runtime.GC()
		for _, p := range tr.retired {
			if p.Value() != nil {
				n++
			}
		}
		return n
	}
	if n := alive(); n != 1 {
		t.Errorf("%d old transports during the watch", n)
	}
	_ = watch.Body.Close()
	if n := alive(); n != 0 {
		t.Errorf("%d old transports after the watch", n)
	}
	tr.CloseIdleConnections()
}

// serve serves on a network in memory.
func serve(t *testing.T, handler http.Handler) *faultnet.Pipe {
	t.Helper()
	network := faultnet.NewPipe()
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Handler: handler, Protocols: protocols}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(network)
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-done
	})
	return network
}

// An alert of the server and a certificate that is not trusted are distinguished from
// other errors.
func TestRefusals(t *testing.T) {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert}
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.StartTLS()
	defer s.Close()
	for insecure, want := range map[bool]struct{ untrusted, refused bool }{true: {false, true}, false: {true, false}} {
		tr, err := New(Config{Config: &clienttransport.Config{TLS: clienttransport.TLSConfig{Insecure: insecure}}, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = tr.RoundTrip(req)
		if UntrustedServer(err) != want.untrusted || refusedByServer(err) != want.refused {
			t.Errorf("insecure %v: %v", insecure, err)
		}
		tr.CloseIdleConnections()
	}
}
