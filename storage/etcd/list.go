package etcd

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/levelwire/levelwire/storage"
)

// A long list is read in pieces at one revision, so that neither side ever
// holds it as one message. The pieces aim at pieceBytes; etcd counts the rest
// of the range for each, so they should not be small either.
const (
	firstPiece = 500
	leastPiece = 50
	mostPiece  = 10_000
	pieceBytes = 16 << 20
)

// List implements storage.Reader.
func (s *Store) List(ctx context.Context, prefix string, opts storage.ListOptions) (storage.Page, error) {
	if err := s.enter(ctx); err != nil {
		return storage.Page{}, err
	}
	defer s.calls.RUnlock()
	from, end := max(rangeStart(prefix), opts.From), rangeEnd(prefix)
	if end != "\x00" && from >= end {
		return s.emptyPage(ctx, opts.At)
	}
	if s.local != nil {
		page, err := s.local.list(ctx, from, end, opts)
		if err != nil && ctx.Err() != nil {
			err = ctx.Err()
		}
		return page, err
	}
	page := storage.Page{Revision: opts.At}
	for piece := firstPiece; ; {
		limit := piece
		if opts.Limit > 0 {
			limit = min(piece, opts.Limit-len(page.Items))
		}
		read := []clientv3.OpOption{clientv3.WithRange(end), clientv3.WithLimit(int64(limit))}
		if opts.KeysOnly {
			read = append(read, clientv3.WithKeysOnly())
		}
		resp, err := s.client.Get(ctx, from, s.readOptions(page.Revision, read...)...)
		if err != nil {
			return storage.Page{}, s.fail(ctx, err)
		}
		if page.Items == nil {
			page.Items = make([]storage.KeyValue, 0, expected(resp.Count, opts.Limit))
		}
		if page.Revision == 0 {
			page.Revision = storage.Revision(resp.Header.Revision)
		}
		size := 1
		for _, kv := range resp.Kvs {
			page.Items = append(page.Items, keyValue(kv))
			size += len(kv.Key) + len(kv.Value)
		}
		page.More = resp.More
		if !resp.More || len(page.Items) == opts.Limit {
			return page, nil
		}
		from = page.Items[len(page.Items)-1].Key + "\x00"
		piece = min(max(pieceBytes*len(resp.Kvs)/size, leastPiece), mostPiece)
	}
}

// emptyPage answers for a range that cannot hold a key, which etcd refuses: a
// read of no key tells the revision, or that it is not to be had.
func (s *Store) emptyPage(ctx context.Context, at storage.Revision) (storage.Page, error) {
	resp, err := s.client.Get(ctx, "\x00", s.readOptions(at, clientv3.WithCountOnly())...)
	if err != nil {
		return storage.Page{}, s.fail(ctx, err)
	}
	if at == 0 {
		at = storage.Revision(resp.Header.Revision)
	}
	return storage.Page{Revision: at}, nil
}

// expected is how many items a list of count keys with a limit has.
func expected(count int64, limit int) int {
	if limit > 0 {
		return min(int(count), limit)
	}
	return int(count)
}

// rangeStart returns the first key of a prefix in etcd's terms, where a key
// cannot be empty.
func rangeStart(prefix string) string {
	if prefix == "" {
		return "\x00"
	}
	return prefix
}

// rangeEnd returns the first key after all keys with prefix; "\x00" means that
// there is no such key, in etcd's API.
func rangeEnd(prefix string) string {
	if prefix == "" {
		return "\x00"
	}
	return clientv3.GetPrefixRangeEnd(prefix)
}
