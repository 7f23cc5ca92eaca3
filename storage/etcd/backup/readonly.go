package backup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sort"
	"strings"
	"time"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/proto"

	"github.com/levelwire/levelwire/storage"
)

// ReadOnly is a storage.Store over a snapshot, or a member's database, at its last
// revision. Nothing changes in it, and the file is not modified. In memory are the keys
// alone.
type ReadOnly struct {
	db       *bbolt.DB
	revision storage.Revision
	keys     []snapshotKey // ascending
	closed   chan struct{}
}

var _ storage.Store = (*ReadOnly)(nil)

// snapshotKey is a key that exists at the last revision.
type snapshotKey struct {
	name              string
	at                []byte // where its value is
	modified, created int64
}

var keyBucket = []byte("key")

const (
	revisionBytes = 8 + 1 + 8 // main, '_', sub
	tombstone     = 't'
)

// OpenReadOnly opens a snapshot of etcd, of levelwire, or the database of a member that
// does not run. The checksum of a snapshot must be right.
func OpenReadOnly(file string) (*ReadOnly, error) {
	checked, err := isSnapshot(file)
	if err == nil && checked {
		err = checkSum(file)
	}
	if err != nil {
		return nil, err
	}
	db, err := bbolt.Open(file, 0o400, &bbolt.Options{ReadOnly: true, Timeout: time.Second})
	if err != nil {
		return nil, fmt.Errorf("%s is no snapshot and no database of etcd: %w", file, err)
	}
	s := &ReadOnly{db: db, closed: make(chan struct{})}
	if err := db.View(s.index); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", file, err), db.Close())
	}
	return s, nil
}

// checkSum compares a snapshot with the SHA-256 at its end.
func checkSum(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // It was only read.
	info, err := file.Stat()
	if err != nil {
		return err
	}
	sum, want := sha256.New(), make([]byte, sha256.Size)
	if _, err := io.CopyN(sum, file, info.Size()-sha256.Size); err != nil {
		return err
	}
	if _, err := io.ReadFull(file, want); err != nil {
		return err
	}
	if !bytes.Equal(sum.Sum(nil), want) {
		return fmt.Errorf("%s is damaged: its checksum, at byte %d, is not that of the bytes before it", path, info.Size()-sha256.Size)
	}
	return nil
}

// index reads which keys exist.
func (s *ReadOnly) index(tx *bbolt.Tx) error {
	bucket := tx.Bucket(keyBucket)
	if bucket == nil {
		return errors.New("there are no keys of etcd in it")
	}
	live := map[string]snapshotKey{}
	err := bucket.ForEach(func(at, value []byte) error {
		if len(at) < revisionBytes {
			return fmt.Errorf("a key of %d bytes is no revision", len(at))
		}
		var kv mvccpb.KeyValue
		if err := proto.Unmarshal(value, &kv); err != nil {
			return fmt.Errorf("the value at revision %d: %w", binary.BigEndian.Uint64(at), err)
		}
		s.revision = max(s.revision, storage.Revision(binary.BigEndian.Uint64(at)))
		if len(at) > revisionBytes && at[revisionBytes] == tombstone {
			delete(live, string(kv.Key))
			return nil
		}
		live[string(kv.Key)] = snapshotKey{name: string(kv.Key), at: slices.Clone(at), modified: kv.ModRevision, created: kv.CreateRevision}
		return nil
	})
	if err != nil {
		return err
	}
	s.revision = max(s.revision, 1)
	for _, k := range live {
		s.keys = append(s.keys, k)
	}
	slices.SortFunc(s.keys, func(a, b snapshotKey) int { return strings.Compare(a.name, b.name) })
	return nil
}

// check returns the error of a read at a revision.
func (s *ReadOnly) check(ctx context.Context, at storage.Revision) error {
	select {
	case <-s.closed:
		return storage.ErrClosed
	default:
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case at > s.revision:
		return storage.ErrFutureRevision
	case at != 0 && at < s.revision:
		return storage.ErrCompacted
	}
	return nil
}

// find returns the index of the first key at or after name.
func (s *ReadOnly) find(name string) int {
	return sort.Search(len(s.keys), func(i int) bool { return s.keys[i].name >= name })
}

// value reads one key.
func (k *snapshotKey) value(tx *bbolt.Tx) (storage.KeyValue, error) {
	var kv mvccpb.KeyValue
	if err := proto.Unmarshal(tx.Bucket(keyBucket).Get(k.at), &kv); err != nil {
		return storage.KeyValue{}, err
	}
	return storage.KeyValue{Key: k.name, Value: kv.Value, Modified: storage.Revision(k.modified), Created: storage.Revision(k.created)}, nil
}

// Get implements storage.Reader.
func (s *ReadOnly) Get(ctx context.Context, key string, at storage.Revision) (kv storage.KeyValue, err error) {
	if err := s.check(ctx, at); err != nil {
		return kv, err
	}
	i := s.find(key)
	if i == len(s.keys) || s.keys[i].name != key {
		return kv, storage.ErrNotFound
	}
	err = s.db.View(func(tx *bbolt.Tx) (err error) {
		kv, err = s.keys[i].value(tx)
		return err
	})
	return kv, err
}

// List implements storage.Reader.
func (s *ReadOnly) List(ctx context.Context, prefix string, opts storage.ListOptions) (storage.Page, error) {
	page := storage.Page{Revision: s.revision}
	if err := s.check(ctx, opts.At); err != nil {
		return page, err
	}
	err := s.db.View(func(tx *bbolt.Tx) error {
		for i := s.find(max(prefix, opts.From)); i < len(s.keys) && strings.HasPrefix(s.keys[i].name, prefix); i++ {
			if opts.Limit > 0 && len(page.Items) == opts.Limit {
				page.More = true
				break
			}
			k := &s.keys[i]
			kv := storage.KeyValue{Key: k.name, Modified: storage.Revision(k.modified), Created: storage.Revision(k.created)}
			if !opts.KeysOnly {
				var err error
				if kv, err = k.value(tx); err != nil {
					return err
				}
			}
			page.Items = append(page.Items, kv)
		}
		return nil
	})
	return page, err
}

// Current implements storage.Reader.
func (s *ReadOnly) Current(ctx context.Context) (storage.Revision, error) {
	return s.revision, s.check(ctx, 0)
}

// Oldest implements storage.Historian: only the last revision can be read.
func (s *ReadOnly) Oldest(ctx context.Context) (storage.Revision, error) { return s.Current(ctx) }

// Replay implements storage.Historian.
func (s *ReadOnly) Replay(ctx context.Context, _ string, after, through storage.Revision, _ func([]storage.Event) error) error {
	if through > s.revision {
		return storage.ErrFutureRevision
	}
	return s.check(ctx, min(after, s.revision))
}

// Watch implements storage.Watcher: the stream says how far it is, and then nothing.
func (s *ReadOnly) Watch(ctx context.Context, _ string, after storage.Revision) (storage.Stream, error) {
	return &stillStream{s, ctx, after < s.revision}, s.check(ctx, min(after, s.revision))
}

// stillStream has no events.
type stillStream struct {
	store  *ReadOnly
	ctx    context.Context // of Watch: the stream ends with it
	behind bool
}

// Next implements storage.Stream.
func (st *stillStream) Next() (storage.Batch, error) {
	if st.behind {
		st.behind = false
		return storage.Batch{Revision: st.store.revision}, st.store.check(st.ctx, 0)
	}
	select {
	case <-st.ctx.Done():
		return storage.Batch{}, st.ctx.Err()
	case <-st.store.closed:
		return storage.Batch{}, storage.ErrClosed
	}
}

// Create implements storage.Writer: it fails with storage.ErrReadOnly, as the other
// writes do.
func (*ReadOnly) Create(context.Context, string, []byte, time.Duration) (storage.Revision, error) {
	return 0, storage.ErrReadOnly
}

// Update implements storage.Writer.
func (*ReadOnly) Update(context.Context, string, []byte, storage.Revision, time.Duration) (storage.Revision, error) {
	return 0, storage.ErrReadOnly
}

// Delete implements storage.Writer.
func (*ReadOnly) Delete(context.Context, string, storage.Revision) (storage.Revision, error) {
	return 0, storage.ErrReadOnly
}

// Compact implements storage.Compactor.
func (*ReadOnly) Compact(context.Context, storage.Revision) error { return storage.ErrReadOnly }

// Close ends all streams and closes the file.
func (s *ReadOnly) Close() error {
	select {
	case <-s.closed:
		return nil
	default:
		close(s.closed)
		return s.db.Close()
	}
}
