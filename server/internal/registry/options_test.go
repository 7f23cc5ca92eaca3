package registry_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/server/internal/registry"
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

func TestNewUIDNamesObjects(t *testing.T) {
	f := newFixture(t, func(c *registry.Config) { c.NewUID = func() types.UID { return "the-uid" } })
	if got := f.create(t, "configmaps", configMap("c", "x")).Object.GetUID(); got != "the-uid" {
		t.Errorf("uid %q", got)
	}
}
