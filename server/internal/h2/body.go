package h2

import (
	"errors"
	"io"
	"net/http"
	"os"
)

// body is a request's body: the reader appends what arrives, the handler takes
// it away. How much waits in between is limited by the windows that we give,
// and they grow as the handler reads. conn.mu guards all fields.
type body struct {
	st       *stream
	buf      *buffer // nil while empty
	at       int     // what of it was read
	err      error   // what follows after buf
	closed   bool    // nobody will read any more
	left     int64   // bytes that the content-length still promises; -1: it promised nothing
	window   int64   // what the peer may still send
	spent    int64   // what was consumed since the last WINDOW_UPDATE
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

// Close implements io.Closer. What has not been read is thrown away.
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

// end says what follows after the bytes that have come. c.mu is held.
func (b *body) end(err error) {
	if b.err == nil {
		b.err = err
		b.readable.wake()
	}
}

// add takes what arrived. c.mu is held.
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

// consumed lets the peer send more in place of n bytes. c.mu is held.
func (b *body) consumed(n int64) {
	c := b.st.conn
	c.returnWindow(n)
	if b.err != nil || b.st.remoteClosed || c.err != nil {
		return
	}
	b.spent += n
	if b.spent >= int64(c.server.options.StreamWindow)/2 {
		out := c.out.open()
		*out = appendWindowUpdate(*out, b.st.id, b.spent)
		b.window += b.spent
		b.spent = 0
		c.writeSoon()
	}
}

// sendContinue tells a client that asked that its body is wanted (RFC 9110
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

// returnWindow lets the peer send n bytes more on the connection. The update
// goes out with what is written next, or soon if it becomes urgent. c.mu is held.
func (c *conn) returnWindow(n int64) {
	c.recvSpent += n
	if c.recvSpent >= int64(c.server.options.ConnWindow)/2 && c.err == nil {
		out := c.out.open()
		*out = appendWindowUpdate(*out, 0, c.recvSpent)
		c.recvWindow += c.recvSpent
		c.recvSpent = 0
		c.writeSoon()
	}
}
