package apiserver

import (
	"context"
	"net/http"
	"time"

	"github.com/gorilla/websocket"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/read"
	"github.com/levelwire/levelwire/server/internal/status"
)

// watch answers with the changes of a collection as they happen. The request's
// own goroutine writes what the stream begins with, and sleeps. Whoever holds
// the stream when there is more, it or the convoy of its connection, reads a
// cursor in the cache's log and writes all that is ready at once: nothing is
// queued for a client, so a slow one lags at its own expense.
func (s *Server) watch(w http.ResponseWriter, r *http.Request, q *request.Info) error {
	if s.isStopping() {
		return errStopping() // clients take a watch that ends at once for a reason to list
	}
	form, err := encoding.Negotiate(r, encoding.WatchOffer.For(q.Resource))
	if err != nil {
		return err
	}
	include, err := encoding.IncludeObject(q.Query)
	if err != nil {
		return err
	}
	opts, err := listOptions(q.Query)
	if err != nil {
		return err
	}
	watch, err := s.reader.Watch(q.Scope(), &opts)
	if err != nil {
		return err
	}
	if r.ProtoMajor == 1 && r.ContentLength != 0 {
		if _, err := encoding.ReadBody(w, r, s.config.MaxBodyBytes); err != nil { // which ends the time for it
			return err
		}
	}
	labels := prometheus.Labels{"group": q.Resource.Group, "version": q.Resource.Version, "resource": q.Resource.Plural}
	q.Query = nil // what has been read of it need not be held for as long as the watch is open
	open := s.metrics.watches.With(labels)
	open.Inc()
	defer open.Dec()
	stream := &watchStream{
		server: s, watch: watch, ctx: r.Context(),
		framer:     encoding.NewEventEncoder(s.encoder(q.Resource, form), include),
		sent:       s.metrics.events.With(labels),
		record:     request.RecordFrom(r.Context()),
		possession: newPossession(),
	}
	if websocket.IsWebSocketUpgrade(r) {
		return s.watchSocket(w, r, stream)
	}
	stream.out = &body{w: w, control: http.NewResponseController(w)}
	if shared, ok := multiplexedOf(w); ok {
		stream.shared, stream.convoy = shared, s.convoys.join(shared.Connection())
		defer s.convoys.leave(stream.convoy)
	}
	stream.run()
	return nil
}

// watchStream is one open watch. Who holds its possession may use it.
type watchStream struct {
	possession

	server *Server
	out    outlet
	shared multiplexed // what out writes to, if that can be done for several at once
	convoy *convoy     // nil unless shared is set
	ctx    context.Context
	watch  read.Watch
	framer encoding.EventEncoder
	sent   prometheus.Counter
	record *request.Record
	left   leftover
}

// run opens the stream, serves it until somebody has had enough, and closes
// the cursor.
func (t *watchStream) run() {
	err := t.watch.Open(t.ctx, t)
	t.out.begin(t.framer.Form().StreamType())
	if err != nil {
		t.fail(err)
		return
	}
	defer t.watch.Close()
	if t.out.flush() != nil {
		return
	}
	if t.writeInitial() == nil {
		t.serve()
	}
}

// serve writes what the convoy cannot, or everything if there is none, and
// what only time brings.
func (t *watchStream) serve() {
	if t.pumpAll() != nil {
		return
	}
	timer := time.NewTimer(t.watch.UntilDue())
	defer timer.Stop()
	for {
		select {
		case <-t.handed:
		case <-timer.C:
			t.take()
			now := time.Now()
			if reason := t.watch.Overdue(t.ctx, now); reason != nil {
				t.fail(reason)
				return
			}
			if !now.Before(t.watch.Deadline()) {
				_ = t.pump() // a bookmark may still be due, if it could not be told in time
				return
			}
		case <-t.ctx.Done():
			t.take()
			return
		case <-t.server.stopping:
			t.take()
			if t.watch.AwaitsRevision() {
				t.fail(errStopping())
				return
			}
			t.watch.BookmarkNow()
			_ = t.pump() // what happened before the end; if it fails, the stream ends anyway
			return
		}
		if t.pumpAll() != nil {
			return
		}
		timer.Reset(t.watch.UntilDue())
	}
}

// pumpAll pumps until nothing is left to do, and gives the stream out of its
// hands then.
func (t *watchStream) pumpAll() error {
	for {
		if err := t.pump(); err != nil {
			return err
		}
		if t.release() {
			return nil
		}
	}
}

// errStopping makes clients come back, to the server that takes this one's place.
func errStopping() error { return status.TooManyRequests("the server is shutting down", 1) }
