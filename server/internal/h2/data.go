package h2

import (
	"io"

	"golang.org/x/net/http2"
)

// dataFrame moves a DATA frame to its stream. All of it counts for the windows,
// padding, too, and what nobody wants (RFC 9113 section 6.9).
func (c *conn) dataFrame(h frameHead) error {
	if h.stream == 0 {
		return connError{http2.ErrCodeProtocol, "a DATA frame on no stream"}
	}
	end := h.has(http2.FlagDataEndStream)
	if h.length == 0 && !end {
		if err := c.useless(); err != nil {
			return err
		}
	}
	size, padding := int(h.length), 0
	if h.has(http2.FlagDataPadded) {
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

// acceptData takes a DATA frame into account. Without a stream and an error,
// the data is for nobody.
func (c *conn) acceptData(h frameHead, size int) (*stream, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.neverOpened(h.stream) {
		return nil, connError{http2.ErrCodeProtocol, "a DATA frame on a stream that was never opened"}
	}
	if c.recvWindow -= int64(h.length); c.recvWindow < 0 {
		return nil, connError{http2.ErrCodeFlowControl, "more data than the connection's window allows"}
	}
	overhead := int64(h.length) - int64(size)
	st := c.streams[h.stream]
	if st == nil || st.remoteClosed {
		c.returnWindow(overhead)
		c.refuse(h.stream, http2.ErrCodeStreamClosed)
		return nil, c.useless()
	}
	b := &st.body
	if b.window -= int64(h.length); b.window < 0 {
		c.returnWindow(overhead)
		c.refuse(h.stream, http2.ErrCodeFlowControl)
		return nil, c.useless()
	}
	b.consumed(overhead)
	if b.left >= 0 {
		b.left -= int64(size)
		if b.left < 0 || h.has(http2.FlagDataEndStream) && b.left > 0 {
			c.refuse(h.stream, http2.ErrCodeProtocol)
			return nil, c.useless()
		}
	}
	return st, nil
}

// closeRemote notes that the peer has sent END_STREAM. c.mu is held.
func (st *stream) closeRemote() {
	st.remoteClosed = true
	st.body.end(io.EOF)
	if st.localClosed {
		delete(st.conn.streams, st.id)
	}
}
