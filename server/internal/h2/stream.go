package h2

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"golang.org/x/net/http2"

	"github.com/levelwire/levelwire/server/internal/h2/frame"
)

// stream is one request and its answer. The fields of the first group do not
// change, only the handler's goroutine uses the second, and conn.mu guards the
// third.
type stream struct {
	conn   *conn
	id     uint32
	ctx    context.Context // the request's
	cancel context.CancelFunc

	answer   response
	returned bool // the handler has returned, and not panicked
	detached bool // End follows, see Detach

	err          error // why nothing more can be sent; nil while it can
	remoteClosed bool  // the client has sent END_STREAM
	localClosed  bool  // the server has
	headersSent  bool
	sendWindow   int64
	blockedSince time.Time // since when the client's windows allow no DATA; zero: they do
	batch        uint64    // the batch of output that batchBytes counts for
	batchBytes   int       // bytes of this stream in that batch
	queued       bool      // in conn.out.queue, between prev and next
	admitted     bool      // by wakeNext
	prev, next   *stream
	canSend      waiter
	body         *body               // nil: the request has none
	watcher      interface{ Gone() } // see Detach; nil unless detached
	cost         int64               // what conn.charge has counted for it
}

// waiter lets one goroutine wait for something to change, at most until a deadline.
// It needs memory only once a goroutine waits.
type waiter struct {
	cond     *sync.Cond
	timer    *time.Timer
	deadline time.Time
	waiting  bool
}

// wait releases mu until wake is called or the deadline has passed.
func (w *waiter) wait(mu *sync.Mutex) {
	if w.cond == nil {
		w.cond = sync.NewCond(mu)
	}
	w.waiting = true
	w.arm()
	w.cond.Wait()
	w.waiting = false
	if w.timer != nil {
		w.timer.Stop()
		w.timer = nil
	}
}

func (w *waiter) arm() {
	if w.timer != nil {
		w.timer.Stop()
		w.timer = nil
	}
	if !w.deadline.IsZero() {
		mu := w.cond.L
		w.timer = time.AfterFunc(time.Until(w.deadline), func() {
			mu.Lock()
			defer mu.Unlock()
			w.wake()
		})
	}
}

func (w *waiter) wake() {
	if w.waiting {
		w.cond.Signal()
	}
}

// setDeadline changes the deadline, also of a wait that is under way.
func (w *waiter) setDeadline(t time.Time) {
	w.deadline = t
	if w.waiting {
		w.arm()
	}
}

func (w *waiter) expired() bool { return !w.deadline.IsZero() && !time.Now().Before(w.deadline) }

// serve runs the handler, unless the client has taken the request back before it could
// begin: a reset costs the client nothing (CVE-2023-44487).
func (st *stream) serve(r *http.Request) {
	c := st.conn
	c.begun()
	defer st.finish(r)
	if st.ctx.Err() == nil {
		c.handler.ServeHTTP(&st.answer, r)
	}
	st.returned = true
}

// refuse answers instead of a handler. No user is asked for, as for a request that is not
// authenticated.
func (st *stream) refuse(r *http.Request, code int, why string) {
	c := st.conn
	c.begun()
	c.counted.Used()
	defer st.finish(r)
	http.Error(&st.answer, why, code)
	st.returned = true
}

// finish ends the answer after the handler has returned, has panicked, or has
// called runtime.Goexit. The answer is complete only in the first case. A detached
// stream may belong to another goroutine by now, which calls End.
func (st *stream) finish(r *http.Request) {
	c := st.conn
	reason := recover()
	if reason != nil && !st.returned && reason != http.ErrAbortHandler { //nolint:errorlint // net/http defines it by identity.
		c.server.options.Logger.Error("handler panicked", "remote", c.remote, "method", r.Method,
			"uri", r.RequestURI, "panic", fmt.Sprint(reason), "stack", string(debug.Stack()))
	}
	switch {
	case !st.detached:
		st.end(st.returned)
	case !st.returned:
		st.fail(errConnClosed)
	}
}

// end ends the answer, and with it the stream.
func (st *stream) end(complete bool) {
	c := st.conn
	defer c.handlers.Done()
	if complete {
		st.answer.end()
	}
	st.answer.release()
	c.mu.Lock()
	defer c.mu.Unlock()
	st.watcher = nil
	switch {
	case !complete:
		st.reset(http2.ErrCodeInternal, errConnClosed)
	case st.err == nil && !st.remoteClosed:
		st.answeredEarly()
	default:
		delete(c.streams, st.id)
	}
	st.abandon(errConnClosed)
	if !st.localClosed {
		c.running--
	}
	c.discharge(st.cost)
	st.cost = 0
	if st.answer.code == http.StatusUnauthorized && !c.authenticated.Load() {
		c.sendFinalGoAway() // the connection ends when its answers have been sent
	}
	c.write()
	c.finishIfDone()
}

// earlyAnswerWait is how long a client may take, after it was answered, to end the
// body of its request.
const earlyAnswerWait = 2 * time.Second

// answeredEarly has the rest of the request's body discarded: the answer is complete,
// whatever else the client wants to send. A reset that follows the answer at once
// makes clients lose the answer (curl 7.88 does, although RFC 9113 section 8.1 forbids
// it). So the reset comes only if the client has not ended the body in time. The
// stream's window, which does not grow any more, bounds what the client may send until
// then, and MaxConcurrentStreams how many streams of a connection wait. c.mu is held.
func (st *stream) answeredEarly() {
	c := st.conn
	// A client that has waited for "100 Continue" has sent nothing, and Go's waits on for
	// that or a reset.
	if st.body != nil && st.body.expect || len(c.streams) > c.maxStreams {
		st.reset(http2.ErrCodeNo, errConnClosed)
		return
	}
	time.AfterFunc(earlyAnswerWait, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.streams[st.id] == st {
			c.resetStream(st.id, http2.ErrCodeNo)
		}
	})
}

// reset appends RST_STREAM, unless the stream is closed already. c.mu is held; the
// caller must write what has been appended.
func (st *stream) reset(code http2.ErrCode, err error) {
	c := st.conn
	if _, open := c.streams[st.id]; !open || c.err != nil {
		return
	}
	delete(c.streams, st.id)
	b := c.out.open()
	*b = frame.AppendReset(*b, st.id, code)
	st.abandon(err)
	c.finishIfDone()
}

// abandon makes everything fail that the handler may still do with the stream.
// c.mu is held.
func (st *stream) abandon(err error) {
	if st.err == nil {
		st.err = err
	}
	if st.body != nil {
		st.body.end(err)
		st.body.discard()
	}
	st.cancel()
	st.canSend.wake()
	if watcher := st.watcher; watcher != nil {
		st.watcher = nil
		watcher.Gone()
	}
}

// fail resets the stream because of an error of the handler.
func (st *stream) fail(err error) {
	c := st.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	st.reset(http2.ErrCodeInternal, err)
}
