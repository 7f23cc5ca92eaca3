package conformance

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/levelwire/levelwire/server"
	"github.com/levelwire/levelwire/storage/etcd"
)

// startTimeout bounds how long a server may take to start or to stop.
const startTimeout = 30 * time.Second

// running is a server in this process.
type running struct {
	*server.Server
	config *rest.Config
	stop   func() // drains the server and waits for it; may be called again
}

// start runs a server until the test ends or it is stopped.
func start(t testing.TB, config server.Config) *running {
	t.Helper()
	if config.SecurePort == 0 {
		config.SecurePort = server.AnyPort
	}
	config.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	s, err := server.Listen(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	stopped := false
	stop := func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the server ended with %v", err)
		}
	}
	t.Cleanup(stop)
	select {
	case <-s.Ready():
	case err := <-ended:
		stopped = true
		t.Fatalf("the server did not start: %v", err)
	case <-time.After(startTimeout):
		t.Fatal("the server is not ready")
	}
	clientConfig, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	return &running{Server: s, config: clientConfig, stop: stop}
}

// startAged runs a server whose first versions are forgotten. It has been
// started before, as its caches remember what they have seen themselves, and
// its store has been compacted.
func startAged(t testing.TB, config server.Config) *running {
	t.Helper()
	start(t, config).stop()
	young := config
	young.CompactionInterval, young.CompactionRetention = 20*time.Millisecond, time.Nanosecond
	s := start(t, young)
	behind, err := connect(s.config)
	if err != nil {
		t.Fatal(err)
	}
	defer behind.close()
	e := newEnv(t.Context(), behind, "default")
	err = e.until(func() (bool, error) {
		if _, err := e.post(e.ctx, e.configMaps(), e.unique(), configMap(fmt.Sprint("o", e.sequence), "1")); err != nil {
			return false, err
		}
		a, err := e.exchange(e.ctx, request{path: e.configMaps() + "?resourceVersionMatch=Exact&resourceVersion=1"})
		return err == nil && a.code == http.StatusGone, err
	})
	if err != nil {
		t.Fatalf("nothing was compacted: %v", err)
	}
	if err := e.empty(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.stop()
	return start(t, config)
}

// startEtcd runs an etcd that listens, and returns its URL.
func startEtcd(t testing.TB) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	store, err := etcd.Embed(ctx, etcd.EmbedConfig{Dir: t.TempDir(), ListenClientURL: "http://127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Errorf("etcd: %v", err)
		}
	})
	return store.ClientURL()
}
