package server

import (
	"context"
	"fmt"
	"time"

	"github.com/levelwire/levelwire/server/internal/watchcache/caches"
	"github.com/levelwire/levelwire/storage"
)

// The defaults of how much history is kept, and for how long: docs/operators/history.md.
const (
	defaultInterval  = 5 * time.Minute
	defaultRetention = 5 * time.Minute
	// defaultRevisions is as many as the log of one cache keeps events.
	defaultRevisions = 32768
	// leastBytes makes a number that was meant in a larger unit an error.
	leastBytes = 1 << 20
)

// defaultBytes is how many bytes of history are kept. An etcd cluster has no
// default: its operator decides how much room it has.
var defaultBytes = map[Storage]int64{Embedded: 1 << 30, Memory: 256 << 20}

// completeHistory is the part of ensureDefaults for history and tombstones.
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

// meter returns the counter of the bytes of history; nil if they have no limit.
func (c *Config) meter() *storage.Meter {
	if c.CompactionBytes <= 0 || c.CompactionInterval < 0 {
		return nil
	}
	return storage.NewMeter(resourcePrefix, c.CompactionBytes)
}

// resourcePrefix is the prefix of the keys of all objects.
const resourcePrefix = "/registry/"

// compact compacts the store from time to time. It begins when the server is ready:
// only then are all resources known whose deletions must be written before.
func (s *Server) compact(ctx context.Context, store storage.Store, caches *caches.Set, meter *storage.Meter) error {
	select {
	case <-s.ready:
	case <-ctx.Done():
		return nil
	}
	c := &s.config
	opts := storage.CompactionOptions{
		Interval: c.CompactionInterval, Retention: c.CompactionRetention, Revisions: c.CompactionRevisions, Meter: meter, Now: c.Now, Logger: c.Logger,
		Failed: caches.CompactionFailed,
	}
	if c.Storage != Memory && !c.ExactHistory {
		opts.Before = func(ctx context.Context, at storage.Revision) (bool, error) {
			return caches.Feed.BeforeCompaction(ctx, store, at)
		}
	}
	return ignoreCanceled(ctx, storage.CompactLoop(ctx, caches.Feed.Compactable(store), opts))
}
