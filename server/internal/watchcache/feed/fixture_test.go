package feed_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/server/internal/watchcache/cachetest"
	"github.com/levelwire/levelwire/server/internal/watchcache/feed"
	"github.com/levelwire/levelwire/server/internal/watchcache/podtest"
	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/memory"
	"github.com/levelwire/levelwire/storage/storagetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type pod = podtest.Pod

var (
	podA, podB, podC = podtest.PodA, podtest.PodB, podtest.PodC

	podResource  = podtest.PodResource
	nodeResource = podtest.NodeResource
	nodeValue    = podtest.NodeValue
	selecting    = podtest.Selecting
	openStore    = storagetest.OpenMemory
	write        = podtest.Write
	writeKey     = podtest.WriteKey
	erase        = podtest.Erase
	now          = podtest.Now

	watching     = cachetest.Watching
	drain        = cachetest.Drain
	eventStrings = cachetest.Strings
	expect       = cachetest.Expect
	run          = cachetest.Run
	startCaches  = cachetest.StartCaches
	compactAfter = cachetest.CompactAfter
	content      = cachetest.Content
	revisions    = cachetest.Revisions
)

// rig is a store with a feed that runs.
type rig struct {
	store *memory.Store
	pods  *watchcache.Cache
	nodes *watchcache.Cache
	feed  *feed.Feed
}

// startRig runs a feed over the store in a synctest bubble until the test ends.
func startRig(t *testing.T, store *memory.Store, source feed.Source, opts feed.Options) *rig {
	t.Helper()
	return startRigOf(t, store, source, opts, watchcache.Options{})
}

// startRigOf is startRig with options of the caches.
func startRigOf(t *testing.T, store *memory.Store, source feed.Source, opts feed.Options, cacheOpts watchcache.Options) *rig {
	t.Helper()
	r := &rig{store: store, pods: watchcache.New(podResource(), cacheOpts), nodes: watchcache.New(nodeResource(), cacheOpts)}
	if source == nil {
		source = store
	}
	r.feed = feed.New(source, []*watchcache.Cache{r.pods, r.nodes}, opts)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.feed.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("the feed ended: %v", err)
		}
	})
	synctest.Wait()
	return r
}

// objectOf is the pod as the cache decodes it.
func objectOf(t testing.TB, c *watchcache.Cache, p pod, revision storage.Revision) *watchcache.Object {
	t.Helper()
	o, err := c.Decode(p.Key(), p.Value(), revision)
	if err != nil {
		t.Fatal(err)
	}
	return o
}
