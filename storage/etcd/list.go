package etcd

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/levelwire/levelwire/storage"
)

// A long list is read in pages at one revision, so that neither side ever holds
// it as one message. Pages aim at pageBytes. They should not be small, because etcd
// counts the rest of the range for each.
const (
	firstPage = 500
	minPage   = 50
	maxPage   = 10_000
	pageBytes = 16 << 20
)

// List implements storage.Reader.
func (s *Store) List(ctx context.Context, prefix string, opts storage.ListOptions) (storage.Page, error) {
	if err := s.enter(ctx); err != nil {
		return storage.Page{}, err
	}
	page, err := s.list(ctx, prefix, opts)
	release := page.Release
	if release == nil {
		s.calls.RUnlock()
		return page, err
	}
	page.Release = func() {
		release()
		s.calls.RUnlock() // a loan is a part of the call: Close waits for it
	}
	return page, err
}

// list is List within a call.
func (s *Store) list(ctx context.Context, prefix string, opts storage.ListOptions) (storage.Page, error) {
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
	remote := clientv3.WithRequireLeader(ctx)
	for size := firstPage; ; {
		limit := size
		if opts.Limit > 0 {
			limit = min(size, opts.Limit-len(page.Items))
		}
		read := []clientv3.OpOption{clientv3.WithRange(end), clientv3.WithLimit(int64(limit))}
		if opts.KeysOnly {
			read = append(read, clientv3.WithKeysOnly())
		}
		resp, err := s.client.Get(remote, from, s.readOptions(page.Revision, read...)...)
		if err != nil {
			return storage.Page{}, s.fail(ctx, err)
		}
		if page.Items == nil {
			page.Items = make([]storage.KeyValue, 0, expected(resp.Count, opts.Limit))
		}
		if page.Revision == 0 {
			page.Revision = storage.Revision(resp.Header.Revision)
		}
		bytes := 1
		for _, kv := range resp.Kvs {
			page.Items = append(page.Items, keyValue(kv))
			bytes += len(kv.Key) + len(kv.Value)
		}
		page.More = resp.More
		if !resp.More || len(page.Items) == opts.Limit {
			return page, nil
		}
		from = page.Items[len(page.Items)-1].Key + "\x00"
		size = min(max(pageBytes*len(resp.Kvs)/bytes, minPage), maxPage)
	}
}

// emptyPage is the answer for a range that cannot hold a key, which etcd would
// refuse. A read of no key returns the revision, or the error of reading it.
func (s *Store) emptyPage(ctx context.Context, at storage.Revision) (storage.Page, error) {
	resp, err := s.read(ctx, absentKey, s.readOptions(at, clientv3.WithCountOnly())...)
	if err != nil {
		return storage.Page{}, s.fail(ctx, err)
	}
	if at == 0 {
		at = storage.Revision(resp.Header.Revision)
	}
	return storage.Page{Revision: at}, nil
}

// expected returns how many items a list of count keys with a limit has.
func expected(count int64, limit int) int {
	if limit > 0 {
		return min(int(count), limit)
	}
	return int(count)
}

// rangeStart returns the first key with a prefix. etcd's keys are never empty.
func rangeStart(prefix string) string {
	if prefix == "" {
		return "\x00"
	}
	return prefix
}

// rangeEnd returns the first key after all keys with prefix, as etcd's API has it:
// "\x00" if there is none.
func rangeEnd(prefix string) string {
	if prefix == "" {
		return "\x00"
	}
	return clientv3.GetPrefixRangeEnd(prefix)
}
