package controller_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/internal/testwait"
	"github.com/levelwire/levelwire/levelwiretest"
	"github.com/levelwire/levelwire/server"
	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/memory"
)

// interruptedStore refuses to remove pods for a while, as if the server were killed between the
// mark of a deletion and the removal.
type interruptedStore struct {
	storage.Store
	refuses *atomic.Bool
}

func (s interruptedStore) Delete(ctx context.Context, key string, expect storage.Revision) (storage.Revision, error) {
	if s.refuses.Load() && strings.HasPrefix(key, "/registry/pods/") {
		return 0, storage.ErrUnavailable
	}
	return s.Store.Delete(ctx, key, expect)
}

// TestInterruptedDeletionOfAPod: a pod without a node that is marked as deleted, and was not
// removed, goes.
func TestInterruptedDeletionOfAPod(t *testing.T) {
	store, err := memory.Open(memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var refuses atomic.Bool
	refuses.Store(true)
	s := levelwiretest.Start(t, func(c *server.Config) {
		c.OpenStore = func(context.Context) (storage.Store, error) { return interruptedStore{store, &refuses}, nil }
	})
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	c := &cluster{t: t, ctx: ctx, server: s}
	t.Cleanup(func() {
		cancel()
		c.group.Wait()
	})
	c.client = c.connect()
	pods := client.For[*corev1.Pod](c.client).Namespace(metav1.NamespaceDefault)
	if _, err := pods.Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "half"}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "main", Image: "registry.example/main"}},
	}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := pods.Delete(ctx, "half", metav1.DeleteOptions{}); err == nil {
		t.Fatal("the pod was removed")
	}
	if pod, err := pods.Get(ctx, "half", metav1.GetOptions{}); err != nil || pod.DeletionTimestamp == nil {
		t.Fatalf("%+v, %v", pod, err)
	}
	refuses.Store(false)
	c.startManager()
	testwait.Stable(t, "the pod is gone", func() (any, bool) {
		pod, err := pods.Get(ctx, "half", metav1.GetOptions{})
		return []any{pod, err}, apierrors.IsNotFound(err)
	})
}
