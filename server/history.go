package server

import (
	"context"
	"fmt"
	"time"

	"github.com/levelwire/levelwire/storage"
)

// What is kept of the past, and for how long: docs/operators/history.md.
const (
	defaultInterval  = 5 * time.Minute
	defaultRetention = 5 * time.Minute
	// defaultRevisions is as many as the cache of one resource tells.
	defaultRevisions = 32768
	// leastBytes makes a number that was meant in larger units an error.
	leastBytes = 1 << 20
)

// defaultBytes is how much history is kept. A cluster of etcd servers belongs to
// somebody, who has thought of its room.
var defaultBytes = map[Storage]int64{Embedded: 1 << 30, Memory: 256 << 20}

// completeHistory does for history and tombstones what ensureDefaults does.
func (c *Config) completeHistory() error {
	switch {
	case c.CompactionRetention < 0:
		return fmt.Errorf("--compaction-retention %s is negative", c.CompactionRetention)
	case c.CompactionBytes > 0 && c.CompactionBytes < leastBytes:
		return fmt.Errorf("--compaction-bytes %d is less than 1Mi", c.CompactionBytes)
	case c.TombstoneLimit < 0:
		return fmt.Errorf("--tombstone-limit %d is negative", c.TombstoneLimit)
	case c.TombstoneBytes < 0:
		return fmt.Errorf("--tombstone-bytes %d is negative", c.TombstoneBytes)
	case c.TombstoneAge < 0:
		return fmt.Errorf("--tombstone-age %s is negative", c.TombstoneAge)
	}
	if c.CompactionRevisions == 0 && c.CompactionRetention == 0 && c.Storage == Embedded {
		c.CompactionRevisions = defaultRevisions
	}
	c.CompactionRevisions = max(c.CompactionRevisions, 0)
	if c.CompactionBytes == 0 {
		c.CompactionBytes = defaultBytes[c.Storage]
	}
	setDefault(&c.CompactionInterval, defaultInterval)
	setDefault(&c.CompactionRetention, defaultRetention)
	return nil
}

// meter returns what counts the bytes of history, if there is a limit of them.
func (c *Config) meter() *storage.Meter {
	if c.CompactionBytes <= 0 || c.CompactionInterval < 0 {
		return nil
	}
	return storage.NewMeter(resourcePrefix, c.CompactionBytes)
}

// resourcePrefix is what the keys of all objects begin with.
const resourcePrefix = "/registry/"

// compact forgets history, as soon as all resources are known whose deletions have
// to be written down before.
func (s *Server) compact(ctx context.Context, store storage.Store, caches *caches, meter *storage.Meter) error {
	select {
	case <-s.ready:
	case <-ctx.Done():
		return nil
	}
	c := &s.config
	opts := storage.CompactionOptions{
		Interval: c.CompactionInterval, Retention: c.CompactionRetention, Revisions: c.CompactionRevisions, Meter: meter, Now: c.Now, Logger: c.Logger,
	}
	if c.Storage != Memory && !c.ExactHistory {
		opts.Before = func(ctx context.Context, at storage.Revision) (bool, error) {
			return caches.feed.BeforeCompaction(ctx, store, at)
		}
	}
	return ignoreEnd(ctx, storage.CompactLoop(ctx, caches.feed.Compactable(store), opts))
}
