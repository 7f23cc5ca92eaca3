package server_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server"
	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/memory"
)

// TestOpenStore: a store that was filled before the server ran is served.
func TestOpenStore(t *testing.T) {
	store, err := memory.Open(memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const value = `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"mine","namespace":"default","uid":"1"}}`
	if _, err := store.Create(t.Context(), "/registry/configmaps/default/mine", []byte(value), 0); err != nil {
		t.Fatal(err)
	}
	s := start(t, server.Config{DataDir: t.TempDir(), OpenStore: func(context.Context) (storage.Store, error) { return store, nil }})
	if _, err := configMaps(s.client(t)).Get(deadline(t), "mine", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

// held is a store whose Create blocks until the test releases it.
type held struct {
	storage.Store
	free chan struct{}
}

func (h held) Create(ctx context.Context, key string, value []byte, ttl time.Duration) (storage.Revision, error) {
	select {
	case <-h.free:
		return h.Store.Create(ctx, key, value, ttl)
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// TestNotReadyBeforeAllIsServed: filled caches alone do not make a server ready.
func TestNotReadyBeforeAllIsServed(t *testing.T) {
	store, err := memory.Open(memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	h := held{store, make(chan struct{})}
	s := launch(t, server.Config{DataDir: t.TempDir(), OpenStore: func(context.Context) (storage.Store, error) { return h, nil }})
	ctx := deadline(t)
	code, report := readiness(ctx, t, s)
	for !strings.Contains(report, "[+]caches ok") {
		code, report = readiness(ctx, t, s)
	}
	if code != http.StatusInternalServerError || !strings.Contains(report, "[-]startup failed") {
		t.Errorf("before all is there: %d %s", code, report)
	}
	close(h.free)
	s.awaitReady(ctx, t)
	if code, report = readiness(ctx, t, s); code != http.StatusOK {
		t.Errorf("when all is there: %d %s", code, report)
	}
}

// severed is a store that does not answer Current while it is cut off.
type severed struct {
	storage.Store
	off *atomic.Bool
}

func (s severed) Current(ctx context.Context) (storage.Revision, error) {
	if s.off.Load() {
		return 0, storage.ErrUnavailable
	}
	return s.Store.Current(ctx)
}

// TestNotReadyWithoutStorage: a load balancer must send clients to servers that
// reach the store.
func TestNotReadyWithoutStorage(t *testing.T) {
	store, err := memory.Open(memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, off := deadline(t), new(atomic.Bool)
	s := start(t, server.Config{DataDir: t.TempDir(), OpenStore: func(context.Context) (storage.Store, error) { return severed{store, off}, nil }})
	if code, report := readiness(ctx, t, s); code != http.StatusOK || !strings.Contains(report, "[+]storage ok") {
		t.Errorf("with its storage: %d %s", code, report)
	}
	off.Store(true)
	if code, report := readiness(ctx, t, s); code != http.StatusInternalServerError || !strings.Contains(report, "[-]storage failed") {
		t.Errorf("without: %d %s", code, report)
	}
	off.Store(false)
	if code, report := readiness(ctx, t, s); code != http.StatusOK {
		t.Errorf("with its storage again: %d %s", code, report)
	}
}

// slow is a store whose list of pods blocks until the test releases it.
type slow struct {
	storage.Store
	free chan struct{}
}

func (s slow) List(ctx context.Context, prefix string, opts storage.ListOptions) (storage.Page, error) {
	if prefix == "/registry/pods/" {
		select {
		case <-s.free:
		case <-ctx.Done():
			return storage.Page{}, ctx.Err()
		}
	}
	return s.Store.List(ctx, prefix, opts)
}

// TestSlowFillsAreReported: while a large store is read, the log shows progress.
func TestSlowFillsAreReported(t *testing.T) {
	store, err := memory.Open(memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	log, h := newLogRecorder(), slow{store, make(chan struct{})}
	s := launch(t, server.Config{
		DataDir: t.TempDir(), Logger: log.logger(), OpenStore: func(context.Context) (storage.Store, error) { return h, nil },
	})
	ctx := deadline(t)
	log.await(ctx, t, `msg="filling a cache" resource=pods objects=0`)
	close(h.free)
	s.awaitReady(ctx, t)
}
