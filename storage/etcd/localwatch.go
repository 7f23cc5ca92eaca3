package etcd

import (
	"context"
	"errors"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
)

// maxMerged bounds how many changes that arrived separately become one batch.
const maxMerged = 1000

// localWatch is a watchCall without an RPC: it reads what the member's store puts
// into the watcher's channel. When the channel is full because Recv is not called,
// etcd serves the watcher from its history later.
type localWatch struct {
	ctx    context.Context // its end closes stream
	kv     mvcc.WatchableKV
	stream mvcc.WatchStream
	// empty is a stream without a watch: see awaitReadable.
	empty mvcc.WatchStream
	// created is set until Recv has reported the creation. held is a response that
	// was received behind others and cannot be merged with them.
	created bool
	held    *mvcc.WatchResponse
}

// watch begins a watch of the member's store. Through etcd's API each change would
// pass two more goroutines.
func (l *localMember) watch(ctx context.Context) (watchCall, error) {
	w := &localWatch{ctx: ctx, kv: l.kv, stream: l.kv.NewWatchStream(), empty: l.kv.NewWatchStream()}
	context.AfterFunc(ctx, w.stream.Close)
	context.AfterFunc(ctx, w.empty.Close)
	return w, nil
}

// Send implements watchCall.
func (w *localWatch) Send(request *pb.WatchRequest) error {
	create := request.GetCreateRequest()
	if create == nil {
		w.stream.RequestProgressAll()
		return nil
	}
	end := create.RangeEnd
	if string(end) == "\x00" {
		end = []byte{} // the range has no end
	}
	if _, err := w.stream.Watch(w.ctx, 0, create.Key, end, create.StartRevision); err != nil {
		return errors.Join(w.ctx.Err(), err)
	}
	w.created = true
	return nil
}

// Recv implements watchCall. Changes that have already arrived become one
// response.
func (w *localWatch) Recv() (*pb.WatchResponse, error) {
	if w.created {
		w.created = false
		return &pb.WatchResponse{Created: true}, nil
	}
	first, err := w.next()
	if err != nil {
		return nil, err
	}
	out := &pb.WatchResponse{
		Header: &pb.ResponseHeader{Revision: first.Revision}, Events: first.Events,
		CompactRevision: first.CompactRevision, Canceled: first.CompactRevision != 0,
	}
	if len(out.Events) == 0 {
		return out, nil
	}
	merged := out.Events[:len(out.Events):len(out.Events)] // etcd's own slice
	for len(merged) < maxMerged {
		more, ok := w.waiting()
		if !ok {
			break
		}
		if len(more.Events) == 0 {
			w.held = &more
			break
		}
		merged = append(merged, more.Events...)
	}
	out.Events = merged
	w.awaitReadable(merged[len(merged)-1].Kv.ModRevision)
	mvcc.ReportEventReceived(len(merged))
	return out, nil
}

// awaitReadable waits until reads of the member's store see a revision. The store
// hands the changes of a transaction to its watchers before it ends the transaction,
// both under one lock, and the end may write to the disk: without the wait, a list
// that follows an event could be older than the event. To ask an empty stream for
// its progress takes that lock and does nothing else.
func (w *localWatch) awaitReadable(revision int64) {
	for w.kv.Rev() < revision {
		w.empty.RequestProgressAll()
	}
}

// next waits for a response.
func (w *localWatch) next() (mvcc.WatchResponse, error) {
	if w.held != nil {
		held := *w.held
		w.held = nil
		return held, nil
	}
	select {
	case response, ok := <-w.stream.Chan():
		if ok {
			return response, nil
		}
	case <-w.ctx.Done():
	}
	return mvcc.WatchResponse{}, context.Cause(w.ctx)
}

// waiting returns a response if one has already arrived.
func (w *localWatch) waiting() (mvcc.WatchResponse, bool) {
	select {
	case response, ok := <-w.stream.Chan():
		return response, ok
	default:
		return mvcc.WatchResponse{}, false
	}
}
