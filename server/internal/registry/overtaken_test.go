package registry_test

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/storage"
)

// slowStore takes a while for an update, as one with a disk does.
type slowStore struct {
	storage.Store
	takes time.Duration
}

func (s *slowStore) Update(ctx context.Context, key string, value []byte, expect storage.Revision, ttl time.Duration) (storage.Revision, error) {
	time.Sleep(s.takes)
	return s.Store.Update(ctx, key, value, expect, ttl)
}

// counting is an update that adds one to a ConfigMap's count, whatever that is.
func counting(t *testing.T, r registry.Registry, decisions *atomic.Int64, took func() time.Duration) {
	_, err := r.Update(t.Context(), "default", "count", func(current resource.Object) (resource.Object, error) {
		decisions.Add(1)
		if took != nil {
			time.Sleep(took())
		}
		next := current.DeepCopyObject().(*corev1.ConfigMap)
		n, err := strconv.Atoi(next.Data["key"])
		next.Data["key"], next.ResourceVersion = strconv.Itoa(n+1), ""
		return next, err
	}, registry.UpdateOptions{Unconditional: true})
	if err != nil {
		t.Error(err)
	}
}

// TestOvertakenWritesTakeTurns: each of n writes of one object at the same time is decided
// twice at most, and not n times.
func TestOvertakenWritesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const writers = 50
		f := newFixture(t, func(c *registry.Config) { c.Store = &slowStore{c.Store, time.Millisecond} })
		f.create(t, "configmaps", configMap("count", "0"))
		r := f.of(t, "configmaps")
		var decisions atomic.Int64
		var all sync.WaitGroup
		begun := time.Now()
		for range writers {
			all.Go(func() { counting(t, r, &decisions, nil) })
		}
		all.Wait()
		if n, took := decisions.Load(), time.Since(begun); n > 2*writers || took > (writers+2)*time.Millisecond {
			t.Errorf("%d writes were decided %d times, in %v", writers, n, took)
		}
		wantCount(t, r, writers)
		if n := f.WritesInTurns(); n != 0 {
			t.Errorf("%d objects still have turns", n)
		}
	})
}

// TestASlowWriteGetsItsTurn, and keeps others waiting only so long.
func TestASlowWriteGetsItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, func(c *registry.Config) { c.Store = &slowStore{c.Store, time.Millisecond} })
		f.create(t, "configmaps", configMap("count", "0"))
		r := f.of(t, "configmaps")
		var quick, slow atomic.Int64
		var all sync.WaitGroup
		all.Go(func() { counting(t, r, &slow, func() time.Duration { return 20 * time.Millisecond }) })
		for range 4 {
			all.Go(func() {
				for range 100 {
					counting(t, r, &quick, nil)
				}
			})
		}
		all.Go(func() {
			counting(t, r, new(atomic.Int64), func() time.Duration { return time.Hour })
		})
		time.Sleep(10 * time.Second)
		if n := slow.Load(); n > 3 {
			t.Errorf("a write that takes as long as 20 others was decided %d times", n)
		}
		wantCount(t, r, 401)
		all.Wait()
		wantCount(t, r, 402)
	})
}

// TestAWriteThatLostItsTurnGetsANewPlace: one whose decision once takes too long, since the machine
// stalls, is not overtaken for ever by writes that take turns.
func TestAWriteThatLostItsTurnGetsANewPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, func(c *registry.Config) { c.Store = &slowStore{c.Store, time.Millisecond} })
		f.create(t, "configmaps", configMap("count", "0"))
		r := f.of(t, "configmaps")
		stop := make(chan struct{})
		var others sync.WaitGroup
		written := 0
		var mu sync.Mutex
		for range 4 {
			others.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					counting(t, r, new(atomic.Int64), nil)
					mu.Lock()
					written++
					mu.Unlock()
				}
			})
		}
		var decisions atomic.Int64
		begun := time.Now()
		counting(t, r, &decisions, func() time.Duration {
			if decisions.Load() <= 2 { // beside the others, and in its turn
				return 150 * time.Millisecond
			}
			return 20 * time.Millisecond
		})
		if n, took := decisions.Load(), time.Since(begun); n > 4 || took > time.Second {
			t.Errorf("a write was decided %d times, in %v", n, took)
		}
		close(stop)
		others.Wait()
		wantCount(t, r, written+1)
		if n := f.WritesInTurns(); n != 0 {
			t.Errorf("%d objects still have turns", n)
		}
	})
}

// TestSlowWritesDelayAnotherOnce: a write waits only so long for all that are before it, and
// goes on although they still decide. A dry run does not wait, and no write waits for it.
func TestSlowWritesDelayAnotherOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const writers = 20
		f := newFixture(t, func(c *registry.Config) { c.Store = &slowStore{c.Store, time.Millisecond} })
		f.create(t, "configmaps", configMap("count", "0"))
		r := f.of(t, "configmaps")
		var slow sync.WaitGroup
		for range writers {
			slow.Go(func() {
				counting(t, r, new(atomic.Int64), func() time.Duration { return time.Second })
			})
		}
		time.Sleep(1100 * time.Millisecond) // one is committed, and the others take turns
		if n := f.WritesInTurns(); n != 1 {
			t.Fatalf("%d objects have turns", n)
		}
		dryRun := func(took time.Duration) {
			_, err := r.Update(t.Context(), "default", "count", func(current resource.Object) (resource.Object, error) {
				time.Sleep(took)
				next := current.DeepCopyObject().(*corev1.ConfigMap)
				next.Data["other"], next.ResourceVersion = "value", ""
				return next, nil
			}, registry.UpdateOptions{WriteOptions: registry.WriteOptions{DryRun: true}, Unconditional: true})
			if err != nil {
				t.Error(err)
			}
		}
		begun := time.Now()
		dryRun(0)
		if took := time.Since(begun); took != 0 {
			t.Errorf("a dry run has waited for %v", took)
		}
		for range writers {
			slow.Go(func() { dryRun(time.Hour) })
		}
		begun = time.Now()
		counting(t, r, new(atomic.Int64), nil)
		if took := time.Since(begun); took > 110*time.Millisecond {
			t.Errorf("%d slow writes have delayed another for %v", writers, took)
		}
		slow.Wait()
		wantCount(t, r, writers+1)
		if n := f.WritesInTurns(); n != 0 {
			t.Errorf("%d objects still have turns", n)
		}
	})
}

// TestWritesInTurnsOfADeletedObject: what a write has left is no state to decide on again
// and again once another server has deleted the object.
func TestWritesInTurnsOfADeletedObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, func(c *registry.Config) { c.Store = &slowStore{c.Store, time.Millisecond} })
		f.create(t, "configmaps", configMap("count", "0"))
		r := f.of(t, "configmaps")
		var decisions atomic.Int64
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				_, _ = r.Update(t.Context(), "default", "count", func(current resource.Object) (resource.Object, error) {
					decisions.Add(1)
					time.Sleep(10 * time.Millisecond)
					next := current.DeepCopyObject().(*corev1.ConfigMap)
					next.Data["key"], next.ResourceVersion = strconv.FormatInt(decisions.Load(), 10), ""
					return next, nil
				}, registry.UpdateOptions{Unconditional: true})
			})
		}
		time.Sleep(25 * time.Millisecond) // two are committed, at most
		if _, err := newFixtureOver(t, f.store).of(t, "configmaps").Delete(t.Context(), "default", "count", nil); err != nil {
			t.Fatal(err)
		}
		all.Wait()
		if n := decisions.Load(); n > 4*5 {
			t.Errorf("5 writes of an object that is gone were decided %d times", n)
		}
	})
}

func wantCount(t *testing.T, r registry.Registry, want int) {
	t.Helper()
	got, err := registry.GetAs[*corev1.ConfigMap](t.Context(), r, "default", "count")
	if err != nil || got.Data["key"] != strconv.Itoa(want) {
		t.Errorf("%v, %v; want %d", got.Data, err, want)
	}
}
