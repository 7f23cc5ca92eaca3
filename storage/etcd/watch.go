package etcd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/levelwire/levelwire/storage"
)

// Backoff before a broken stream is opened again.
const (
	minBackoff = 20 * time.Millisecond
	maxBackoff = 2 * time.Second
)

// stream is one watch on a watch RPC of its own. It reads the RPC only when
// Next is called: the transport's flow control holds a slow stream back, and etcd
// then serves it from its history instead of buffering. (The client package's own
// Watch would queue without bound.) A broken RPC is opened again after the last
// revision that was delivered.
type stream struct {
	store  *Store
	ctx    context.Context // the caller's; its cause is ErrClosed after Close
	cancel context.CancelCauseFunc
	prefix string

	// reached is the revision of the last batch. Only Next writes it; the progress
	// timer reads it.
	reached  atomic.Int64
	progress progress

	// sending guards Send on rpc, which Next and the progress timer share,
	// and rpc itself against the timer. Next alone replaces it.
	sending sync.Mutex
	rpc     watchCall
	hangUp  context.CancelFunc // ends rpc
	created bool               // etcd has confirmed the watch of rpc; only Next and Watch know
	backoff time.Duration      // before the next attempt to open

	silence silence

	batch  []storage.Event // the caller's until the next call
	held   []storage.Event // of a revision whose events are not complete yet
	closed error           // why the stream ended
}

// Watch implements storage.Watcher.
func (s *Store) Watch(ctx context.Context, prefix string, after storage.Revision) (storage.Stream, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.calls.RUnlock()
	// etcd reports a compacted start only later, in the stream. This read reports it
	// now; the key does not matter.
	_, err := s.read(ctx, absentKey, clientv3.WithCountOnly(), clientv3.WithSerializable(), clientv3.WithRev(int64(after+1)))
	if err = s.ignoreFuture(err); err != nil {
		return nil, s.fail(ctx, err)
	}
	st := &stream{store: s, prefix: prefix}
	st.ctx, st.cancel = context.WithCancelCause(ctx)
	st.reached.Store(int64(after))
	if err := s.streams.add(st); err != nil {
		return nil, err
	}
	// Opened now, while the start is recent: etcd serves an old start from its
	// history, which it reads only ten times a second.
	if err := st.open(); err != nil {
		if st.closed = st.broken(err); st.closed != nil {
			return nil, st.closed
		}
	}
	return st, nil
}

func (s *Store) ignoreFuture(err error) error {
	if err != nil && errors.Is(rpctypes.Error(err), rpctypes.ErrFutureRev) {
		return nil
	}
	return err
}

// Next implements storage.Stream.
func (st *stream) Next() (storage.Batch, error) {
	for st.closed == nil {
		resp, err := st.receive()
		if err == nil {
			var batch storage.Batch
			var ok bool
			if batch, ok, err = st.accept(resp); ok {
				return batch, nil
			}
		}
		if err != nil {
			st.closed = st.broken(err)
		}
	}
	return storage.Batch{}, st.closed
}

// receive reads the next response, after opening the RPC if there is none.
func (st *stream) receive() (*pb.WatchResponse, error) {
	if st.rpc == nil {
		if err := st.open(); err != nil {
			return nil, err
		}
	}
	if st.store.embedded {
		return st.rpc.Recv()
	}
	done := st.silence.begin(st)
	defer done()
	response, err := st.rpc.Recv()
	if err == nil {
		st.silence.answered(response.Created)
	}
	return response, err
}

// open starts a watch RPC after the last revision that was delivered.
func (st *stream) open() error {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(st.ctx))
	rpc, err := st.store.watches(ctx)
	if err != nil {
		cancel()
		return err
	}
	create := &pb.WatchCreateRequest{
		Key:            []byte(rangeStart(st.prefix)),
		RangeEnd:       []byte(rangeEnd(st.prefix)),
		StartRevision:  st.reached.Load() + 1,
		ProgressNotify: true,
		// A local watch encodes nothing, so no response is too long for it.
		Fragment: st.store.local == nil,
	}
	request := &pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: create}}
	st.sending.Lock()
	defer st.sending.Unlock()
	if err := rpc.Send(request); err != nil {
		cancel()
		return err
	}
	st.rpc, st.hangUp, st.created = rpc, cancel, false
	st.silence.opened()
	return nil
}

// accept turns a response into a batch, if there is one in it.
func (st *stream) accept(resp *pb.WatchResponse) (storage.Batch, bool, error) {
	switch {
	case resp.CompactRevision != 0:
		return storage.Batch{}, false, storage.ErrCompacted
	case resp.Canceled:
		return storage.Batch{}, false, cancelled(resp.CancelReason)
	case resp.Created:
		st.backoff, st.created = 0, true
		return storage.Batch{}, false, nil
	case !st.created:
		// A progress notification that overtook the confirmation. etcd holds events back
		// until it has confirmed the watch, also those before this notification.
		return storage.Batch{}, false, nil
	}
	st.gather(resp.Events)
	if resp.Fragment {
		// The events of the last revision may go on in the next fragment.
		st.holdBack()
	}
	reached := st.reached.Load()
	if len(st.batch) > 0 {
		// Not the header's revision: while a watch catches up, that is ahead of
		// events that have not been sent yet.
		reached = int64(st.batch[len(st.batch)-1].Revision)
	} else if len(resp.Events) == 0 && !resp.Fragment {
		// A progress notification: etcd sends it only when no event is on its way.
		reached = max(reached, resp.Header.GetRevision())
	}
	if reached == st.reached.Load() {
		return storage.Batch{}, false, nil
	}
	st.reached.Store(reached)
	return storage.Batch{Events: st.batch, Revision: storage.Revision(reached)}, true, nil
}

// gather makes the held events and the new ones the batch. Events that were
// delivered before a broken RPC was resumed are left out.
func (st *stream) gather(events []*mvccpb.Event) {
	st.batch = append(st.batch[:0], st.held...)
	st.held = st.held[:0]
	reached := st.reached.Load()
	for _, e := range events {
		if e.Kv.ModRevision <= reached {
			continue
		}
		event := storage.Event{Key: string(e.Kv.Key), Revision: storage.Revision(e.Kv.ModRevision)}
		if e.Type == mvccpb.Event_DELETE {
			event.Deleted = true
		} else {
			event.Value = e.Kv.Value
		}
		st.batch = append(st.batch, event)
	}
}

// holdBack keeps the events of the batch's last revision for the next one.
func (st *stream) holdBack() {
	if len(st.batch) == 0 {
		return
	}
	last := st.batch[len(st.batch)-1].Revision
	cut := slices.IndexFunc(st.batch, func(e storage.Event) bool { return e.Revision == last })
	st.held = append(st.held[:0], st.batch[cut:]...)
	st.batch = st.batch[:cut]
}

// broken hangs up. It returns nil, after a pause, if the stream should be
// opened again, and the error of the contract if it is over.
func (st *stream) broken(err error) error {
	if st.hangUp != nil {
		st.hangUp() // first: it frees a Send that holds the lock
	}
	st.sending.Lock()
	st.rpc, st.hangUp = nil, nil
	st.sending.Unlock()
	st.held = st.held[:0]
	switch {
	case st.ctx.Err() != nil:
		return context.Cause(st.ctx)
	case errors.Is(err, storage.ErrCompacted):
		st.cancel(err)
		return err
	case !errors.Is(err, io.EOF) && !isTransient(codeOf(rpctypes.Error(err))):
		err = translate(err)
		st.cancel(err)
		return err
	}
	if st.backoff == 0 {
		st.store.logger.Warn("watch of etcd was interrupted, resuming", "prefix", st.prefix, "after", st.reached.Load(), "error", err)
	}
	st.backoff = min(max(2*st.backoff, minBackoff), maxBackoff)
	timer := time.NewTimer(st.backoff)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-st.ctx.Done():
		return context.Cause(st.ctx)
	}
}

// cancelled returns the error for a watch that etcd has ended. The reason is the
// text of an error of etcd, or empty when the member lost its leader or stops.
func cancelled(reason string) error {
	if reason == "" {
		return rpctypes.ErrGRPCNoLeader
	}
	// Reasons are the text of a gRPC status, "rpc error: code = X desc = Y",
	// or its description alone.
	if _, desc, ok := strings.Cut(reason, "desc = "); ok {
		reason = desc
	}
	for _, known := range []error{rpctypes.ErrGRPCNoLeader, rpctypes.ErrGRPCInvalidAuthToken, rpctypes.ErrGRPCAuthOldRevision} {
		if strings.Contains(reason, rpctypes.ErrorDesc(known)) {
			return rpctypes.ErrGRPCNoLeader
		}
	}
	return fmt.Errorf("watch refused: %s", reason)
}
