package feed

import (
	"context"
	"errors"
	"time"

	"github.com/levelwire/levelwire/server/internal/watchcache/tombstone"
	"github.com/levelwire/levelwire/storage"
)

// maxUnsaved is how many compactions in a row wait for tombstones that cannot be
// written. Without the next one the store's history would grow for ever.
const maxUnsaved = 3

// BeforeCompaction writes the deletions that compacting the store to a revision
// will remove from its history; see tombstone.Writer. If that has failed maxUnsaved
// times in a row, the compaction goes on without: clients that resume from before it
// get 410, and ask for a difference or list.
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
	worth, err := writer.BeforeCompaction(ctx, store, at)
	if err == nil {
		f.unsaved.Store(0)
		return worth, nil
	}
	if ctx.Err() != nil || errors.Is(err, storage.ErrClosed) || f.unsaved.Add(1) < maxUnsaved {
		return false, err
	}
	f.forgotten.Add(1)
	f.opts.Logger.Error("deletions cannot be kept, history is compacted without them: clients that resume from before list again",
		"revision", at, "prefix", tombstone.Prefix, "error", err)
	return true, nil
}

// Compactable returns the store as storage.CompactLoop is to see it: with the
// revision that the caches have reached as the current one. So compaction never
// removes events that the caches have yet to read, however little history is kept
// and however busy the machine is. The feed notes each compaction.
func (f *Feed) Compactable(store storage.Compactor) storage.Compactable {
	return compactable{store, f}
}

type compactable struct {
	store storage.Compactor
	feed  *Feed
}

// Current implements storage.Compactable.
func (c compactable) Current(context.Context) (storage.Revision, error) {
	return c.feed.reachedByAll(), nil
}

// Compact implements storage.Compactor.
func (c compactable) Compact(ctx context.Context, at storage.Revision) error {
	err := c.store.Compact(ctx, at)
	if err == nil || errors.Is(err, storage.ErrCompacted) { // by another server, as far or farther
		c.feed.compactedTo(at)
	}
	return err
}

// oldestInterval is how often the feed asks the store to which revision it has been
// compacted: another server does that, or the store itself. kube-apiserver finds out as often.
const oldestInterval = 15 * time.Second

// Compacted returns the oldest revision that the store can still read, as far as the feed knows:
// a compaction by another program becomes known within oldestInterval. The caches keep
// what they have of the history before it.
func (f *Feed) Compacted() storage.Revision { return storage.Revision(f.compacted.Load()) }

// compactedTo notes that the store cannot read what is before a revision.
func (f *Feed) compactedTo(oldest storage.Revision) {
	for {
		before := f.compacted.Load()
		if int64(oldest) <= before || f.compacted.CompareAndSwap(before, int64(oldest)) {
			return
		}
	}
}

// runCompacted asks the store to which revision it has been compacted, again and again. An error
// only delays the answer.
func (f *Feed) runCompacted(ctx context.Context) error {
	for {
		oldest, err := f.store.Oldest(ctx)
		switch {
		case err == nil:
			f.compactedTo(oldest)
		case ctx.Err() == nil:
			f.opts.Logger.Debug("the store did not say to which revision it has been compacted: asking again", "in", oldestInterval, "error", err)
		}
		if sleep(ctx, oldestInterval) != nil {
			return nil
		}
	}
}
