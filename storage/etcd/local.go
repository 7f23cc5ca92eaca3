package etcd

import (
	"context"
	"errors"

	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/mvcc"

	"github.com/levelwire/levelwire/storage"
)

// localMember is the store of the etcd member in this process.
type localMember struct {
	kv       mvcc.WatchableKV
	database backend.Backend
	file     string // of the database
}

// list reads a range from the member's store. etcd's API would count all keys from
// each page to the end of the range: reading n keys in pages would take time
// proportional to the square of n. Within the process a list also needs no pieces.
func (l *localMember) list(ctx context.Context, from, end string, opts storage.ListOptions) (storage.Page, error) {
	limit := int64(opts.Limit)
	if limit > 0 {
		limit++ // one more, to know whether the range goes on
	}
	if end == "\x00" {
		end = "" // the store's way to say that the range has no end
	}
	found, err := l.kv.Range(ctx, []byte(from), []byte(end), mvcc.RangeOptions{
		Rev: int64(opts.At), Limit: limit, FastKeysOnly: opts.KeysOnly,
	})
	switch {
	case errors.Is(err, mvcc.ErrCompacted):
		return storage.Page{}, storage.ErrCompacted
	case errors.Is(err, mvcc.ErrFutureRev):
		return storage.Page{}, storage.ErrFutureRevision
	case err != nil:
		return storage.Page{}, err
	}
	page := storage.Page{Revision: opts.At}
	if opts.At == 0 {
		page.Revision = storage.Revision(found.Rev)
	}
	kvs := found.KVs
	if page.More = opts.Limit > 0 && len(kvs) > opts.Limit; page.More {
		kvs = kvs[:opts.Limit]
	}
	page.Items = make([]storage.KeyValue, len(kvs))
	for i, kv := range kvs {
		page.Items[i] = keyValue(kv)
	}
	return page, nil
}
