package registry_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/storage"
)

// TestDeleteWorkersBoundACollection holds every deletion up, to see how many
// are under way.
func TestDeleteWorkersBoundACollection(t *testing.T) {
	for _, workers := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			_, configure, run := withCaches(t)
			var running atomic.Int64
			gate := make(chan struct{})
			f := newFixture(t, configure, func(c *registry.Config) {
				c.DeleteWorkers = workers
				c.Admission = append(c.Admission, func(_ context.Context, q *registry.Request) error {
					if q.Operation == registry.Delete {
						running.Add(1)
						<-gate
					}
					return nil
				})
			})
			for i := range 2 * workers {
				f.create(t, "configmaps", configMap(fmt.Sprint("c", i), "x"))
			}
			run(f.store)
			done := make(chan error)
			go func() {
				_, err := f.of(t, "configmaps").DeleteCollection(t.Context(), "default", nil, nil)
				done <- err
			}()
			synctest.Wait()
			if got := int(running.Load()); got != workers {
				t.Errorf("%d deletions are under way, want %d", got, workers)
			}
			close(gate)
			if err := <-done; err != nil {
				t.Error(err)
			}
			if got := int(running.Load()); got != 2*workers {
				t.Errorf("%d deletions, want %d", got, 2*workers)
			}
		})
	}
}

// heldStream is a store whose streams wait for deliver.
type heldStream struct {
	storage.Store
	deliver chan struct{}
}

func (s heldStream) Watch(ctx context.Context, prefix string, after storage.Revision) (storage.Stream, error) {
	stream, err := s.Store.Watch(ctx, prefix, after)
	return waitingStream{stream, s.deliver}, err
}

type waitingStream struct {
	storage.Stream
	deliver chan struct{}
}

func (s waitingStream) Next() (storage.Batch, error) {
	batch, err := s.Stream.Next()
	<-s.deliver
	return batch, err
}

// TestACollectionIsDeletedNoFasterThanCachesFollow: consistent reads wait for the
// cache, so deletions must not run ahead of it.
func TestACollectionIsDeletedNoFasterThanCachesFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const objects = 300
		_, configure, run := withCaches(t)
		f := newFixture(t, configure)
		for i := range objects {
			f.create(t, "configmaps", configMap(fmt.Sprint("c", i), "x"))
		}
		held := heldStream{f.store, make(chan struct{})}
		run(held)
		before, err := f.store.Current(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		go func() {
			_, err := f.of(t, "configmaps").DeleteCollection(t.Context(), "default", nil, nil)
			done <- err
		}()
		synctest.Wait()
		if now, err := f.store.Current(t.Context()); err != nil || now-before > 100 {
			t.Errorf("%d writes while the caches stand still, %v", now-before, err)
		}
		close(held.deliver)
		if err := <-done; err != nil {
			t.Error(err)
		}
		if page, err := f.store.List(t.Context(), "/registry/configmaps/default/", storage.ListOptions{}); err != nil || len(page.Items) > 0 {
			t.Errorf("%d objects are left, %v", len(page.Items), err)
		}
	})
}

func TestNewUIDNamesObjects(t *testing.T) {
	f := newFixture(t, func(c *registry.Config) { c.NewUID = func() types.UID { return "the-uid" } })
	if got := f.create(t, "configmaps", configMap("c", "x")).Object.GetUID(); got != "the-uid" {
		t.Errorf("uid %q", got)
	}
}
