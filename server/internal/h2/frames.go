package h2

import (
	"encoding/binary"
	"fmt"
	"time"

	"golang.org/x/net/http2"

	"github.com/levelwire/levelwire/server/internal/h2/frame"
)

// frame handles one frame whose header has been read. Its error ends the
// connection; errors of a stream it has answered itself.
func (c *conn) frame(h frame.Header) error {
	switch h.Type {
	case http2.FrameData:
		return c.dataFrame(h)
	case http2.FrameHeaders:
		return c.headersFrame(h)
	case http2.FrameRSTStream:
		return c.resetFrame(h)
	case http2.FrameSettings:
		return c.settingsFrame(h)
	case http2.FramePing:
		return c.pingFrame(h)
	case http2.FrameWindowUpdate:
		return c.windowUpdateFrame(h)
	case http2.FrameGoAway:
		// The server starts no streams, so a client's GOAWAY changes nothing. The
		// client closes the connection when it is done.
		if h.Stream != 0 || h.Length < 8 {
			return connError{http2.ErrCodeProtocol, "a bad GOAWAY frame"}
		}
		return c.in.skip(int(h.Length))
	case http2.FramePriority:
		return c.priorityFrame(h)
	case http2.FrameContinuation:
		return connError{http2.ErrCodeProtocol, "a CONTINUATION frame without HEADERS before it"}
	case http2.FramePushPromise:
		return connError{http2.ErrCodeProtocol, "a client must not send PUSH_PROMISE"}
	}
	if err := c.countAbusiveFrame(); err != nil { // unknown types are ignored, RFC 9113 section 4.1
		return err
	}
	return c.in.skip(int(h.Length))
}

// payload returns the payload of a frame of fixed size, valid until the next read.
func (c *conn) payload(h frame.Header, size uint32) ([]byte, error) {
	if h.Length != size {
		return nil, connError{http2.ErrCodeFrameSize, fmt.Sprintf("a frame of type %d with %d bytes", h.Type, h.Length)}
	}
	b, err := c.in.next(int(size))
	return b, noEOF(err)
}

// appendAck appends an acknowledgement. c.mu is not held: appendAck locks it.
func (c *conn) appendAck(appendTo func([]byte) []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	b := c.out.open()
	before := len(*b)
	*b = appendTo(*b)
	c.out.ackBytes += len(*b) - before
	if c.out.ackBytes > maxAckBytes {
		return connError{http2.ErrCodeEnhanceYourCalm, "too many frames that want an answer that is not read"}
	}
	c.writeSoon()
	return nil
}

func (c *conn) pingFrame(h frame.Header) error {
	if h.Stream != 0 {
		return connError{http2.ErrCodeProtocol, "a PING frame on a stream"}
	}
	data, err := c.payload(h, 8)
	if err != nil {
		return err
	}
	if h.Has(http2.FlagPingAck) {
		c.pingAnswered(data)
		return nil
	}
	return c.appendAck(func(b []byte) []byte {
		return append(frame.AppendHeader(b, 8, http2.FramePing, http2.FlagPingAck, 0), data...)
	})
}

func (c *conn) priorityFrame(h frame.Header) error {
	if h.Stream == 0 {
		return connError{http2.ErrCodeProtocol, "a PRIORITY frame on no stream"}
	}
	if err := c.countAbusiveFrame(); err != nil {
		return err
	}
	if h.Length != 5 {
		return c.streamFailed(h.Stream, streamError{http2.ErrCodeFrameSize, "a PRIORITY frame of the wrong size"}, int(h.Length))
	}
	return c.in.skip(5)
}

func (c *conn) resetFrame(h frame.Header) error {
	if _, err := c.payload(h, 4); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if h.Stream == 0 || c.isIdle(h.Stream) {
		return connError{http2.ErrCodeProtocol, "RST_STREAM on a stream that was never opened"}
	}
	if st := c.streams[h.Stream]; st != nil {
		delete(c.streams, h.Stream)
		st.abandon(errReset)
		c.finishIfDone()
	}
	// A client that opens streams only to reset them makes the server work for
	// nothing (CVE-2023-44487).
	return c.countAbusiveFrame()
}

func (c *conn) windowUpdateFrame(h frame.Header) error {
	b, err := c.payload(h, 4)
	if err != nil {
		return err
	}
	increment := int64(binary.BigEndian.Uint32(b) & frame.MaxWindow)
	c.mu.Lock()
	defer c.mu.Unlock()
	if h.Stream == 0 {
		if increment == 0 {
			return connError{http2.ErrCodeProtocol, "a WINDOW_UPDATE of 0"}
		}
		if c.sendWindow += increment; c.sendWindow > frame.MaxWindow {
			return connError{http2.ErrCodeFlowControl, "the connection's window is too large"}
		}
		c.windowUpdated = time.Now()
		c.wakeNext()
		return nil
	}
	if c.isIdle(h.Stream) {
		return connError{http2.ErrCodeProtocol, "WINDOW_UPDATE on a stream that was never opened"}
	}
	st := c.streams[h.Stream]
	switch {
	case st == nil: // the frame may have crossed the end of the stream
	case increment == 0:
		c.resetStream(h.Stream, http2.ErrCodeProtocol)
		return c.countAbusiveFrame()
	case st.sendWindow+increment > frame.MaxWindow:
		c.resetStream(h.Stream, http2.ErrCodeFlowControl)
		return c.countAbusiveFrame()
	default:
		st.sendWindow += increment
		st.canSend.wake()
	}
	return nil
}

// streamFailed skips the n bytes that are left of a frame and resets its stream.
func (c *conn) streamFailed(id uint32, why streamError, n int) error {
	if err := c.in.skip(n); err != nil {
		return err
	}
	if err := c.countAbusiveFrame(); err != nil {
		return err
	}
	c.server.options.Logger.Debug("HTTP/2 stream reset: the client broke the protocol", "remote", c.remote, "stream", id, "error", why)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.resetStream(id, why.code)
	return nil
}

// resetStream sends RST_STREAM, also for a stream that is not open. c.mu is held.
func (c *conn) resetStream(id uint32, code http2.ErrCode) {
	if st := c.streams[id]; st != nil {
		st.reset(code, errBroken)
	} else if c.err == nil {
		b := c.out.open()
		*b = frame.AppendReset(*b, id, code)
	}
	c.writeSoon()
}

// isIdle reports whether a stream was never opened (RFC 9113 section 5.1). c.mu is
// held.
func (c *conn) isIdle(id uint32) bool {
	if id%2 == 0 {
		return true
	}
	// After the final GOAWAY the client may have opened streams that are ignored.
	return id > c.lastID && !c.closing
}
