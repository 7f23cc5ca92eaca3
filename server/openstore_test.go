package server_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
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
	// Default roles that are not there yet may allow it: clients try again.
	config, err := s.UserConfig("jane")
	if err != nil {
		t.Fatal(err)
	}
	jane, err := client.New(config, client.Options{Retry: client.RetryOptions{Max: -1}})
	if err != nil {
		t.Fatal(err)
	}
	defer jane.CloseIdleConnections()
	if _, err := whoami(t, jane); !apierrors.IsTooManyRequests(err) {
		t.Errorf("a user before the default roles are there: %v", err)
	}
	close(h.free)
	s.awaitReady(ctx, t)
	if _, err := whoami(t, jane); err != nil {
		t.Errorf("a user when the default roles are there: %v", err)
	}
	if code, report = readiness(ctx, t, s); code != http.StatusOK {
		t.Errorf("when all is there: %d %s", code, report)
	}
}

// silent is a store that leaves a number of writes of some keys without an answer, and does not make
// them.
type silent struct {
	storage.Store
	keys     string // their prefix
	failures *atomic.Int64
}

func (s silent) Create(ctx context.Context, key string, value []byte, ttl time.Duration) (storage.Revision, error) {
	if strings.HasPrefix(key, s.keys) && s.failures.Add(-1) >= 0 {
		return 0, fmt.Errorf("%w: request timed out", storage.ErrUnavailable)
	}
	return s.Store.Create(ctx, key, value, ttl)
}

// TestStartWaitsForWrites: writes that the storage does not answer delay a start, and do not
// end it, whatever has been written before them: the address of default/kubernetes is claimed before
// that is written, and after its failure nobody knows whether it is.
func TestStartWaitsForWrites(t *testing.T) {
	for name, keys := range map[string]string{
		"the first":                "/registry/",
		"an address":               "/registry/ipaddresses/",
		"what has the address":     "/registry/services/specs/",
		"what is beside that":      "/registry/priorityclasses/",
		"what comes after it":      "/registry/services/endpoints/",
		"the roles":                "/registry/clusterroles/",
		"the last, of fair shares": "/registry/flowschemas/",
	} {
		t.Run(name, func(t *testing.T) {
			store, err := memory.Open(memory.Options{})
			if err != nil {
				t.Fatal(err)
			}
			failures := new(atomic.Int64)
			failures.Store(2)
			s := start(t, server.Config{DataDir: t.TempDir(), OpenStore: func(context.Context) (storage.Store, error) { return silent{store, keys, failures}, nil }})
			service, err := client.For[*corev1.Service](s.client(t)).Namespace("default").Get(deadline(t), "kubernetes", metav1.GetOptions{})
			if err != nil || failures.Load() >= 0 {
				t.Fatalf("%v, %d failures are left", err, failures.Load())
			}
			if _, err := client.For[*networkingv1.IPAddress](s.client(t)).Get(deadline(t), service.Spec.ClusterIP, metav1.GetOptions{}); err != nil {
				t.Errorf("the claim of the address: %v", err)
			}
		})
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
	// A result of this check counts for a second.
	await := func(want int, says string) {
		t.Helper()
		for {
			code, report := readiness(ctx, t, s)
			if code == want && strings.Contains(report, says) {
				return
			}
			if ctx.Err() != nil {
				t.Fatalf("got %d %s, want %d %s", code, report, want, says)
			}
		}
	}
	await(http.StatusOK, "[+]storage ok")
	off.Store(true)
	await(http.StatusInternalServerError, "[-]storage failed")
	off.Store(false)
	await(http.StatusOK, "[+]storage ok")
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
	log.await(t, `msg="filling a cache" resource=pods objects=0`)
	close(h.free)
	s.awaitReady(ctx, t)
}
