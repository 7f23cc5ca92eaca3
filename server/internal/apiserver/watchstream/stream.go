package watchstream

import (
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
	"github.com/levelwire/levelwire/server/internal/apiserver/reauthorization"
	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/read"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/runqueue"
	"github.com/levelwire/levelwire/server/internal/tracing"
)

// Resources is the table of what is served. Its method is called concurrently.
type Resources interface {
	// Lookup returns the resource with that name in URLs, or nil.
	Lookup(group, version, plural string) *resource.Resource
}

// Config is what all streams of a server share. All fields are required, unless they say
// otherwise.
type Config struct {
	// Resources has the present definitions of custom resources.
	Resources Resources
	// Stopping is closed when the server drains: streams end then.
	Stopping <-chan struct{}
	// WriteTimeout is how long one write to a body may block, unless package h2
	// serves the connection, which has a limit of its own.
	WriteTimeout time.Duration
	// Logger receives what operators should see.
	Logger *slog.Logger
	// Open has watches ended whose rights are withdrawn; nil if no right ever is.
	Open *reauthorization.Watches
	// Events are told of events that are sent; nil if none is traced.
	Events *tracing.Events
}

// Streams are the open watches of a server. It is safe for concurrent use.
type Streams struct {
	config     Config
	schedulers schedulers
	open       openStreams
	named      namedStreams
	timers     timers
	ends       *runqueue.Queue // of the streams that finishRefused ends
	lastError  atomic.Pointer[encodedError]
}

// New returns the streams of a server.
func New(config Config) *Streams { return &Streams{config: config, ends: runqueue.New()} }

// Watch is one watch that is to be served.
type Watch struct {
	Watch   read.Watch // not open yet
	Encoder encoding.EventEncoder
	Sent    prometheus.Counter // counts its events
	Record  *request.Record
	Origin  Origin // for List
	Slot    Slot   // nil: it needs none
	Name    string // for RequestProgress; "": it has none
	// Ended is called when a stream has ended that ServeHTTP has detached, before its answer
	// does; nil: none is.
	Ended func()
	// Rights are what the watch needs for as long as it is open.
	Rights reauthorization.Rights
}

// Origin is what List says about the request that asked for a watch. A request is several
// times as large, and is not kept.
type Origin struct {
	Method, URI, Agent, Remote, Protocol string
	WebSocket                            bool
}

// OriginOf returns the origin of a watch.
func OriginOf(r *http.Request) Origin {
	return Origin{
		Method: r.Method, URI: r.RequestURI, Agent: r.UserAgent(), Remote: r.RemoteAddr, Protocol: r.Proto,
		WebSocket: r.Header.Get("Upgrade") != "",
	}
}

// Slot is taken before a watch writes its initial events, or those that its client has
// missed, and given back after them.
type Slot interface {
	// Wait takes the slot, and blocks until there is one or ctx ends.
	Wait(ctx context.Context) error
	Release()
}

// ServeHTTP writes the events of a watch to a body until ctx ends or either side
// has had enough. Where the connection allows that, and watch.Ended is set, it returns when
// there is nothing to write: the stream is detached then, watch.Record says so, and the caller
// must not use w or the record any more.
func (s *Streams) ServeHTTP(ctx context.Context, w http.ResponseWriter, watch Watch) {
	stream := s.newStream(ctx, watch)
	out := &bodyWriter{w: w, control: http.NewResponseController(w), timeout: s.config.WriteTimeout}
	stream.out = out
	if shared, ok := multiplexedOf(w); ok {
		out.timeout = 0
		stream.shared, stream.scheduler = shared, s.schedulers.join(shared.Connection())
		if watch.Ended != nil {
			stream.detachable = detachableOf(w)
		}
	}
	stream.run(watch.Rights)
}

// Serve is ServeHTTP for another protocol than plain HTTP.
func (s *Streams) Serve(ctx context.Context, out EventWriter, watch Watch) {
	stream := s.newStream(ctx, watch)
	stream.out = out
	stream.run(watch.Rights)
}

// Connections returns how many connections that carry several answers have open
// watches.
func (s *Streams) Connections() int {
	s.schedulers.mu.Lock()
	defer s.schedulers.mu.Unlock()
	return len(s.schedulers.byConnection)
}

// Stream is one open watch. Only the goroutine that owns it may use it.
//
// What a wake-up and a drain look at comes first, side by side: between two events the
// processor's cache forgets a stream, and each further line of it costs a delivery 50 to 100 ns.
type Stream struct {
	owner     ownership
	signals   atomic.Uint32 // for streams whose handlers may return before they end
	opened    bool
	refused   bool        // the error of member was written: nothing may follow
	finished  bool        // finish has been called
	scheduler *scheduler  // nil unless shared is set
	shared    multiplexed // what out writes to, if that collects for a connection
	streams   *Streams
	events    int64 // that were sent
	collected int64 // bytes for the connection, which close adds to those of the record
	sent      prometheus.Counter
	member    reauthorization.Member // its Err is asked before events are read
	watch     read.Watch
	encoder   encoding.EventEncoder
	pending   pending

	out     EventWriter
	ctx     context.Context // the request's, for whichever goroutine is the owner
	record  *request.Record
	slot    Slot
	origin  Origin
	name    string
	entry   openEntry                // in streams.open
	writing atomic.Pointer[progress] // what the request's goroutine is writing

	// The following are for streams whose handlers may return before they end.
	detachable detachable // nil: the request's goroutine serves the stream until its end
	ended      func()     // is called at the end of a detached stream
	due        time.Time  // guarded by timers.mu
	place      int        // in timers.heap, from 1; guarded by timers.mu
}

// written returns how many bytes of the body were sent, or collected for the connection.
func (t *Stream) written() int64 { return t.record.Written + t.collected }

func (s *Streams) newStream(ctx context.Context, watch Watch) *Stream {
	return &Stream{
		streams: s, ctx: ctx, watch: watch.Watch, encoder: watch.Encoder, sent: watch.Sent,
		record: watch.Record, slot: watch.Slot, origin: watch.Origin, name: watch.Name, ended: watch.Ended,
	}
}

// run opens the stream and serves it until either side has had enough, or until it is
// detached.
func (t *Stream) run(rights reauthorization.Rights) {
	if t.detachable == nil {
		t.owner = newOwnership()
	}
	detached := false
	defer func() {
		if !detached {
			t.close()
		}
	}()
	if open := t.streams.config.Open; open != nil && !rights.None() {
		open.Register(t.ctx, &t.member, t, rights)
	}
	if !t.begin() {
		return
	}
	if t.detachable != nil {
		detached = t.serveDetached()
		return
	}
	if t.catchUp() == nil && (t.owner.release() || t.writeUntilIdle() == nil) {
		t.serve()
	}
}

// begin opens the cursor and begins the answer. It returns false if that has failed.
func (t *Stream) begin() bool {
	err := t.watch.Open(t.ctx, t)
	t.out.Begin(t.encoder.Form().StreamType(), err == nil && t.watch.BeginsCoalesced())
	if err != nil {
		t.fail(err)
		return false
	}
	t.opened = true
	t.streams.open.add(t)
	if t.name != "" {
		t.streams.named.add(t)
	}
	return t.out.Flush() == nil
}

// close closes the cursor, and takes the stream off everything that refers to it.
func (t *Stream) close() {
	t.record.Written, t.collected = t.written(), 0
	if t.opened {
		t.streams.open.remove(t)
		if t.name != "" {
			t.streams.named.remove(t)
		}
		t.watch.Close()
	}
	if open := t.streams.config.Open; open != nil {
		open.Unregister(&t.member)
	}
	if t.scheduler != nil {
		t.streams.schedulers.leave(t.scheduler)
	}
}

// catchUp writes what the watch begins with, the initial events or those that the client
// has missed.
func (t *Stream) catchUp() error {
	if t.slot != nil {
		ctx := &lazyDeadline{Context: t.ctx, deadline: t.watch.Deadline()}
		defer ctx.stop()
		if err := t.slot.Wait(ctx); err != nil {
			return err // the time is over: the client asks again
		}
		defer func() {
			t.slot.Release()
			t.slot = nil
		}()
	}
	if err := t.writeInitial(); err != nil {
		return err
	}
	return t.writeReady()
}

// serve is the request's goroutine: it writes what the scheduler cannot, or
// everything if there is none, and what becomes due with time.
func (t *Stream) serve() {
	timer := time.NewTimer(t.watch.UntilDue())
	defer timer.Stop()
	for {
		select {
		case <-t.owner.handedOff:
		case <-timer.C:
			t.owner.acquire()
			if t.writeDue() != nil {
				return
			}
		case <-t.ctx.Done():
			t.owner.acquire()
			return
		case <-t.streams.config.Stopping:
			t.owner.acquire()
			t.writeLast()
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
