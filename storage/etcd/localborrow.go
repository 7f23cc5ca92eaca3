package etcd

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/levelwire/levelwire/storage"
)

// borrow is list with the values where they are: in the mapped file of the database, or
// in etcd's buffer of what is not written to it yet. etcd's own way copies each value
// before the caller sees it, and most callers copy it again. An open read transaction
// keeps the values until the page is released.
//
// A goroutine that holds such a transaction must not begin another one: a defragmentation,
// and a commit that maps the file anew, let none begin and wait for those that are open.
// Therefore the index is read first, which takes a transaction of its own.
func (l *localMember) borrow(ctx context.Context, from, end string, opts storage.ListOptions) (storage.Page, error) {
	for {
		page, err := l.borrowOnce(ctx, from, end, opts)
		if opts.At == 0 && errors.Is(err, storage.ErrCompacted) {
			continue // the revision that was current has been compacted since
		}
		return page, err
	}
}

// borrowOnce makes one attempt.
func (l *localMember) borrowOnce(ctx context.Context, from, end string, opts storage.ListOptions) (storage.Page, error) {
	if err := ctx.Err(); err != nil {
		return storage.Page{}, err
	}
	opts.KeysOnly = true
	page, err := l.list(ctx, from, end, opts)
	if err != nil || len(page.Items) == 0 {
		return page, err
	}
	tx := l.database.ConcurrentReadTx()
	tx.RLock()
	if err := readValues(tx, page.Items); err != nil {
		tx.RUnlock()
		return storage.Page{}, l.whyMissing(err, page.Revision)
	}
	l.lent.Add(1)
	page.Release = tx.RUnlock
	return page, nil
}

// readValues reads the values that keys got at their revisions.
func readValues(tx backend.UnsafeReader, items []storage.KeyValue) (err error) {
	lookup := changeLookup{tx, mvcc.NewRevBytes(), mvcc.NewRevBytes()}
	for i := range items {
		if items[i].Value, err = lookup.value(items[i].Key, items[i].Modified); err != nil {
			return err
		}
	}
	return nil
}

// whyMissing returns the reason for an error of readValues. A transaction has every value
// that the index named at a revision before it began, except those that a compaction at a
// later revision has removed in between. etcd refuses reads at revisions before that of a
// compaction before it removes anything. The caller holds no transaction.
func (l *localMember) whyMissing(err error, at storage.Revision) error {
	if errors.Is(err, errMissing) && storage.Revision(l.kv.FirstRev()) > at {
		return storage.ErrCompacted
	}
	return err
}

// errMissing says that a database lacks a value.
var errMissing = errors.New("etcd's database lacks a value")

// changeLookup finds changes in a transaction of the database, which has them under their
// revisions and their numbers within the transactions of etcd that made them.
type changeLookup struct {
	tx      backend.UnsafeReader
	at, end []byte // room for keys
}

// value returns the value that a key got at a revision.
func (c *changeLookup) value(key string, at storage.Revision) ([]byte, error) {
	c.at = mvcc.RevToBytes(mvcc.Revision{Main: int64(at)}, c.at)
	_, changes := c.tx.UnsafeRange(schema.Key, c.at, nil, 0)
	if value, ok, err := valueIn(changes, key); ok || err != nil {
		return value, err
	}
	// Another program has changed several keys in one transaction, and this is not its first.
	c.end = mvcc.RevToBytes(mvcc.Revision{Main: int64(at) + 1}, c.end)
	_, changes = c.tx.UnsafeRange(schema.Key, c.at, c.end, 0)
	value, ok, err := valueIn(changes, key)
	if err == nil && !ok {
		err = fmt.Errorf("%w: that of %q at revision %d", errMissing, key, at)
	}
	return value, err
}

// valueIn returns the value of a key among changes of one transaction, which changes each
// key at most once.
func valueIn(changes [][]byte, key string) (value []byte, ok bool, err error) {
	for _, change := range changes {
		changed, value, err := splitChange(change)
		if err != nil {
			return nil, false, fmt.Errorf("a change of %q in etcd's database: %w", key, err)
		}
		if string(changed) == key {
			return value, true, nil
		}
	}
	return nil, false, nil
}

// The fields of mvccpb.KeyValue that splitChange reads.
const (
	keyField   protowire.Number = 1
	valueField protowire.Number = 5
)

// splitChange returns the key and the value of an encoded mvccpb.KeyValue, which share
// its memory.
func splitChange(change []byte) (key, value []byte, err error) {
	for rest := change; len(rest) > 0; {
		field, kind, n := protowire.ConsumeTag(rest)
		if n < 0 {
			return nil, nil, protowire.ParseError(n)
		}
		rest = rest[n:]
		n = protowire.ConsumeFieldValue(field, kind, rest)
		if n < 0 {
			return nil, nil, protowire.ParseError(n)
		}
		if kind == protowire.BytesType && (field == keyField || field == valueField) {
			content, _ := protowire.ConsumeBytes(rest)
			if field == keyField {
				key = content
			} else {
				value = content[:len(content):len(content)] // what follows is not the caller's
			}
		}
		rest = rest[n:]
	}
	return key, value, nil
}
