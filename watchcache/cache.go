package watchcache

import (
	"context"
	"log/slog"
	"time"

	"github.com/levelwire/levelwire/resource"
	"github.com/levelwire/levelwire/storage"
)

type bucket struct{}

// Options tunes a Cache.
type Options struct {
	HistoryEvents int
	HistoryBytes  int64
	FreshnessWait time.Duration
	Decode        func(key string, value []byte, revision storage.Revision) (*Object, error)
	Logger        *slog.Logger
}

// Cache holds one resource.
type Cache struct{ ready chan struct{} }

// New returns an empty cache.
func New(res *resource.Resource, opts Options) *Cache { return &Cache{ready: make(chan struct{})} }

// Resource returns what is cached.
func (c *Cache) Resource() *resource.Resource { return nil }

// Ready is closed when the cache has been filled.
func (c *Cache) Ready() <-chan struct{} { return c.ready }

// WaitReady waits for the fill.
func (c *Cache) WaitReady(ctx context.Context) error { return ErrNotReady }

// Current returns what the cache holds now.
func (c *Cache) Current() Snapshot { return Snapshot{} }

// NotOlderThan waits for a revision.
func (c *Cache) NotOlderThan(ctx context.Context, revision storage.Revision) (Snapshot, error) {
	return Snapshot{}, ErrNotReady
}

// Exact returns the state at a revision.
func (c *Cache) Exact(ctx context.Context, revision storage.Revision) (Snapshot, error) {
	return Snapshot{}, ErrNotReady
}

// WatchOptions says what to watch.
type WatchOptions struct {
	After     storage.Revision
	Selection *Selection
	Initial   *Snapshot
}

// Watch starts a watcher.
func (c *Cache) Watch(opts WatchOptions) (*Watcher, error) { return nil, ErrNotReady }

// Watcher is a cursor.
type Watcher struct{ ready chan struct{} }

// Ready wakes.
func (w *Watcher) Ready() <-chan struct{} { return w.ready }

// Read reads.
func (w *Watcher) Read(buf []Event) (int, error) { return 0, ErrClosed }

// Initial reports whether initial events are left.
func (w *Watcher) Initial() bool { return false }

// Reached is for bookmarks.
func (w *Watcher) Reached() storage.Revision { return 0 }

// Close ends the watcher.
func (w *Watcher) Close() {}

// Feed drives caches.
type Feed struct{}

// FeedOptions tunes a Feed.
type FeedOptions struct {
	Logger *slog.Logger
}

// NewFeed returns a feed.
func NewFeed(store storage.Store, caches []*Cache, opts FeedOptions) *Feed { return &Feed{} }

// Run feeds until ctx ends.
func (f *Feed) Run(ctx context.Context) error { return nil }

// Add adds a cache at runtime.
func (f *Feed) Add(c *Cache) {}

// Remove stops feeding a cache.
func (f *Feed) Remove(c *Cache) {}
