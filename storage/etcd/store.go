package etcd

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"

	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/etcd/internal/diskreserve"
	"github.com/levelwire/levelwire/storage/etcd/internal/etcdlog"
)

// Store is a storage.Store in etcd. Open or Embed makes one.
type Store struct {
	client  *clientv3.Client
	commit  committer
	watches watchCaller
	logger  *slog.Logger
	leases  *leases
	streams streams

	// embedded is set if this process is the whole cluster.
	embedded bool
	// local is the embedded member's own store, nil for reading by etcd's API. With it,
	// serializable reads are linearizable: an acknowledged write has been applied here,
	// and so has a change that a watch delivers (localWatch.awaitReadable).
	local *localMember
	// clientURL is where an embedded member serves its own API, if it does.
	clientURL string
	// reserve refuses writes to a disk that is nearly full; nil: of an embedded
	// member without one, and of a cluster.
	reserve *diskreserve.Reserve
	// member is the embedded member; nil: of a cluster.
	member *embed.Etcd
	// dir and log are the embedded member's; empty and nil: of a cluster.
	dir string
	log *etcdlog.Log
	// shutdown stops the embedded member, or closes the connections to a cluster.
	shutdown func() error

	closed atomic.Bool
	// calls is held for reading by each call, so that Close can wait for them: an
	// embedded member must not be stopped during a read.
	calls sync.RWMutex
}

// absentKey is a key that is never written. Reads of it ask for revisions only. It is
// among the objects' keys, because a user of etcd may be allowed no others.
const absentKey = "/registry/\x00"

// committer carries out a transaction, once.
type committer func(context.Context, *etcdserverpb.TxnRequest) (*etcdserverpb.TxnResponse, error)

// watchCall is what a stream does with a watch RPC.
type watchCall interface {
	Send(*etcdserverpb.WatchRequest) error
	Recv() (*etcdserverpb.WatchResponse, error)
}

// watchCaller begins a watch RPC, which ends with ctx.
type watchCaller func(ctx context.Context) (watchCall, error)

var _ storage.Store = (*Store)(nil)

func newStore(client *clientv3.Client, commit committer, watches watchCaller, logger *slog.Logger) *Store {
	return &Store{client: client, commit: commit, watches: watches, logger: logger, leases: newLeases(client)}
}

// enter begins a call; the caller must call s.calls.RUnlock if it succeeds.
func (s *Store) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.calls.RLock()
	if s.closed.Load() {
		s.calls.RUnlock()
		return storage.ErrClosed
	}
	if err := s.Failure(); err != nil {
		s.calls.RUnlock()
		return err
	}
	return nil
}

// Failed is closed when the embedded member cannot go on, because the disk has failed
// it or was made read-only: all calls then fail with Failure. A cluster's is nil.
func (s *Store) Failed() <-chan struct{} {
	if s.log == nil {
		return nil
	}
	return s.log.Failed()
}

// Failure is why the embedded member cannot go on; nil if it can. What was acknowledged
// is on the disk. A write that was not may be there, too.
func (s *Store) Failure() error {
	select {
	case <-s.Failed():
		return fmt.Errorf("%w: etcd in data directory %s has failed: %s; check the disk, and start again", storage.ErrUnavailable, s.dir, s.log.Describe(nil))
	default:
		return nil
	}
}

// Close ends all streams and stops the embedded member, or closes the
// connections to the external ones. It waits for calls in progress.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	s.streams.closeAll()
	if !s.embedded {
		// Calls may wait for a cluster that does not answer: shutdown ends them.
		err := s.shutdown()
		s.calls.Lock()
		defer s.calls.Unlock()
		return err
	}
	stopped := make(chan error, 1)
	go func() {
		s.calls.Lock()
		defer s.calls.Unlock()
		stopped <- s.shutdown()
	}()
	select {
	case err := <-stopped:
		return err
	case <-s.Failed():
		return nil // a member that has failed does not stop, and calls may wait for it for ever
	}
}

// Current implements storage.Reader.
func (s *Store) Current(ctx context.Context) (storage.Revision, error) {
	if err := s.enter(ctx); err != nil {
		return 0, err
	}
	defer s.calls.RUnlock()
	var rev storage.Revision
	if s.local != nil {
		rev = storage.Revision(s.local.kv.Rev())
	} else {
		// Any linearizable read returns the revision. This one finds no key.
		resp, err := s.read(ctx, absentKey, s.readOptions(0, clientv3.WithCountOnly())...)
		if err != nil {
			return 0, s.fail(ctx, err)
		}
		rev = storage.Revision(resp.Header.Revision)
	}
	s.streams.requestProgress(rev)
	return rev, nil
}

// Get implements storage.Reader.
func (s *Store) Get(ctx context.Context, key string, at storage.Revision) (storage.KeyValue, error) {
	if err := s.enter(ctx); err != nil {
		return storage.KeyValue{}, err
	}
	defer s.calls.RUnlock()
	resp, err := s.read(ctx, key, s.readOptions(at)...)
	if err != nil {
		return storage.KeyValue{}, s.fail(ctx, err)
	}
	if len(resp.Kvs) == 0 {
		return storage.KeyValue{}, storage.ErrNotFound
	}
	return keyValue(resp.Kvs[0]), nil
}

// readOptions are for a read at a revision, 0 meaning now.
func (s *Store) readOptions(at storage.Revision, more ...clientv3.OpOption) []clientv3.OpOption {
	if at != 0 {
		more = append(more, clientv3.WithRev(int64(at)))
	}
	if s.local != nil {
		more = append(more, clientv3.WithSerializable())
	}
	return more
}

// Compact implements storage.Compactor.
func (s *Store) Compact(ctx context.Context, at storage.Revision) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.calls.RUnlock()
	if _, err := s.client.Compact(ctx, int64(at)); err != nil {
		return s.fail(ctx, err)
	}
	return nil
}

// CheckWrites returns storage.ErrFull, with what to do, while an embedded member
// refuses writes because its disk or its quota is full; reads and watches go on. It
// is for readiness. What a cluster refuses is not known before.
func (s *Store) CheckWrites() error {
	if err := s.reserve.Check(); err != nil || s.member == nil || !hasSpaceAlarm(s.member) {
		return err
	}
	return quotaError(s.member)
}
