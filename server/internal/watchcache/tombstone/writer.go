package tombstone

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/levelwire/levelwire/server/internal/watchcache/state"
	"github.com/levelwire/levelwire/storage"
)

// Store is what a Writer needs of a store.
type Store interface {
	storage.Reader
	storage.Historian
	storage.Writer
}

// Cache is what a Writer needs of the cache of a deleted object.
type Cache interface {
	// LastDecodable is state.Decode's, for a key of the store.
	LastDecodable(ctx context.Context, store storage.Reader, key string, before storage.Revision) (*state.Object, error)
	// TombstoneMetadata reduces a state to what a tombstone keeps.
	TombstoneMetadata(o *state.Object) *state.Object
}

// Writer writes the deletions into the store that a compaction will remove from
// its history.
type Writer struct {
	// Prefix is the prefix of all objects' keys.
	Prefix string
	// Limits bound the tombstones of all resources in the store. Up to a batch
	// more may be kept.
	Limits Limits
	// Now is the clock by which batches age.
	Now func() time.Time
	// Logger must not be nil.
	Logger *slog.Logger
	// CacheOf returns the cache that holds a key of the store; nil if the key is
	// not served.
	CacheOf func(key string) Cache
}

// attempts is how often a write is tried while other servers write the same
// batches.
const attempts = 3

// BeforeCompaction writes the deletions that compacting the store to a revision
// will remove. It returns false if the compaction should be skipped: nothing but
// the writer's own batches has changed since the last one, so compacting would
// only lead to the next compaction. If the store is full, deletions are lost, and
// compacting is all the more useful; clients from before it will list.
func (w *Writer) BeforeCompaction(ctx context.Context, store Store, at storage.Revision) (bool, error) {
	for attempt := 1; ; attempt++ {
		worth, err := w.write(ctx, store, at)
		if errors.Is(err, storage.ErrFull) {
			w.Logger.Warn("deletions are forgotten with the history that is compacted: the store is full", "revision", at, "error", err)
			return true, nil
		}
		overtaken := errors.Is(err, storage.ErrConflict) || errors.Is(err, storage.ErrCompacted)
		if !overtaken || attempt == attempts {
			return worth, err
		}
	}
}

func (w *Writer) write(ctx context.Context, store Store, at storage.Revision) (bool, error) {
	// First, because batches that are loaded later reach at least as far.
	oldest, err := store.Oldest(ctx)
	if err != nil {
		return false, err
	}
	b, err := loadBatches(ctx, store, w.Now, w.Logger)
	if err != nil {
		return false, err
	}
	if b.through() >= at {
		return true, nil // written already, by a server whose compaction failed
	}
	known := max(b.through(), 1)
	// oldest is greater if another program has compacted beyond the batches.
	found, since, changed, err := w.deletions(ctx, store, max(known, oldest), at)
	if err != nil || !changed {
		return false, err
	}
	if since > known {
		b.restart(since)
	}
	b.beginIfFull()
	if err := w.add(ctx, store, b, found); err != nil {
		return false, err
	}
	if err := b.save(ctx, store, at); err != nil {
		return false, err
	}
	return true, b.prune(ctx, store, w.Limits)
}

// add adds records to the batches, and saves the batches that become full.
func (w *Writer) add(ctx context.Context, store Store, b *batches, found []record) error {
	for i := range found {
		if last := &b.list[len(b.list)-1]; last.full() && i > 0 && found[i-1].revision < found[i].revision {
			if err := b.save(ctx, store, found[i-1].revision); err != nil {
				return err
			}
			b.beginIfFull()
		}
		kept, err := w.complete(ctx, store, &found[i])
		switch {
		case errors.Is(err, state.ErrUnknownState):
			b.restart(found[i].revision)
		case err != nil:
			return err
		case kept:
			b.add(found[i])
		}
	}
	return nil
}

// deletions reads the deletions in (from, through] from the store's history, the
// newest if there are more than the limit. None after since is missing. changed
// reports whether the history has any change at all in that range.
func (w *Writer) deletions(ctx context.Context, store storage.Historian, from, through storage.Revision) (found []record, since storage.Revision, changed bool, err error) {
	since = from
	err = store.Replay(ctx, w.Prefix, from, through, func(events []storage.Event) error {
		changed = true
		for i := range events {
			if !events[i].Deleted || w.CacheOf(events[i].Key) == nil {
				continue // not served
			}
			found = append(found, record{key: events[i].Key, revision: events[i].Revision})
			if len(found) > w.Limits.Count {
				since = found[0].revision
			}
			for len(found) > 0 && found[0].revision == since {
				found = found[1:]
			}
		}
		return nil
	})
	return found, since, changed, err
}

// complete reads the tombstone metadata of the object that was deleted. It returns
// false if the key did not exist, or never had a state that could be decoded: no
// client can have the object then.
func (w *Writer) complete(ctx context.Context, store storage.Reader, r *record) (bool, error) {
	cache := w.CacheOf(r.key)
	if cache == nil {
		return false, nil // not served any more
	}
	o, err := cache.LastDecodable(ctx, store, r.key, r.revision)
	if o == nil || err != nil {
		return false, err
	}
	r.written, r.created, r.metadata = o.Revision, o.CreatedRevision, cache.TombstoneMetadata(o).JSON()
	return true, nil
}
