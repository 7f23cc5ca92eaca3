package conformance

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/levelwiretest"
	"github.com/levelwire/levelwire/server"
	"github.com/levelwire/levelwire/storage/etcd"
)

// startTimeout bounds how long a server may take to start or to stop.
const startTimeout = 3 * time.Minute

// start runs a server until the test ends or it is stopped.
func start(t testing.TB, config server.Config) *levelwiretest.Server {
	t.Helper()
	return levelwiretest.Start(t, func(c *server.Config) {
		config.Logger = c.Logger
		if config.SecurePort == 0 {
			config.SecurePort = c.SecurePort
		}
		*c = config
	})
}

// startAged runs a server whose first versions are forgotten: its store has been
// compacted, and its caches were filled after that.
func startAged(t testing.TB, config server.Config) *levelwiretest.Server {
	t.Helper()
	young := config
	young.CompactionInterval, young.CompactionRetention = 20*time.Millisecond, time.Nanosecond
	// What a compaction has not done when its server stops, the next one begins anew: on a busy
	// machine one server has to live for longer. How long that takes is up to the machine.
	for lives := time.Second; ; lives = min(2*lives, 30*time.Second) {
		s := start(t, young)
		forgotten, err := hasForgotten(t.Context(), s.Config(), lives)
		s.Stop()
		if err != nil {
			t.Fatal(err)
		}
		if forgotten {
			return start(t, config)
		}
	}
}

// hasForgotten writes for a while, so that there is something to compact, and reports
// whether the first version was gone already.
func hasForgotten(ctx context.Context, config *rest.Config, while time.Duration) (bool, error) {
	c, err := connect(config)
	if err != nil {
		return false, err
	}
	defer c.close()
	e := newEnv(ctx, c, "default")
	begun := time.Now()
	err = e.until(func() (bool, error) {
		_, err := e.post(ctx, e.configMaps(), e.unique(), configMap(fmt.Sprint("o", e.sequence), "1"))
		return time.Since(begun) > while, err
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
