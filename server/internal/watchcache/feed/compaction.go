package feed

import (
	"context"

	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/server/internal/watchcache/tombstone"
	"github.com/levelwire/levelwire/storage"
)

// BeforeCompaction writes the deletions that compacting the store to a revision
// will remove from its history; see tombstone.Writer.
func (f *Feed) BeforeCompaction(ctx context.Context, store tombstone.Store, at storage.Revision) (bool, error) {
	writer := tombstone.Writer{
		Prefix: f.opts.Prefix, Limits: f.opts.tombstoneLimits(), Now: f.opts.Now, Logger: f.opts.Logger,
		CacheOf: func(key string) tombstone.Cache {
			if m := f.owner(key); m != nil {
				return m.cache
			}
			return nil
		},
	}
	return writer.BeforeCompaction(ctx, store, at)
}

// Compactable returns the store as storage.CompactLoop is to see it: with the
// revision that the caches have reached as the current one. So compaction never
// removes events that the caches have yet to read, however little history is kept
// and however busy the machine is.
func (f *Feed) Compactable(store storage.Compactor) storage.Compactable {
	return compactable{store, f.progress}
}

type compactable struct {
	storage.Compactor
	progress *watchcache.Progress
}

// Current implements storage.Compactable.
func (c compactable) Current(context.Context) (storage.Revision, error) {
	return c.progress.Reached(), nil
}
