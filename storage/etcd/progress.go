package etcd

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/levelwire/levelwire/storage"
)

// A stream whose range is quiet receives nothing for writes elsewhere. The contract
// says that it reaches what Current returned nevertheless, so Current wakes the
// streams that are behind. Mostly their events are on the way and arrive within
// progressDelay. Otherwise the stream requests a progress notification, every
// progressRetry, because etcd ignores the request while it has events to send.
const (
	progressDelay = 5 * time.Millisecond
	progressRetry = 50 * time.Millisecond
)

// streams is the set of open streams. The slice is replaced, never modified,
// so that Current can read it without a lock.
type streams struct {
	mu     sync.Mutex
	open   atomic.Pointer[[]*stream]
	closed bool
}

// add makes st known until its context ends.
func (s *streams) add(st *stream) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		st.cancel(storage.ErrClosed)
		return storage.ErrClosed
	}
	next := append(slices.Clone(s.all()), st)
	s.open.Store(&next)
	context.AfterFunc(st.ctx, func() { s.remove(st) })
	return nil
}

func (s *streams) remove(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := slices.DeleteFunc(slices.Clone(s.all()), func(x *stream) bool { return x == st })
	s.open.Store(&next)
}

func (s *streams) all() []*stream {
	if open := s.open.Load(); open != nil {
		return *open
	}
	return nil
}

// closeAll ends all streams with ErrClosed, and those to come.
func (s *streams) closeAll() {
	s.mu.Lock()
	s.closed = true
	all := s.all()
	s.mu.Unlock()
	for _, st := range all {
		st.cancel(storage.ErrClosed)
	}
}

// requestProgress makes the streams that are behind rev reach it.
func (s *streams) requestProgress(rev storage.Revision) {
	for _, st := range s.all() {
		if st.reached.Load() < int64(rev) {
			st.progress.want(st, int64(rev))
		}
	}
}

// progress is the timer of a stream that has to reach a revision.
type progress struct {
	mu     sync.Mutex
	timer  *time.Timer
	armed  bool
	target int64     // the revision that the armed timer will check
	late   time.Time // since when the stream has not reached what it was to reach; zero: it has
	wanted int64     // the greatest revision requested; at least target
}

// want arms the timer unless it is armed already.
func (p *progress) want(st *stream, rev int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wanted = max(p.wanted, rev)
	if !p.armed {
		p.arm(st, progressDelay)
	}
}

// arm is called with mu held.
func (p *progress) arm(st *stream, delay time.Duration) {
	p.armed, p.target = true, p.wanted
	if p.timer == nil {
		p.timer = time.AfterFunc(delay, func() { p.check(st) })
		return
	}
	p.timer.Reset(delay)
}

// check runs when the timer fires.
func (p *progress) check(st *stream) {
	p.mu.Lock()
	reached := st.reached.Load()
	p.armed = false
	if reached >= p.wanted || st.ctx.Err() != nil {
		p.late = time.Time{}
		p.mu.Unlock()
		return
	}
	if reached >= p.target {
		p.late = time.Time{}
		p.arm(st, progressDelay)
		p.mu.Unlock()
		return
	}
	if p.late.IsZero() {
		p.late = time.Now()
	}
	late := p.late
	p.mu.Unlock()
	st.requestProgress()
	st.silence.end(st, late)
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.armed {
		p.arm(st, progressRetry)
	}
}

// requestProgress sends a request for a progress notification. It blocks while the
// transport is full and the stream's context has not ended. Recv fails after an
// error, too, so Next handles it.
func (st *stream) requestProgress() {
	st.sending.Lock()
	defer st.sending.Unlock()
	if st.rpc != nil {
		_ = st.rpc.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_ProgressRequest{ProgressRequest: &pb.WatchProgressRequest{}}})
	}
}
