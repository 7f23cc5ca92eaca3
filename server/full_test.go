package server_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/internal/testwait"
	"github.com/levelwire/levelwire/server"
	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/memory"
)

// fullStore refuses what takes room while full is true.
type fullStore struct {
	storage.Store
	full *atomic.Bool
}

func (s fullStore) Create(ctx context.Context, key string, value []byte, ttl time.Duration) (storage.Revision, error) {
	if s.full.Load() {
		return 0, storage.ErrFull
	}
	return s.Store.Create(ctx, key, value, ttl)
}

// CheckWrites is what embedded storage has.
func (s fullStore) CheckWrites() error {
	if s.full.Load() {
		return storage.ErrFull
	}
	return nil
}

// TestFullStorage: a server starts on a storage without room, reads, says why it does
// not write, and makes what every cluster has when there is room.
func TestFullStorage(t *testing.T) {
	store, err := memory.Open(memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	full := new(atomic.Bool)
	full.Store(true)
	s := start(t, server.Config{DataDir: t.TempDir(), OpenStore: func(context.Context) (storage.Store, error) { return fullStore{store, full}, nil }})
	ctx := deadline(t)
	c := s.client(t)
	namespaces := client.For[*corev1.Namespace](c)
	if list, err := namespaces.List(ctx, metav1.ListOptions{}); err != nil || len(list.Items) != 0 {
		t.Errorf("namespaces of a full storage: %v, %v", list, err)
	}
	_, err = namespaces.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{})
	if status := apierrors.APIStatus(nil); !asStatus(err, &status) || status.Status().Code != http.StatusInsufficientStorage {
		t.Errorf("create: %v, want code 507", err)
	}
	ready := func() int {
		t.Helper()
		resp, err := c.Raw(ctx, client.RawRequest{Path: "/readyz"})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		return resp.StatusCode
	}
	if code := ready(); code != http.StatusInternalServerError {
		t.Errorf("/readyz is %d while writes are refused", code)
	}
	full.Store(false)
	w, err := namespaces.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for found := false; !found; {
		event, err := w.Next()
		if err != nil {
			t.Fatal(err)
		}
		found = event.Object.Name == metav1.NamespaceDefault
	}
	if code := ready(); code != http.StatusOK {
		t.Errorf("/readyz is %d with room", code)
	}
}

// TestFullStorageAfterTheRoles: a storage may have room for the roles, or have them, and none
// for what follows.
func TestFullStorageAfterTheRoles(t *testing.T) {
	store, err := memory.Open(memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	refusals := new(atomic.Int64)
	refusals.Store(2)
	s := start(t, server.Config{DataDir: t.TempDir(), OpenStore: func(context.Context) (storage.Store, error) { return laterFullStore{store, refusals}, nil }})
	ctx, levels := deadline(t), client.For[*flowcontrolv1.PriorityLevelConfiguration](s.client(t))
	testwait.Stable(t, "the default priority levels are made when there is room", func() (any, bool) {
		list, err := levels.List(ctx, metav1.ListOptions{})
		return []any{list, err}, err == nil && len(list.Items) > 1 && refusals.Load() < 0
	})
}

// laterFullStore has no room for priority levels at first.
type laterFullStore struct {
	storage.Store
	refusals *atomic.Int64
}

func (s laterFullStore) Create(ctx context.Context, key string, value []byte, ttl time.Duration) (storage.Revision, error) {
	if strings.Contains(key, "prioritylevelconfigurations") && s.refusals.Add(-1) >= 0 {
		return 0, storage.ErrFull
	}
	return s.Store.Create(ctx, key, value, ttl)
}

func asStatus(err error, into *apierrors.APIStatus) bool {
	status, ok := err.(apierrors.APIStatus) //nolint:errorlint // the client returns it as it is
	*into = status
	return ok
}
