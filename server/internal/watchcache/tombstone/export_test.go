package tombstone

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/levelwire/levelwire/storage"
)

// BatchRecords and Overhead are limits and sizes that tests go by.
const (
	BatchRecords = batchRecords
	Overhead     = overhead
)

// SavedBatch is one batch of a store.
type SavedBatch struct {
	From, Through storage.Revision
	Records       []string // key@revision
}

// SavedBatches returns the batches that a store has, and how many stale ones.
func SavedBatches(ctx context.Context, store storage.Reader) (list []SavedBatch, stale int, err error) {
	b, err := loadBatches(ctx, store, time.Now, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, 0, err
	}
	for _, saved := range b.list {
		one := SavedBatch{From: saved.batch.from, Through: saved.batch.through}
		for _, r := range saved.batch.records {
			one.Records = append(one.Records, fmt.Sprint(r.key, "@", r.revision))
		}
		list = append(list, one)
	}
	return list, len(b.stale), nil
}

// EncodeEmpty returns a batch without records.
func EncodeEmpty(from, through storage.Revision, saved time.Time) ([]byte, error) {
	b := batch{from: from, through: through, saved: saved}
	return b.encode()
}
