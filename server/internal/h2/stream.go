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
	cancel context.CancelFunc

	answer   response
	returned bool // the handler has returned, and not panicked

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
	body         body
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

// serve runs the handler.
func (st *stream) serve(r *http.Request) {
	c := st.conn
	defer c.handlers.Done()
	defer st.finish(r)
	c.handler.ServeHTTP(&st.answer, r)
	st.returned = true
}

// serveTooLarge answers instead of a handler when the header fields were too
// many.
func (st *stream) serveTooLarge(r *http.Request) {
	c := st.conn
	defer c.handlers.Done()
	defer st.finish(r)
	http.Error(&st.answer, "the header fields of the request are too large", http.StatusRequestHeaderFieldsTooLarge)
	st.returned = true
}

// finish ends the answer after the handler has returned, has panicked, or has
// called runtime.Goexit. The answer is complete only in the first case.
func (st *stream) finish(r *http.Request) {
	c := st.conn
	reason := recover()
	if st.returned {
		st.answer.end()
	} else if reason != nil && reason != http.ErrAbortHandler { //nolint:errorlint // net/http defines it by identity.
		c.server.options.Logger.Error("handler panicked", "remote", c.remote, "method", r.Method,
			"uri", r.RequestURI, "panic", fmt.Sprint(reason), "stack", string(debug.Stack()))
	}
	st.answer.release()
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !st.returned:
		st.reset(http2.ErrCodeInternal, errConnClosed)
	case st.err == nil && !st.remoteClosed:
		// The answer is complete, whatever else the client wanted to send
		// (RFC 9113 section 8.1).
		st.reset(http2.ErrCodeNo, errConnClosed)
	}
	delete(c.streams, st.id)
	st.abandon(errConnClosed)
	if !st.localClosed {
		c.running--
	}
	c.write()
	c.finishIfDone()
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
}

// abandon makes everything fail that the handler may still do with the stream.
// c.mu is held.
func (st *stream) abandon(err error) {
	if st.err == nil {
		st.err = err
	}
	st.body.end(err)
	st.body.discard()
	st.cancel()
	st.canSend.wake()
}

// fail resets the stream because of an error of the handler.
func (st *stream) fail(err error) {
	c := st.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	st.reset(http2.ErrCodeInternal, err)
}
