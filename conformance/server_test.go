package conformance

import (
	"context"
	"errors"
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

// startAged runs a server whose first versions are forgotten: its store has been
// compacted, and its caches were filled after that.
func startAged(t testing.TB, config server.Config) *running {
	t.Helper()
	young := config
	young.CompactionInterval, young.CompactionRetention = 20*time.Millisecond, time.Nanosecond
	for begun := time.Now(); time.Since(begun) < startTimeout; {
		s := start(t, young)
		forgotten, err := hasForgotten(t.Context(), s.config)
		s.stop()
		if err != nil {
			t.Fatal(err)
		}
		if forgotten {
			return start(t, config)
		}
	}
	t.Fatal("nothing was compacted")
	return nil
}

// hasForgotten writes, so that there is something to compact, and reports
// whether the first version was gone already.
func hasForgotten(ctx context.Context, config *rest.Config) (bool, error) {
	c, err := connect(config)
	if err != nil {
		return false, err
	}
	defer c.close()
	e := newEnv(ctx, c, "default")
	begun := time.Now()
	err = e.until(func() (bool, error) {
		_, err := e.post(ctx, e.configMaps(), e.unique(), configMap(fmt.Sprint("o", e.sequence), "1"))
		return time.Since(begun) > time.Second, err
	})
	if err != nil {
		return false, err
	}
	a, err := e.exchange(ctx, request{path: e.configMaps() + "?resourceVersionMatch=Exact&resourceVersion=1"})
	return err == nil && a.code == http.StatusGone, errors.Join(err, e.empty(ctx))
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
