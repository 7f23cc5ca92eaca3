package watchstream

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/read"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/status"
)

// Resources is the table of what is served. Its method is called concurrently.
type Resources interface {
	// Lookup returns the resource with that name in URLs, or nil.
	Lookup(group, version, plural string) *resource.Resource
}

// Config is what all streams of a server share. All fields are required.
type Config struct {
	// Resources has the present definitions of custom resources.
	Resources Resources
	// Stopping is closed when the server drains: streams end then.
	Stopping <-chan struct{}
	// Logger receives what operators should see.
	Logger *slog.Logger
}

// Streams are the open watches of a server. It is safe for concurrent use.
type Streams struct {
	config     Config
	schedulers schedulers
}

// New returns the streams of a server.
func New(config Config) *Streams { return &Streams{config: config} }

// Watch is one watch that is to be served.
type Watch struct {
	Watch   read.Watch // not open yet
	Encoder encoding.EventEncoder
	Sent    prometheus.Counter // counts its events
	Record  *request.Record
}

// ServeHTTP writes the events of a watch to a body until ctx ends or either side
// has had enough.
func (s *Streams) ServeHTTP(ctx context.Context, w http.ResponseWriter, watch Watch) {
	stream := s.newStream(ctx, watch)
	stream.out = &bodyWriter{w: w, control: http.NewResponseController(w)}
	if shared, ok := multiplexedOf(w); ok {
		stream.shared, stream.scheduler = shared, s.schedulers.join(shared.Connection())
		defer s.schedulers.leave(stream.scheduler)
	}
	stream.run()
}

// Serve is ServeHTTP for another protocol than plain HTTP.
func (s *Streams) Serve(ctx context.Context, out EventWriter, watch Watch) {
	stream := s.newStream(ctx, watch)
	stream.out = out
	stream.run()
}

// Connections returns how many connections that carry several answers have open
// watches.
func (s *Streams) Connections() int {
	s.schedulers.mu.Lock()
	defer s.schedulers.mu.Unlock()
	return len(s.schedulers.byConnection)
}

// Stream is one open watch. Only the goroutine that owns it may use it.
type Stream struct {
	owner ownership

	streams   *Streams
	out       EventWriter
	shared    multiplexed     // what out writes to, if that collects for a connection
	scheduler *scheduler      // nil unless shared is set
	ctx       context.Context // the request's, for whichever goroutine is the owner
	watch     read.Watch
	encoder   encoding.EventEncoder
	sent      prometheus.Counter
	record    *request.Record
	pending   pending
}

func (s *Streams) newStream(ctx context.Context, watch Watch) *Stream {
	return &Stream{
		owner: newOwnership(), streams: s, ctx: ctx,
		watch: watch.Watch, encoder: watch.Encoder, sent: watch.Sent, record: watch.Record,
	}
}

// run opens the stream, serves it until either side has had enough, and closes the
// cursor.
func (t *Stream) run() {
	err := t.watch.Open(t.ctx, t)
	t.out.Begin(t.encoder.Form().StreamType())
	if err != nil {
		t.fail(err)
		return
	}
	defer t.watch.Close()
	if t.out.Flush() != nil {
		return
	}
	if t.writeInitial() == nil {
		t.serve()
	}
}

// serve is the request's goroutine: it writes what the scheduler cannot, or
// everything if there is none, and what becomes due with time.
func (t *Stream) serve() {
	if t.writeUntilIdle() != nil {
		return
	}
	timer := time.NewTimer(t.watch.UntilDue())
	defer timer.Stop()
	for {
		select {
		case <-t.owner.handedOff:
		case <-timer.C:
			t.owner.acquire()
			now := time.Now()
			if reason := t.watch.Overdue(t.ctx, now); reason != nil {
				t.fail(reason)
				return
			}
			if !now.Before(t.watch.Deadline()) {
				_ = t.writeReady() // a bookmark may still be due, if it could not be sent in time
				return
			}
		case <-t.ctx.Done():
			t.owner.acquire()
			return
		case <-t.streams.config.Stopping:
			t.owner.acquire()
			if t.watch.AwaitsRevision() {
				t.fail(status.ShuttingDown())
				return
			}
			t.watch.BookmarkNow()
			_ = t.writeReady() // what happened before the end; if it fails, the stream ends anyway
			return
		}
		if t.writeUntilIdle() != nil {
			return
		}
		timer.Reset(t.watch.UntilDue())
	}
}

// writeUntilIdle writes until there is nothing to do, and releases the stream then.
func (t *Stream) writeUntilIdle() error {
	for {
		if err := t.writeReady(); err != nil {
			return err
		}
		if t.owner.release() {
			return nil
		}
	}
}
