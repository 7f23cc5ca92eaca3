package etcd

import (
	"context"
	"errors"

	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/mvcc"

	"github.com/levelwire/levelwire/storage"
)

// localMember is the etcd member in this process.
type localMember struct {
	kv       mvcc.WatchableKV
	database backend.Backend
	file     string // that the database is in
	// clientURL is where it serves its own API, if it does.
	clientURL string
}

// list reads a range from the member's store. Its API would count all keys
// from each page to the end of the range, so that reading many in pages took
// time by the square of their number; and one that is asked in-process need
// not be asked in pieces.
func (l *localMember) list(ctx context.Context, from, end string, opts storage.ListOptions) (storage.Page, error) {
	limit := int64(opts.Limit)
	if limit > 0 {
		limit++ // tells whether there are more
	}
	if end == "\x00" {
		end = "" // which is how the store says that there is none
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
