package apiserver

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/levelwire/levelwire/watchcache"
)

// eventsPerRead is how many events a stream takes from its cursor at a time.
const eventsPerRead = 64

// watchBuffers are what a stream needs while it has something to write. An
// idle watch holds none.
type watchBuffers struct {
	events [eventsPerRead]watchcache.Event
	bytes  []byte
}

var watchBufferPool = sync.Pool{New: func() any {
	return &watchBuffers{bytes: make([]byte, 0, writeSize)}
}}

// watch answers with the changes of a collection as they happen. The
// request's own goroutine reads a cursor in the cache's log, joins what is
// ready into one write, and sleeps until there is more: nothing is queued for
// a client, so a slow one lags at its own expense.
func (s *Server) watch(w http.ResponseWriter, r *http.Request, q *request) error {
	plan, err := s.planWatch(r, q)
	if err != nil {
		return err
	}
	labels := prometheus.Labels{"group": q.resource.Group, "version": q.resource.Version, "resource": q.resource.Plural}
	open := s.metrics.watches.With(labels)
	open.Inc()
	defer open.Dec()
	stream := &watchStream{
		server: s, plan: &plan, ctx: r.Context(),
		framer: framer{presenter: s.presenter(q.resource, plan.form), include: plan.include},
		sent:   s.metrics.events.With(labels),
	}
	if websocket.IsWebSocketUpgrade(r) {
		return s.watchSocket(w, r, stream)
	}
	body := s.newBody(w)
	defer body.release()
	stream.out = body
	stream.run()
	return nil
}

// watchStream is one open watch. It belongs to its request's goroutine.
type watchStream struct {
	server *Server
	out    outlet
	ctx    context.Context
	plan   *watchPlan
	framer framer
	sent   prometheus.Counter

	watcher   *watchcache.Watcher
	bookmarks watchcache.Bookmarks
	owed      bool // the end of the initial events has to be announced
}

// run opens the stream, serves it until somebody has had enough, and closes
// the cursor.
func (t *watchStream) run() {
	deadline := time.Now().Add(t.plan.lifetime)
	t.bookmarks = watchcache.NewBookmarks(time.Now(), deadline, rand.Float64())

	open, cancel := context.WithDeadline(t.ctx, deadline)
	watcher, err := t.server.openWatch(open, t.plan)
	cancel()
	t.out.begin(t.plan.form.streamType())
	if err != nil {
		t.fail(err)
		return
	}
	t.watcher = watcher
	defer watcher.Close()
	t.owed = t.plan.initial && t.plan.bookmarks
	if t.out.flush() != nil {
		return
	}
	t.serve(deadline)
}

// serve alternates between writing what is ready and waiting for more.
func (t *watchStream) serve(deadline time.Time) {
	timer := time.NewTimer(t.untilDue(deadline))
	defer timer.Stop()
	for {
		if err := t.pump(); err != nil {
			return
		}
		timer.Reset(t.untilDue(deadline))
		select {
		case <-t.watcher.Ready():
		case <-timer.C:
			if !time.Now().Before(deadline) {
				return
			}
		case <-t.ctx.Done():
			return
		case <-t.server.stopping:
			_ = t.pump() // what happened before the end; if it fails, the stream ends anyway
			return
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
	if t.plan.bookmarks {
		wait = min(wait, time.Until(t.bookmarks.Next()))
	}
	return max(wait, 0)
}

// errNotServed ends a stream whose resource is no longer served. The client
// sees an ordinary end, as when the time is up, and a 404 when it comes back.
var errNotServed = errors.New("the resource is not served any more")

// pump writes everything that is ready now, and a bookmark if one is due. An
// error ends the stream; the client has been told, if it can be.
func (t *watchStream) pump() error {
	served := t.followDefinition()
	if err := t.pumpReady(); err != nil {
		return err
	}
	if !served {
		return errNotServed
	}
	return nil
}

// followDefinition makes the stream show objects as the definition of a custom
// resource says now: its watches outlive its changes. It is false if the
// version is not served any more, or another definition has taken its place.
func (t *watchStream) followDefinition() bool {
	res := t.framer.res
	if !res.Stored().Mixed {
		return true
	}
	now := t.server.config.Resources.Lookup(res.Group, res.Version, res.Plural)
	if now == nil || now.Stored() != res.Stored() {
		return false
	}
	if now != res {
		t.framer.res = now
		t.framer.columns = false // they may be others
	}
	return true
}

func (t *watchStream) pumpReady() error {
	buffers := watchBufferPool.Get().(*watchBuffers)
	defer func() {
		clear(buffers.events[:])
		if cap(buffers.bytes) > 16*writeSize {
			buffers.bytes = make([]byte, 0, writeSize)
		}
		watchBufferPool.Put(buffers)
	}()
	out := buffers.bytes[:0]
	wrote := false
	for {
		live := !t.watcher.Initial()
		n, readErr := t.watcher.Read(buffers.events[:])
		if err := t.framer.prepareEvents(t.ctx, buffers.events[:n]); err != nil {
			return t.end(out, err)
		}
		for _, event := range buffers.events[:n] {
			var err error
			if out, err = t.framer.event(out, event, live); err != nil {
				return t.end(out, err)
			}
			if len(out) >= writeSize || t.out.single() {
				if err := t.out.write(out); err != nil {
					return err
				}
				out, wrote = out[:0], true
			}
		}
		t.sent.Add(float64(n))
		if errors.Is(readErr, watchcache.ErrClosed) {
			return t.last(out)
		}
		if readErr != nil {
			return t.end(out, cacheError(readErr))
		}
		if n == 0 {
			break
		}
		if err := t.ctx.Err(); err != nil {
			return err
		}
	}
	out, err := t.appendBookmark(out)
	buffers.bytes = out
	if err != nil {
		return t.end(out, err)
	}
	if len(out) > 0 {
		wrote = true
		if err := t.out.write(out); err != nil {
			return err
		}
	}
	if !wrote {
		return nil
	}
	return t.out.flush()
}

// appendBookmark appends the bookmark that ends the initial events, or a
// periodic one, if it is due and there is a revision to tell.
func (t *watchStream) appendBookmark(out []byte) ([]byte, error) {
	if !t.plan.bookmarks || t.watcher.Initial() {
		return out, nil
	}
	now := time.Now()
	if !t.owed && !t.bookmarks.Due(now) {
		return out, nil
	}
	reached := t.watcher.Reached()
	if reached == 0 || t.owed && reached < t.plan.revision {
		return out, nil
	}
	out, err := t.framer.bookmark(out, reached, t.owed)
	if err != nil {
		return out, err
	}
	t.sent.Inc()
	if !t.owed {
		t.bookmarks.Sent(now)
	}
	t.owed = false
	return out, nil
}

// last sends what has been collected before an ordinary end.
func (t *watchStream) last(out []byte) error {
	if len(out) > 0 {
		if err := t.out.write(out); err != nil {
			return err
		}
	}
	_ = t.out.flush() // the stream ends in any case
	return errNotServed
}

// end sends what has been collected and the reason why nothing follows.
func (t *watchStream) end(out []byte, reason error) error {
	if len(out) > 0 {
		if err := t.out.write(out); err != nil {
			return err
		}
	}
	t.fail(reason)
	return reason
}

// fail sends an error event. Whether it arrives makes no difference: the
// stream ends.
func (t *watchStream) fail(reason error) {
	out, err := t.framer.failure(nil, reason)
	if err != nil {
		t.server.config.Logger.Error("a watch cannot say why it ends", "reason", reason, "error", err)
		return
	}
	if t.out.write(out) == nil {
		_ = t.out.flush()
	}
}
