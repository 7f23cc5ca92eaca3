// Package caches is the watch caches of one server, with the feed that fills them, what
// they may use of the process's memory, and their metrics.
package caches

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/server/internal/watchcache/feed"
	"github.com/levelwire/levelwire/storage"
)

// Set has one watch cache for each stored resource. Those of built-in kinds
// exist from the start, those of custom resources are added and removed. Readers
// never block.
type Set struct {
	// Feed fills the caches. Its owner runs it.
	Feed *feed.Feed

	updating   sync.Mutex // held while a new map is made
	byResource atomic.Pointer[map[*resource.Resource]*watchcache.Cache]
	opts       watchcache.Options // of each cache; see optionsOf
	// failedCompactions counts the compactions of the store that failed.
	failedCompactions atomic.Int64
}

// New makes the caches of a table and the feed that fills them.
func New(table *resource.Table, store feed.Source, opts watchcache.Options, feedOpts feed.Options) *Set {
	opts.Budget = watchcache.NewBudget(watchcache.BudgetOptions{})
	byResource := map[*resource.Resource]*watchcache.Cache{}
	var list []*watchcache.Cache
	for _, res := range table.All() {
		stored := res.Stored()
		if byResource[stored] == nil {
			byResource[stored] = watchcache.New(stored, optionsOf(stored, opts))
			list = append(list, byResource[stored])
		}
	}
	c := &Set{Feed: feed.New(store, list, feedOpts), opts: opts}
	c.byResource.Store(&byResource)
	return c
}

// eventHistory is how many bytes of the past of Events are kept in memory, and of their
// tombstones as many again: in a small cluster they are most of what is written, and
// their readers show what is new.
const eventHistory = 1 << 20

// optionsOf returns the options of the cache of a stored resource. What is decoded of a
// definition shares its JSON, which would be held beside the compressed one.
func optionsOf(stored *resource.Resource, opts watchcache.Options) watchcache.Options {
	if stored.Plural == "events" && stored.Group == corev1.GroupName {
		opts.HistoryBytes = eventHistory
		if opts.TombstoneBytes == 0 || opts.TombstoneBytes > eventHistory {
			opts.TombstoneBytes = eventHistory
		}
	}
	if stored.Plural == "customresourcedefinitions" {
		opts.CompressObjects = false
	}
	return opts
}

// CompactionFailed counts a compaction of the store that failed.
func (c *Set) CompactionFailed() { c.failedCompactions.Add(1) }

// Of returns the cache of a stored resource, or nil.
func (c *Set) Of(stored *resource.Resource) *watchcache.Cache {
	return (*c.byResource.Load())[stored]
}

// Compacted returns the revision to which the store behind all caches has been compacted; see
// feed.Feed.Compacted.
func (c *Set) Compacted(*resource.Resource) storage.Revision { return c.Feed.Compacted() }

// Add implements customresource.Caches.
func (c *Set) Add(stored *resource.Resource) *watchcache.Cache {
	cache := watchcache.New(stored, optionsOf(stored, c.opts))
	c.update(func(byResource map[*resource.Resource]*watchcache.Cache) { byResource[stored] = cache })
	c.Feed.Add(cache)
	return cache
}

// Remove implements customresource.Caches.
func (c *Set) Remove(stored *resource.Resource) {
	cache := c.Of(stored)
	if cache == nil {
		return
	}
	c.update(func(byResource map[*resource.Resource]*watchcache.Cache) { delete(byResource, stored) })
	c.Feed.Remove(cache)
	c.opts.Budget.Leave(cache)
}

// update replaces the map by one that f has changed.
func (c *Set) update(f func(byResource map[*resource.Resource]*watchcache.Cache)) {
	c.updating.Lock()
	defer c.updating.Unlock()
	byResource := maps.Clone(*c.byResource.Load())
	f(byResource)
	c.byResource.Store(&byResource)
}

// fillReportInterval is how often the progress of fills is logged while the server
// waits for them.
const fillReportInterval = 2 * time.Second

// WaitFilled waits until all caches that exist now have been filled.
func (c *Set) WaitFilled(ctx context.Context, logger *slog.Logger) error {
	ticker := time.NewTicker(fillReportInterval)
	defer ticker.Stop()
	begin := time.Now()
	for _, cache := range *c.byResource.Load() {
		for waiting := true; waiting; {
			select {
			case <-cache.Ready():
				waiting = false
			case <-ticker.C:
				for _, fill := range c.Feed.Stats().Fills {
					logger.Info("filling a cache", "resource", fill.Resource, "objects", fill.Objects, "waited", time.Since(begin).Round(time.Millisecond))
				}
			case <-ctx.Done():
				return errors.Join(watchcache.ErrNotReady, ctx.Err())
			}
		}
	}
	return nil
}

// WaitCurrent waits until all caches have reached the store's current revision.
func (c *Set) WaitCurrent(ctx context.Context, store storage.Store) error {
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
