package etcd_test

import (
	"context"
	"log/slog"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/etcd"
	"github.com/levelwire/levelwire/storage/storagetest"
)

func TestMain(m *testing.M) {
	if dir := childDir(); dir != "" {
		writeForEver(dir)
		return
	}
	if os.Getenv(failingChild) != "" {
		os.Exit(m.Run()) // what a failed member leaves behind ends with the process
	}
	// When etcd panics over a broken log it leaves these two running: it expects the
	// process to end.
	goleak.VerifyTestMain(m,
		goleak.IgnoreTopFunction("go.etcd.io/etcd/server/v3/storage/backend.(*backend).run"),
		goleak.IgnoreTopFunction("go.etcd.io/etcd/server/v3/storage/wal.(*filePipeline).run"))
}

// failingChild in the environment makes the test binary a process whose disk fails.
const failingChild = "LEVELWIRE_TEST_FAILING_DISK"

// start runs etcd in this process until the test ends.
func start(t testing.TB, config etcd.EmbedConfig) *etcd.Store {
	t.Helper()
	if config.Dir == "" {
		config.Dir = t.TempDir()
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	store, err := etcd.Embed(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

// connect opens an external store on an etcd that listens in this process.
func connect(t testing.TB, server *etcd.Store) *etcd.Store {
	t.Helper()
	store, err := etcd.Open(t.Context(), etcd.Config{Endpoints: []string{server.ClientURL()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

const anyPort = "http://127.0.0.1:0"

func TestEmbeddedContract(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) storage.Store { return start(t, etcd.EmbedConfig{}) })
}

func TestExternalContract(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) storage.Store {
		return connect(t, start(t, etcd.EmbedConfig{ListenClientURL: anyPort}))
	})
}

func BenchmarkEmbedded(b *testing.B) {
	storagetest.Bench(b, func(b *testing.B) storage.Store { return start(b, etcd.EmbedConfig{}) })
}

func BenchmarkExternal(b *testing.B) {
	storagetest.Bench(b, func(b *testing.B) storage.Store {
		return connect(b, start(b, etcd.EmbedConfig{ListenClientURL: anyPort}))
	})
}
