package etcd

import (
	"context"
	"errors"
	"sync/atomic"

	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/mvcc"

	"github.com/levelwire/levelwire/storage"
)

// localMember is the store of the etcd member in this process.
type localMember struct {
	kv       mvcc.WatchableKV
	database backend.Backend
	file     string // of the database

	lent       atomic.Int64 // pages, see borrow
	lentBefore int64        // of limitResidentSet: see isLending
}

// list reads a range from the member's store. etcd's API would count all keys from
// each page to the end of the range: reading n keys in pages would take time
// proportional to the square of n. Within the process a list also needs no pieces.
func (l *localMember) list(ctx context.Context, from, end string, opts storage.ListOptions) (storage.Page, error) {
	if opts.Borrow && !opts.KeysOnly {
		return l.borrow(ctx, from, end, opts)
	}
	found, more, err := l.find(ctx, from, end, opts)
	if err != nil {
		return storage.Page{}, err
	}
	page := storage.Page{Revision: opts.At, More: more, Items: make([]storage.KeyValue, len(found.KVs))}
	if opts.At == 0 {
		page.Revision = storage.Revision(found.Rev)
	}
	for i, kv := range found.KVs {
		page.Items[i] = keyValue(kv)
	}
	return page, nil
}

// find reads a range, and whether it goes on after what the options ask for.
func (l *localMember) find(ctx context.Context, from, end string, opts storage.ListOptions) (found *mvcc.RangeResult, more bool, err error) {
	limit := int64(opts.Limit)
	if limit > 0 {
		limit++ // one more, to know whether the range goes on
	}
	if end == "\x00" {
		end = "" // the store's way to say that the range has no end
	}
	found, err = l.kv.Range(ctx, []byte(from), []byte(end), mvcc.RangeOptions{
		Rev: int64(opts.At), Limit: limit, FastKeysOnly: opts.KeysOnly,
	})
	switch {
	case errors.Is(err, mvcc.ErrCompacted):
		return nil, false, storage.ErrCompacted
	case errors.Is(err, mvcc.ErrFutureRev):
		return nil, false, storage.ErrFutureRevision
	case err != nil:
		return nil, false, err
	}
	if more = opts.Limit > 0 && len(found.KVs) > opts.Limit; more {
		found.KVs = found.KVs[:opts.Limit]
	}
	return found, more, nil
}
