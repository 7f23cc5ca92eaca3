package etcd

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/levelwire/levelwire/storage"
)

// Store is a storage.Store in etcd. Open or Embed makes one.
type Store struct {
	client  *clientv3.Client
	commit  committer
	watches watchCaller
	logger  *slog.Logger
	leases  *leases
	streams streams

	// embedded is set if this process is the whole cluster: an acknowledged write
	// has then been applied here, so serializable reads are linearizable.
	embedded bool
	// local is the embedded member's own store, nil for reading by etcd's API.
	local *localMember
	// clientURL is where an embedded member serves its own API, if it does.
	clientURL string
	// shutdown stops the embedded member, or closes the connections to a cluster.
	shutdown func() error

	closed atomic.Bool
	// calls is held for reading by each call, so that Close can wait for them: an
	// embedded member must not be stopped during a read.
	calls sync.RWMutex
}

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
	return nil
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
	s.calls.Lock()
	defer s.calls.Unlock()
	return s.shutdown()
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
		resp, err := s.client.Get(ctx, "\x00", s.readOptions(0, clientv3.WithCountOnly())...)
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
	resp, err := s.client.Get(ctx, key, s.readOptions(at)...)
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
	if s.embedded {
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
