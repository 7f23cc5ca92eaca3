package watchcache

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/levelwire/levelwire/storage"
)

// A batch ends, and the next one begins, behind the revision at which it has
// reached one of these. A store may refuse values of a few megabytes.
const (
	tombstoneBatch      = 1000
	tombstoneBatchBytes = 512 << 10 // of keys and residues, before they are compressed
)

// batches are the deletions that a store remembers.
type batches struct {
	list []savedTombstones // in order, each beginning where the one before ends; the last may grow
	// stale are those that say nothing any more: from before a gap, or not to be
	// read. They are deleted, or written over by one that begins at the same
	// revision.
	stale []savedTombstones
	now   func() time.Time
}

// savedTombstones are a batch with its place in the store.
type savedTombstones struct {
	tombstones
	key      string
	modified storage.Revision // of the key; 0 if it is not there
	size     int              // of what it holds
}

// loadTombstones reads all batches.
func (f *Feed) loadTombstones(ctx context.Context, store storage.Reader) (*batches, error) {
	page, err := store.List(ctx, TombstonePrefix, storage.ListOptions{})
	if err != nil {
		return nil, err
	}
	b := &batches{now: f.opts.Now}
	for _, item := range page.Items {
		saved := savedTombstones{key: item.Key, modified: item.Modified}
		saved.tombstones, err = decodeTombstones(item.Value)
		switch n := len(b.list); {
		case err != nil:
			f.opts.Logger.Warn("deletions in the store cannot be read: clients that were away for long list again", "key", item.Key, "error", err)
			fallthrough
		case saved.through >= item.Modified: // from the history of another store
			b.stale = append(append(b.stale, b.list...), saved)
			b.list = nil
			continue
		case n > 0 && b.list[n-1].through != saved.from:
			b.stale = append(b.stale, b.list...)
			b.list = nil
		}
		for i := range saved.list {
			saved.size += saved.list[i].size()
		}
		b.list = append(b.list, saved)
	}
	return b, nil
}

func (t *tombstone) size() int { return len(t.key) + len(t.residue) }

// through is up to where deletions have been written down; 0 if none has.
func (b *batches) through() storage.Revision {
	if len(b.list) == 0 {
		return 0
	}
	return b.list[len(b.list)-1].through
}

// startAnew forgets what there is: not all is known of the time up to since.
func (b *batches) startAnew(since storage.Revision) {
	b.stale = append(b.stale, b.list...)
	b.list = nil
	b.begin(since)
}

// begin makes the batch that is to grow.
func (b *batches) begin(from storage.Revision) {
	b.list = append(b.list, savedTombstones{tombstones: tombstones{from: from, through: from}, key: fmt.Sprintf("%s%020d", TombstonePrefix, from)})
}

// beginIfFull sees to it that there is one that can grow.
func (b *batches) beginIfFull() {
	if n := len(b.list); n == 0 || b.list[n-1].full() {
		b.begin(max(b.through(), 1))
	}
}

func (s *savedTombstones) full() bool {
	return len(s.list) >= tombstoneBatch || s.size >= tombstoneBatchBytes
}

// add adds a tombstone to the last batch.
func (b *batches) add(t tombstone) {
	last := &b.list[len(b.list)-1]
	last.list = append(last.list, t)
	last.size += t.size()
}

// save writes the last batch, which then has all deletions up to through. It fails
// with a storage.ConflictError if another server was quicker.
func (b *batches) save(ctx context.Context, store storage.Writer, through storage.Revision) error {
	last := &b.list[len(b.list)-1]
	last.through, last.saved = through, b.now()
	value, err := last.encode()
	if err != nil {
		return err
	}
	for i := range b.stale {
		if old := &b.stale[i]; old.key == last.key && old.modified != 0 {
			last.modified, old.modified = old.modified, 0 // written over
		}
	}
	if last.modified == 0 {
		last.modified, err = store.Create(ctx, last.key, value, 0)
	} else {
		last.modified, err = store.Update(ctx, last.key, value, last.modified, 0)
	}
	if errors.Is(err, storage.ErrTooLarge) && len(last.list) > 0 {
		// Nobody could remember that, and history must not grow for ever.
		b.startAnew(through)
		return b.save(ctx, store, through)
	}
	return err
}

// forget deletes what is stale, and the oldest batches that are beyond the
// limits. The last one stays.
func (b *batches) forget(ctx context.Context, store storage.Writer, opts *FeedOptions) error {
	total, size := 0, int64(0)
	for i := range b.list {
		total += len(b.list[i].list)
		size += int64(b.list[i].size)
	}
	doomed := b.stale
	for i := range b.list[:len(b.list)-1] {
		if total <= opts.Tombstones && size <= opts.TombstoneBytes && opts.Now().Sub(b.list[i].saved) <= opts.TombstoneAge {
			break
		}
		total -= len(b.list[i].list)
		size -= int64(b.list[i].size)
		doomed = append(doomed, b.list[i])
	}
	for i := range doomed {
		if doomed[i].modified == 0 {
			continue
		}
		if _, err := store.Delete(ctx, doomed[i].key, doomed[i].modified); err != nil && !errors.Is(err, storage.ErrConflict) {
			return err
		}
	}
	return nil
}
