package server

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/server/internal/watchcache/feed"
	"github.com/levelwire/levelwire/storage"
)

// caches has one watch cache for each stored resource. Those of built-in kinds
// exist from the start, those of custom resources are added and removed. Readers
// never block.
type caches struct {
	updating   sync.Mutex // held while a new map is made
	byResource atomic.Pointer[map[*resource.Resource]*watchcache.Cache]
	feed       *feed.Feed
	opts       watchcache.Options // of each cache
}

// newCaches makes the caches of a table and the feed that fills them.
func newCaches(table *resource.Table, store feed.Source, opts watchcache.Options, feedOpts feed.Options) *caches {
	byResource := map[*resource.Resource]*watchcache.Cache{}
	var list []*watchcache.Cache
	for _, res := range table.All() {
		stored := res.Stored()
		if byResource[stored] == nil {
			byResource[stored] = watchcache.New(stored, opts)
			list = append(list, byResource[stored])
		}
	}
	c := &caches{feed: feed.New(store, list, feedOpts), opts: opts}
	c.byResource.Store(&byResource)
	return c
}

// Of returns the cache of a stored resource, or nil.
func (c *caches) Of(stored *resource.Resource) *watchcache.Cache {
	return (*c.byResource.Load())[stored]
}

// Add implements customresource.Caches.
func (c *caches) Add(stored *resource.Resource) *watchcache.Cache {
	cache := watchcache.New(stored, c.opts)
	c.update(func(byResource map[*resource.Resource]*watchcache.Cache) { byResource[stored] = cache })
	c.feed.Add(cache)
	return cache
}

// Remove implements customresource.Caches.
func (c *caches) Remove(stored *resource.Resource) {
	cache := c.Of(stored)
	if cache == nil {
		return
	}
	c.update(func(byResource map[*resource.Resource]*watchcache.Cache) { delete(byResource, stored) })
	c.feed.Remove(cache)
}

// update replaces the map by one that f has changed.
func (c *caches) update(f func(byResource map[*resource.Resource]*watchcache.Cache)) {
	c.updating.Lock()
	defer c.updating.Unlock()
	byResource := maps.Clone(*c.byResource.Load())
	f(byResource)
	c.byResource.Store(&byResource)
}

// fillReportInterval is how often the progress of fills is logged while the server
// waits for them.
const fillReportInterval = 2 * time.Second

// waitFilled waits until all caches that exist now have been filled.
func (c *caches) waitFilled(ctx context.Context, logger *slog.Logger) error {
	ticker := time.NewTicker(fillReportInterval)
	defer ticker.Stop()
	begin := time.Now()
	for _, cache := range *c.byResource.Load() {
		for waiting := true; waiting; {
			select {
			case <-cache.Ready():
				waiting = false
			case <-ticker.C:
				for _, fill := range c.feed.Stats().Fills {
					logger.Info("filling a cache", "resource", fill.Resource, "objects", fill.Objects, "waited", time.Since(begin).Round(time.Millisecond))
				}
			case <-ctx.Done():
				return errors.Join(watchcache.ErrNotReady, ctx.Err())
			}
		}
	}
	return nil
}

// waitCurrent waits until all caches have reached the store's current revision.
func (c *caches) waitCurrent(ctx context.Context, store storage.Store) error {
	current, err := store.Current(ctx)
	if err != nil {
		return err
	}
	for _, cache := range *c.byResource.Load() {
		if _, err := cache.NotOlderThan(ctx, current); err != nil {
			return err
		}
	}
	return nil
}
