package apiserver

import (
	"context"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/gorilla/websocket"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/levelwire/levelwire/server/internal/read"
	"github.com/levelwire/levelwire/server/internal/watchcache"
)

// watch answers with the changes of a collection as they happen. The request's
// own goroutine writes what the stream begins with, and sleeps. Whoever holds
// the stream when there is more, it or the convoy of its connection, reads a
// cursor in the cache's log and writes all that is ready at once: nothing is
// queued for a client, so a slow one lags at its own expense.
func (s *Server) watch(w http.ResponseWriter, r *http.Request, q *request) error {
	if s.isStopping() {
		return errStopping() // clients take a watch that ends at once for a reason to list
	}
	form, err := negotiate(r, offerFor(streamForm, q.resource))
	if err != nil {
		return err
	}
	include, err := includeObject(q.query)
	if err != nil {
		return err
	}
	opts, err := listOptions(q.query)
	if err != nil {
		return err
	}
	plan, err := s.reader.Watch(q.scope(), &opts)
	if err != nil {
		return err
	}
	if r.ProtoMajor == 1 && r.ContentLength != 0 {
		if _, err := s.readBody(w, r); err != nil { // which ends the time for it
			return err
		}
	}
	labels := prometheus.Labels{"group": q.resource.Group, "version": q.resource.Version, "resource": q.resource.Plural}
	q.query = nil // what has been read of it need not be held for as long as the watch is open
	open := s.metrics.watches.With(labels)
	open.Inc()
	defer open.Dec()
	stream := &watchStream{
		server: s, plan: &plan, ctx: r.Context(),
		framer:     framer{presenter: s.presenter(q.resource, form), include: include},
		sent:       s.metrics.events.With(labels),
		info:       infoFrom(r.Context()),
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
	plan   *read.WatchPlan
	framer framer
	sent   prometheus.Counter
	info   *requestInfo

	watcher   *watchcache.Watcher
	bookmarks watchcache.Bookmarks // the request's goroutine's alone
	owed      bool                 // the end of the initial events has to be announced
	patience  time.Time            // until when the version that the client has must come; zero: it has
	left      leftover
}

// run opens the stream, serves it until somebody has had enough, and closes
// the cursor.
func (t *watchStream) run() {
	deadline := time.Now().Add(t.plan.Lifetime)
	t.bookmarks = watchcache.NewBookmarks(time.Now(), deadline, rand.Float64())

	watcher, err := t.plan.Open(t.ctx, deadline, t)
	t.out.begin(t.framer.form.streamType())
	if err != nil {
		t.fail(err)
		return
	}
	t.watcher = watcher
	defer watcher.Close()
	t.owed = t.plan.Initial && t.plan.Bookmarks
	t.expectFrom(time.Now(), deadline)
	if t.out.flush() != nil {
		return
	}
	if t.writeInitial() == nil {
		t.serve(deadline)
	}
}

// serve writes what the convoy cannot, or everything if there is none, and
// what only time brings.
func (t *watchStream) serve(deadline time.Time) {
	if t.pumpAll(deadline) != nil {
		return
	}
	timer := time.NewTimer(t.untilDue(deadline))
	defer timer.Stop()
	for {
		select {
		case <-t.handed:
		case <-timer.C:
			t.take()
			now := time.Now()
			if reason := t.overdue(now); reason != nil {
				t.fail(reason)
				return
			}
			if !now.Before(deadline) {
				_ = t.pump(deadline) // a bookmark may still be due, if it could not be told in time
				return
			}
		case <-t.ctx.Done():
			t.take()
			return
		case <-t.server.stopping:
			t.take()
			if t.ahead() {
				t.fail(errStopping())
				return
			}
			now := time.Now()
			t.bookmarks = watchcache.NewBookmarks(now, now, 0) // one is due: from there the client goes on elsewhere
			_ = t.pump(deadline)                               // what happened before the end; if it fails, the stream ends anyway
			return
		}
		if t.pumpAll(deadline) != nil {
			return
		}
		timer.Reset(t.untilDue(deadline))
	}
}

// pumpAll pumps until nothing is left to do, and gives the stream out of its
// hands then.
func (t *watchStream) pumpAll(deadline time.Time) error {
	for {
		if err := t.pump(deadline); err != nil {
			return err
		}
		if t.release() {
			return nil
		}
	}
}

// owedCheck is how often a stream looks whether it can announce the end of
// the initial events, while the cache has not come far enough.
const owedCheck = time.Second

// untilDue returns how long to sleep when nothing happens.
func (t *watchStream) untilDue(deadline time.Time) time.Duration {
	wait := time.Until(deadline)
	if t.owed {
		wait = min(wait, owedCheck)
	}
	if !t.patience.IsZero() {
		wait = min(wait, time.Until(t.patience), aheadCheck)
	} else if t.plan.Bookmarks {
		wait = min(wait, time.Until(t.bookmarks.Next()))
	}
	return max(wait, 0)
}
