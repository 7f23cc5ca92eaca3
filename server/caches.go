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
// are there from the start, those of custom resources come and go. Readers
// never block.
type caches struct {
	changing sync.Mutex // held while a new map is made
	by       atomic.Pointer[map[*resource.Resource]*watchcache.Cache]
	feed     *feed.Feed
	opts     watchcache.Options // of each cache
}

// newCaches makes the caches of a table and the feed that fills them.
func newCaches(table *resource.Table, store feed.Source, opts watchcache.Options, feedOpts feed.Options) *caches {
	by := map[*resource.Resource]*watchcache.Cache{}
	var list []*watchcache.Cache
	for _, res := range table.All() {
		stored := res.Stored()
		if by[stored] == nil {
			by[stored] = watchcache.New(stored, opts)
			list = append(list, by[stored])
		}
	}
	c := &caches{feed: feed.New(store, list, feedOpts), opts: opts}
	c.by.Store(&by)
	return c
}

// Of returns the cache of a stored resource, or nil.
func (c *caches) Of(stored *resource.Resource) *watchcache.Cache { return (*c.by.Load())[stored] }

// Add implements customresource.Caches.
func (c *caches) Add(stored *resource.Resource) *watchcache.Cache {
	cache := watchcache.New(stored, c.opts)
	c.change(func(by map[*resource.Resource]*watchcache.Cache) { by[stored] = cache })
	c.feed.Add(cache)
	return cache
}

// Remove implements customresource.Caches.
func (c *caches) Remove(stored *resource.Resource) {
	cache := c.Of(stored)
	if cache == nil {
		return
	}
	c.change(func(by map[*resource.Resource]*watchcache.Cache) { delete(by, stored) })
	c.feed.Remove(cache)
}

func (c *caches) change(f func(by map[*resource.Resource]*watchcache.Cache)) {
	c.changing.Lock()
	defer c.changing.Unlock()
	by := maps.Clone(*c.by.Load())
	f(by)
	c.by.Store(&by)
}

// fillReports is how often the log says how far the caches have been filled,
// when that takes longer.
const fillReports = 2 * time.Second

// wait returns when all caches that there are now have been filled.
func (c *caches) wait(ctx context.Context, log *slog.Logger) error {
	ticker := time.NewTicker(fillReports)
	defer ticker.Stop()
	begin := time.Now()
	for _, cache := range *c.by.Load() {
		for waiting := true; waiting; {
			select {
			case <-cache.Ready():
				waiting = false
			case <-ticker.C:
				for _, fill := range c.feed.Stats().Fills {
					log.Info("filling a cache", "resource", fill.Resource, "objects", fill.Objects, "waited", time.Since(begin).Round(time.Millisecond))
				}
			case <-ctx.Done():
				return errors.Join(watchcache.ErrNotReady, ctx.Err())
			}
		}
	}
	return nil
}

// overtake returns when all caches have come as far as the store is now.
func (c *caches) overtake(ctx context.Context, store storage.Store) error {
	current, err := store.Current(ctx)
	if err != nil {
		return err
	}
	for _, cache := range *c.by.Load() {
		if _, err := cache.NotOlderThan(ctx, current); err != nil {
			return err
		}
	}
	return nil
}
