package server

import (
	"context"

	"github.com/levelwire/levelwire/resource"
	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/watchcache"
)

// caches has one watch cache for each stored resource.
type caches struct {
	list []*watchcache.Cache
	by   map[*resource.Resource]*watchcache.Cache
}

func newCaches(table *resource.Table) *caches {
	c := &caches{by: map[*resource.Resource]*watchcache.Cache{}}
	for _, res := range table.All() {
		stored := res.Stored()
		if c.by[stored] == nil {
			cache := watchcache.New(stored, watchcache.Options{})
			c.by[stored] = cache
			c.list = append(c.list, cache)
		}
	}
	return c
}

func (c *caches) of(stored *resource.Resource) *watchcache.Cache { return c.by[stored] }

// wait returns when all caches have been filled.
func (c *caches) wait(ctx context.Context) error {
	for _, cache := range c.list {
		if err := cache.WaitReady(ctx); err != nil {
			return err
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
	for _, cache := range c.list {
		if _, err := cache.NotOlderThan(ctx, current); err != nil {
			return err
		}
	}
	return nil
}
