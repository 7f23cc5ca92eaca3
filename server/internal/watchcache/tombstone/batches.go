package tombstone

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/levelwire/levelwire/storage"
)

// Prefix is the prefix of the keys under which batches are stored, in the order
// of their revisions.
const Prefix = "/levelwire/tombstones/"

// A batch ends, and the next one begins, after the revision at which it has
// reached one of these limits. A store may refuse values of a few megabytes.
const (
	batchRecords = 1000
	batchBytes   = 512 << 10 // of keys and metadata, before compression
)

// batches are the tombstones in a store.
type batches struct {
	list []savedBatch // in order, each beginning where the one before ends; the last may grow
	// stale batches do not count: they are from before a gap, or cannot be read.
	// They are deleted, or overwritten by a batch that begins at the same revision.
	stale []savedBatch
	now   func() time.Time
}

// savedBatch is a batch with its place in the store.
type savedBatch struct {
	batch    batch
	key      string
	modified storage.Revision // of the key; 0 if it does not exist
	size     int              // of its records
}

// loadBatches reads all batches.
func loadBatches(ctx context.Context, store storage.Reader, now func() time.Time, logger *slog.Logger) (*batches, error) {
	page, err := store.List(ctx, Prefix, storage.ListOptions{})
	if err != nil {
		return nil, err
	}
	b := &batches{now: now}
	for _, item := range page.Items {
		saved := savedBatch{key: item.Key, modified: item.Modified}
		saved.batch, err = decodeBatch(item.Value)
		switch n := len(b.list); {
		case err != nil:
			logger.Warn("deletions in the store cannot be read: clients that were away for long list again", "key", item.Key, "error", err)
			fallthrough
		case saved.batch.through >= item.Modified: // from the history of another store
			b.stale = append(append(b.stale, b.list...), saved)
			b.list = nil
			continue
		case n > 0 && b.list[n-1].batch.through != saved.batch.from:
			b.stale = append(b.stale, b.list...)
			b.list = nil
		}
		for i := range saved.batch.records {
			saved.size += saved.batch.records[i].size()
		}
		b.list = append(b.list, saved)
	}
	return b, nil
}

func (r *record) size() int { return len(r.key) + len(r.metadata) }

// through returns the revision up to which deletions are in the store; 0 if there
// are none.
func (b *batches) through() storage.Revision {
	if len(b.list) == 0 {
		return 0
	}
	return b.list[len(b.list)-1].batch.through
}

// restart drops all batches, because deletions up to since are missing, and
// begins a new one there.
func (b *batches) restart(since storage.Revision) {
	b.stale = append(b.stale, b.list...)
	b.list = nil
	b.begin(since)
}

// begin adds an empty batch.
func (b *batches) begin(from storage.Revision) {
	b.list = append(b.list, savedBatch{batch: batch{from: from, through: from}, key: fmt.Sprintf("%s%020d", Prefix, from)})
}

// beginIfFull adds an empty batch if the last one cannot grow.
func (b *batches) beginIfFull() {
	if n := len(b.list); n == 0 || b.list[n-1].full() {
		b.begin(max(b.through(), 1))
	}
}

func (s *savedBatch) full() bool {
	return len(s.batch.records) >= batchRecords || s.size >= batchBytes
}

// add adds a record to the last batch.
func (b *batches) add(r record) {
	last := &b.list[len(b.list)-1]
	last.batch.records = append(last.batch.records, r)
	last.size += r.size()
}

// save writes the last batch, which then covers all deletions up to through. It
// fails with a storage.ConflictError if another server has written it meanwhile.
func (b *batches) save(ctx context.Context, store storage.Writer, through storage.Revision) error {
	last := &b.list[len(b.list)-1]
	last.batch.through, last.batch.saved = through, b.now()
	value, err := last.batch.encode()
	if err != nil {
		return err
	}
	for i := range b.stale {
		if old := &b.stale[i]; old.key == last.key && old.modified != 0 {
			last.modified, old.modified = old.modified, 0 // overwritten
		}
	}
	if last.modified == 0 {
		last.modified, err = store.Create(ctx, last.key, value, 0)
	} else {
		last.modified, err = store.Update(ctx, last.key, value, last.modified, 0)
	}
	if errors.Is(err, storage.ErrTooLarge) && len(last.batch.records) > 0 {
		// No batch could hold these deletions, and history must not grow for ever.
		b.restart(through)
		return b.save(ctx, store, through)
	}
	return err
}

// prune deletes the stale batches, and the oldest ones that exceed the limits.
// The last batch stays.
func (b *batches) prune(ctx context.Context, store storage.Writer, limits Limits) error {
	total, size := 0, int64(0)
	for i := range b.list {
		total += len(b.list[i].batch.records)
		size += int64(b.list[i].size)
	}
	doomed := b.stale
	for i := range b.list[:len(b.list)-1] {
		if total <= limits.Count && size <= limits.Bytes && b.now().Sub(b.list[i].batch.saved) <= limits.Age {
			break
		}
		total -= len(b.list[i].batch.records)
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
