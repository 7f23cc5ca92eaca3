package h2

import (
	"errors"
	"io"
	"net/http"
	"os"

	"golang.org/x/net/http2"

	"github.com/levelwire/levelwire/server/internal/h2/frame"
)

// body is a request's body. The connection's reader appends the bytes that arrive,
// the handler takes them away. The windows that the server grants limit how many
// wait in between, and grow as the handler reads. conn.mu guards all fields.
type body struct {
	st       *stream
	buf      *buffer // nil while empty
	at       int     // how much of buf was read
	err      error   // of reads after buf
	closed   bool    // the handler reads no more
	left     int64   // bytes still to come by the content-length; -1: the request has none
	window   int64   // bytes that the client may still send
	spent    int64   // bytes consumed since the last WINDOW_UPDATE
	expect   bool    // the client waits for "100 Continue"
	readable waiter
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	c := b.st.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	b.sendContinue()
	for b.buf == nil {
		if b.closed && (b.err == nil || errors.Is(b.err, io.EOF)) {
			return 0, http.ErrBodyReadAfterClose
		}
		if b.err != nil {
			return 0, b.err
		}
		if b.readable.expired() {
			return 0, os.ErrDeadlineExceeded
		}
		if len(p) == 0 {
			return 0, nil
		}
		b.readable.wait(&c.mu)
	}
	n := copy(p, b.buf.bytes[b.at:])
	b.at += n
	if b.at == len(b.buf.bytes) {
		b.drop()
	}
	b.consumed(int64(n))
	if b.buf == nil && b.err != nil {
		return n, b.err
	}
	return n, nil
}

// Close implements io.Closer. It discards what has not been read.
func (b *body) Close() error {
	c := b.st.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	b.discard()
	c.write()
	return nil
}

func (b *body) drop() {
	b.buf.put()
	b.buf, b.at = nil, 0
}

// discard stops collecting. c.mu is held.
func (b *body) discard() {
	if b.closed {
		return
	}
	b.closed = true
	if b.buf != nil {
		n := len(b.buf.bytes) - b.at
		b.drop()
		b.st.conn.returnWindow(int64(n))
	}
	b.readable.wake()
}

// end sets the error of reads after the bytes that have arrived. c.mu is held.
func (b *body) end(err error) {
	if b.err == nil {
		b.err = err
		b.readable.wake()
	}
}

// add appends bytes that arrived. It copies them. c.mu is held.
func (b *body) add(p []byte) {
	if b.closed {
		b.st.conn.returnWindow(int64(len(p)))
		return
	}
	if b.buf == nil {
		b.buf = getBuffer()
	}
	if b.at > 0 && len(b.buf.bytes)+len(p) > cap(b.buf.bytes) {
		b.buf.bytes = append(b.buf.bytes[:0], b.buf.bytes[b.at:]...)
		b.at = 0
	}
	b.buf = b.buf.with(len(p))
	b.buf.bytes = append(b.buf.bytes, p...)
	b.readable.wake()
}

// consumed lets the client send more in place of n bytes. c.mu is held.
func (b *body) consumed(n int64) {
	c := b.st.conn
	c.returnWindow(n)
	if b.err != nil || b.closed || b.st.remoteClosed || c.err != nil {
		return
	}
	b.spent += n
	if b.spent >= int64(c.server.options.StreamWindow)/2 {
		out := c.out.open()
		*out = frame.AppendWindowUpdate(*out, b.st.id, b.spent)
		b.window += b.spent
		b.spent = 0
		c.writeSoon()
	}
}

// sendContinue sends "100 Continue" to a client that waits for it (RFC 9110
// section 10.1.1). c.mu is held.
func (b *body) sendContinue() {
	if !b.expect {
		return
	}
	b.expect = false
	if b.st.headersSent || b.st.err != nil || b.buf != nil || b.err != nil || b.closed {
		return
	}
	b.st.appendHeaders(http.StatusContinue, nil, false)
	b.st.conn.write()
}

// returnWindow lets the client send n bytes more on the connection. The update is
// appended when half of the window is consumed. c.mu is held.
func (c *conn) returnWindow(n int64) {
	c.recvSpent += n
	if c.recvSpent >= c.connWindow/2 && c.err == nil {
		out := c.out.open()
		*out = frame.AppendWindowUpdate(*out, 0, c.recvSpent)
		c.recvWindow += c.recvSpent
		c.recvSpent = 0
		c.writeSoon()
	}
}

// dataFrame moves a DATA frame to its stream. The whole frame counts for the
// windows, with its padding and even if its stream is closed (RFC 9113 section
// 6.9).
func (c *conn) dataFrame(h frame.Header) error {
	if h.Stream == 0 {
		return connError{http2.ErrCodeProtocol, "a DATA frame on no stream"}
	}
	end := h.Has(http2.FlagDataEndStream)
	if h.Length == 0 && !end {
		if err := c.countAbusiveFrame(); err != nil {
			return err
		}
	}
	size, padding := int(h.Length), 0
	if h.Has(http2.FlagDataPadded) {
		if size == 0 {
			return connError{http2.ErrCodeFrameSize, "a DATA frame without the length of its padding"}
		}
		b, err := c.in.next(1)
		if err != nil {
			return noEOF(err)
		}
		size--
		if padding = int(b[0]); padding > size {
			return connError{http2.ErrCodeProtocol, "a DATA frame with more padding than payload"}
		}
		size -= padding
	}
	st, err := c.acceptData(h, size)
	if err != nil {
		return err
	}
	for size > 0 {
		b, err := c.in.some(size)
		if err != nil {
			return err
		}
		size -= len(b)
		c.mu.Lock()
		if st != nil {
			st.body.add(b)
		} else {
			c.returnWindow(int64(len(b)))
		}
		c.mu.Unlock()
	}
	if err := c.in.skip(padding); err != nil {
		return err
	}
	if end && st != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		st.closeRemote()
	}
	return nil
}

// acceptData counts a DATA frame for the windows. It returns a nil stream, and no
// error, if the data is to be discarded.
func (c *conn) acceptData(h frame.Header, size int) (*stream, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isIdle(h.Stream) {
		return nil, connError{http2.ErrCodeProtocol, "a DATA frame on a stream that was never opened"}
	}
	if c.recvWindow -= int64(h.Length); c.recvWindow < 0 {
		return nil, connError{http2.ErrCodeFlowControl, "more data than the connection's window allows"}
	}
	overhead := int64(h.Length) - int64(size)
	st := c.streams[h.Stream]
	if st == nil || st.remoteClosed {
		c.returnWindow(overhead)
		c.resetStream(h.Stream, http2.ErrCodeStreamClosed)
		return nil, c.countAbusiveFrame()
	}
	b := st.body
	if b.window -= int64(h.Length); b.window < 0 {
		c.returnWindow(overhead)
		c.resetStream(h.Stream, http2.ErrCodeFlowControl)
		return nil, c.countAbusiveFrame()
	}
	if !b.closed && !c.authenticated.Load() {
		if !c.charge(int64(size), false) {
			c.resetStream(h.Stream, http2.ErrCodeEnhanceYourCalm)
			c.returnWindow(overhead)
			return nil, c.countAbusiveFrame()
		}
		st.cost += int64(size)
	}
	b.consumed(overhead)
	if b.left >= 0 {
		b.left -= int64(size)
		if b.left < 0 || h.Has(http2.FlagDataEndStream) && b.left > 0 {
			c.resetStream(h.Stream, http2.ErrCodeProtocol)
			return nil, c.countAbusiveFrame()
		}
	}
	return st, nil
}

// closeRemote notes that the client has sent END_STREAM. c.mu is held.
func (st *stream) closeRemote() {
	st.remoteClosed = true
	st.body.end(io.EOF) // there is one: only the end of the first frame says that there is none
	if st.localClosed {
		delete(st.conn.streams, st.id)
		st.conn.finishIfDone()
	}
}
