package tombstone

import (
	"context"
	"log/slog"
	"time"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/watchcache/state"
	"github.com/levelwire/levelwire/storage"
)

// Stored are the tombstones of a store up to a revision.
type Stored struct {
	// Since is the revision after which none is missing.
	Since storage.Revision
	// Of are the tombstones of each resource that was asked for, ascending.
	Of map[*resource.Resource][]Tombstone
}

// Reader reads tombstones from a store when a server starts.
type Reader struct {
	// Now is the clock by which batches age.
	Now func() time.Time
	// Logger must not be nil.
	Logger *slog.Logger
	// ResourceOf returns the stored resource that a key of the store belongs to;
	// nil if the key is not served, or its resource is not asked for.
	ResourceOf func(key string) *resource.Resource
}

// Read reads the tombstones up to from, beyond which the caller knows all
// deletions. There are none if the batches do not reach up to there.
func (r *Reader) Read(ctx context.Context, store storage.Reader, from storage.Revision) (Stored, error) {
	s := Stored{Since: from, Of: map[*resource.Resource][]Tombstone{}}
	b, err := loadBatches(ctx, store, r.Now, r.Logger)
	if err != nil || b.through() < from {
		return s, err
	}
	for i := range b.list {
		batch := &b.list[i].batch
		for j := range batch.records {
			if batch.records[j].revision <= from {
				r.add(&s, &batch.records[j], batch.saved)
			}
		}
	}
	s.Since = min(from, b.list[0].batch.from)
	return s, nil
}

// add adds one tombstone.
func (r *Reader) add(s *Stored, found *record, saved time.Time) {
	res := r.ResourceOf(found.key)
	if res == nil {
		return
	}
	o, err := state.NewTombstoneMetadata(res, found.key[len(res.StorePrefix):], found.written, found.created, found.metadata)
	if err != nil {
		r.Logger.Warn("a tombstone in the store cannot be read", "key", found.key, "error", err)
		return
	}
	list := s.Of[res]
	if n := len(list); n > 0 && list[n-1].Revision == found.revision {
		list[n-1].Through = found.revision - 1
	}
	s.Of[res] = append(list, Tombstone{found.revision, found.revision, o, saved})
}
