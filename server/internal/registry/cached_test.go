package registry_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/server/internal/watchcache/feed"
	"github.com/levelwire/levelwire/storage"
)

// caches of a fixture, by plural.
type caches map[string]*watchcache.Cache

// withCaches gives every kind a cache. They are fed from run on; until then,
// and if run is never called, they are not ready.
func withCaches(t testing.TB) (caches, func(*registry.Config), func(storage.Store)) {
	t.Helper()
	all := caches{}
	var list []*watchcache.Cache
	for _, res := range kinds() {
		all[res.Plural] = watchcache.New(res, watchcache.Options{})
		list = append(list, all[res.Plural])
	}
	configure := func(c *registry.Config) {
		c.Cache = func(stored *resource.Resource) *watchcache.Cache { return all[stored.Plural] }
	}
	run := func(store storage.Store) {
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- feed.New(store, list, feed.Options{}).Run(ctx) }()
		t.Cleanup(func() {
			cancel()
			if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
		for _, cache := range list {
			if err := cache.WaitReady(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	return all, configure, run
}

// TestNoUpdateIsLostBehindTheCache decides on states that the cache still
// shows although they have been replaced.
func TestNoUpdateIsLostBehindTheCache(t *testing.T) {
	const writers, each = 8, 25
	_, configure, run := withCaches(t)
	f := newFixture(t, configure)
	run(f.store)
	f.create(t, "configmaps", configMap("counter", "0"))
	r := f.of(t, "configmaps")
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for range each {
				if _, err := r.Update(t.Context(), "default", "counter", changing(func(c *corev1.ConfigMap) {
					n, _ := strconv.Atoi(c.Data["key"])
					c.Data = map[string]string{"key": strconv.Itoa(n + 1)}
				}), registry.UpdateOptions{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got := f.current(t, "configmaps", "default", "counter").(*corev1.ConfigMap).Data["key"]; got != strconv.Itoa(writers*each) {
		t.Errorf("the counter is %s after %d increments", got, writers*each)
	}
}

// TestOldCacheDecidesNothing stops the feed, so that the cache shows the past
// for ever. Errors, no-ops and preconditions must be those of the present.
func TestOldCacheDecidesNothing(t *testing.T) {
	all, configure, _ := withCaches(t)
	f := newFixture(t, configure)
	old := f.create(t, "configmaps", configMap("a", "1"))
	f.create(t, "configmaps", configMap("gone", "1"))
	feedOnce(t, f.store, all)

	// Another server writes, and this one's feed has not delivered the change.
	other := newFixtureOver(t, f.store)
	current, err := other.of(t, "configmaps").Update(t.Context(), "default", "a", replacing(configMap("a", "2")), registry.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.of(t, "configmaps").Delete(t.Context(), "default", "gone", nil); err != nil {
		t.Fatal(err)
	}
	r := f.of(t, "configmaps")

	versioned := configMap("a", "3")
	versioned.ResourceVersion = current.Object.GetResourceVersion()
	result, err := r.Update(t.Context(), "default", "a", replacing(versioned), registry.UpdateOptions{WriteOptions: registry.WriteOptions{DryRun: true}})
	if err != nil || result.Revision != current.Revision {
		t.Errorf("an update of the version that is really current: %+v, %v", result, err)
	}
	result, err = r.Update(t.Context(), "default", "a", replacing(configMap("a", "3")), registry.UpdateOptions{WriteOptions: registry.WriteOptions{DryRun: true}})
	if err != nil || result.Revision != current.Revision {
		t.Errorf("a dry run: %+v, %v", result, err)
	}
	_, err = r.Delete(t.Context(), "default", "gone", &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
	wantStatus(t, "a dry run of a delete of what is gone", err, 404, metav1.StatusReasonNotFound, "not found")
	versioned.ResourceVersion = old.Object.GetResourceVersion()
	_, err = r.Update(t.Context(), "default", "a", replacing(versioned), registry.UpdateOptions{})
	wantStatus(t, "an update of the version that the cache shows", err, 409, metav1.StatusReasonConflict, errModified)
	result, err = r.Update(t.Context(), "default", "a", replacing(configMap("a", "1")), registry.UpdateOptions{})
	if err != nil || result.Revision <= current.Revision {
		t.Errorf("an update to what the cache shows was taken for a no-op: %+v, %v", result, err)
	}
	_, err = r.Update(t.Context(), "default", "gone", replacing(configMap("gone", "1")), registry.UpdateOptions{})
	wantStatus(t, "a no-op on what is gone", err, 404, metav1.StatusReasonNotFound, "not found")
	_, err = f.patch(t.Context(), t, "configmaps", "gone", types.MergePatchType, `{"data":{"x":"y"}}`)
	wantStatus(t, "a patch of what is gone", err, 404, metav1.StatusReasonNotFound, "not found")
	_, err = r.Delete(t.Context(), "default", "gone", nil)
	wantStatus(t, "a delete of what is gone", err, 404, metav1.StatusReasonNotFound, "not found")
}

// feedOnce fills the caches and stops their feed.
func feedOnce(t *testing.T, store storage.Store, all caches) {
	t.Helper()
	var list []*watchcache.Cache
	for _, cache := range all {
		list = append(list, cache)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- feed.New(store, list, feed.Options{}).Run(ctx) }()
	for _, cache := range list {
		if err := cache.WaitReady(ctx); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

func TestDeleteCollectionSelects(t *testing.T) {
	_, configure, run := withCaches(t)
	f := newFixture(t, configure)
	run(f.store)
	f.create(t, "namespaces", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}})
	r := f.of(t, "configmaps")
	for i := range 40 {
		obj := configMap(fmt.Sprintf("c%02d", i), "")
		obj.Labels = map[string]string{"odd": fmt.Sprint(i%2 == 1)}
		if _, err := r.Create(t.Context(), []string{"default", "other"}[i%4/2], obj, registry.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	odd, err := watchcache.NewSelection(r.Resource(), "default", "", labels.SelectorFromSet(labels.Set{"odd": "true"}), nil)
	if err != nil {
		t.Fatal(err)
	}
	deleted, err := r.DeleteCollection(t.Context(), "default", odd, nil)
	if err != nil || len(deleted.Objects) != 10 || deleted.Revision == 0 {
		t.Fatalf("%d were deleted at %v, %v", len(deleted.Objects), deleted.Revision, err)
	}
	page, err := f.store.List(t.Context(), "/registry/configmaps/", storage.ListOptions{})
	if err != nil || len(page.Items) != 30 {
		t.Errorf("%d are left, %v", len(page.Items), err)
	}
	policy := metav1.DeletionPropagation("Up")
	_, err = r.DeleteCollection(t.Context(), "default", nil, &metav1.DeleteOptions{PropagationPolicy: &policy})
	if !apierrors.IsInvalid(err) {
		t.Errorf("bad options: %v", err)
	}
	_, err = newFixture(t).of(t, "configmaps").DeleteCollection(t.Context(), "default", nil, nil)
	wantStatus(t, "without a cache", err, 503, metav1.StatusReasonServiceUnavailable, "not there yet")
}

// TestSnapshotShowsAcknowledgedWrites writes and reads while the cache is fed by
// another goroutine: hooks that decide on a snapshot, such as that of a default
// class, must find what a client has just created.
func TestSnapshotShowsAcknowledgedWrites(t *testing.T) {
	_, configure, run := withCaches(t)
	f := newFixture(t, configure)
	run(f.store)
	configMaps := f.of(t, "configmaps")
	for i := range 200 {
		name := "m-" + strconv.Itoa(i)
		obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}
		if _, err := configMaps.Create(t.Context(), "default", obj, registry.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
		snapshot, err := configMaps.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := snapshot.Get("default/" + name); !ok {
			t.Fatalf("%s was created, and the next snapshot, of revision %d, does not have it", name, snapshot.Revision())
		}
	}
}

// TestGetShowsAcknowledgedWrites updates one object and reads it at once, as a hook does
// that finds an annotation of a namespace which a client has just set.
func TestGetShowsAcknowledgedWrites(t *testing.T) {
	_, configure, run := withCaches(t)
	f := newFixture(t, configure)
	run(f.store)
	configMaps := f.of(t, "configmaps")
	f.create(t, "configmaps", configMap("a", "begin"))
	for i := range 1000 {
		want := strconv.Itoa(i)
		if _, err := configMaps.Update(t.Context(), "default", "a", changing(func(m *corev1.ConfigMap) { m.Data["key"] = want }), registry.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		got, err := registry.GetAs[*corev1.ConfigMap](t.Context(), configMaps, "default", "a")
		if err != nil || got.Data["key"] != want {
			t.Fatalf("%s was written, and the next Get has %v, %v", want, got.Data, err)
		}
	}
}

// TestSnapshotGivesUpOnABrokenStream stops the feed, writes, and reads twice, and again
// after another write: hooks get what the cache holds, late but without an error, and only
// the first waits.
func TestSnapshotGivesUpOnABrokenStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, configure, _ := withCaches(t)
		f := newFixture(t, configure)
		f.create(t, "configmaps", configMap("a", "1"))
		feedOnce(t, f.store, all)
		f.create(t, "configmaps", configMap("b", "1"))
		for i, wait := range []time.Duration{3 * time.Second, 0, 0} {
			if i == 2 {
				f.create(t, "configmaps", configMap("c", "1"))
			}
			begun := time.Now()
			snapshot, err := f.of(t, "configmaps").Snapshot(t.Context())
			if err != nil || time.Since(begun) != wait {
				t.Fatalf("after %v, want %v: %v", time.Since(begun), wait, err)
			}
			if _, ok := snapshot.Get("default/a"); !ok {
				t.Error("the snapshot lacks what the cache holds")
			}
		}
	})
}
