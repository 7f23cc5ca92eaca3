package h2

import (
	"net/http"
	"strings"

	"golang.org/x/net/http2"

	"github.com/levelwire/levelwire/server/internal/h2/frame"
)

// maxFragments is how many CONTINUATION frames one header block may take.
// Ordinary clients need none for less than 16 kB.
const maxFragments = 64

// readBlock decodes a header block: size bytes of a HEADERS frame, which padding
// follows, and its CONTINUATION frames.
func (c *conn) readBlock(h frame.Header, size, padding int) error {
	c.fields.reset()
	c.allowTable()
	for fragments := 0; ; fragments++ {
		if c.fields.wire += size; c.fields.wire > 2*c.fields.limit || fragments > maxFragments {
			// Decoding more would be work for nothing (CVE-2024-27316).
			return connError{http2.ErrCodeEnhanceYourCalm, "too large a header block"}
		}
		for size > 0 {
			b, err := c.in.next(min(size, smallBuffer))
			if err != nil {
				return noEOF(err)
			}
			size -= len(b)
			if _, err := c.decoder.Write(b); err != nil {
				return connError{http2.ErrCodeCompression, "a header block cannot be decoded: " + err.Error()}
			}
			if size > 0 || !h.Has(http2.FlagHeadersEndHeaders) {
				if err := c.chargeBlock(); err != nil {
					return err
				}
			}
		}
		if err := c.in.skip(padding); err != nil {
			return err
		}
		padding = 0
		if h.Has(http2.FlagHeadersEndHeaders) {
			break
		}
		next, err := c.in.head()
		if err != nil {
			return noEOF(err)
		}
		if next.Type != http2.FrameContinuation || next.Stream != h.Stream {
			return connError{http2.ErrCodeProtocol, "a header block was not continued"}
		}
		h.Flags, size = next.Flags, int(next.Length)
	}
	if err := c.decoder.Close(); err != nil {
		return connError{http2.ErrCodeCompression, "a header block is not complete: " + err.Error()}
	}
	return nil
}

// chargeBlock counts what has been decoded so far of a header block that comes in
// pieces: the rest may be long in coming.
func (c *conn) chargeBlock() error {
	cost := fieldFactor*c.fields.size() - c.block
	if !c.charge(cost, false) {
		return connError{http2.ErrCodeEnhanceYourCalm, "too large header blocks, of this client or of all, before authentication"}
	}
	c.block += cost
	return nil
}

// headersFrame opens a stream, or ends a request's body with trailers.
func (c *conn) headersFrame(h frame.Header) error {
	if h.Stream == 0 || h.Stream%2 == 0 {
		return connError{http2.ErrCodeProtocol, "HEADERS on a stream that a client cannot open"}
	}
	size, padding, err := c.headersPrefix(h)
	if err != nil {
		return err
	}
	if err := c.readBlock(h, size, padding); err != nil {
		return err
	}
	defer func() {
		c.discharge(c.block)
		c.block = 0
	}()
	if h.Stream <= c.lastID { // only this goroutine changes it
		return c.trailers(h)
	}
	return c.open(h)
}

// headersPrefix reads what precedes the header block in a HEADERS frame, and
// returns the lengths of the block and of the padding behind it.
func (c *conn) headersPrefix(h frame.Header) (size, padding int, err error) {
	size = int(h.Length)
	prefix := 0
	if h.Has(http2.FlagHeadersPadded) {
		prefix++
	}
	if h.Has(http2.FlagHeadersPriority) {
		prefix += 5 // priorities are deprecated and ignored: RFC 9113 section 5.3.2
	}
	if prefix > size {
		return 0, 0, connError{http2.ErrCodeFrameSize, "a HEADERS frame that is too short for its flags"}
	}
	if prefix == 0 {
		return size, 0, nil
	}
	b, err := c.in.next(prefix)
	if err != nil {
		return 0, 0, noEOF(err)
	}
	size -= prefix
	if h.Has(http2.FlagHeadersPadded) {
		padding = int(b[0])
	}
	if padding > size {
		return 0, 0, connError{http2.ErrCodeProtocol, "a HEADERS frame with more padding than payload"}
	}
	return size - padding, padding, nil
}

// trailers ends a request's body. The trailers' fields are dropped: no handler
// uses them.
func (c *conn) trailers(h frame.Header) error {
	f := &c.fields
	c.mu.Lock()
	defer c.mu.Unlock()
	st := c.streams[h.Stream]
	pseudo := len(f.fields) > 0 && strings.HasPrefix(f.fields[0].Name, ":")
	if pseudo && st == nil {
		if h.Stream == c.lastID {
			return connError{http2.ErrCodeStreamClosed, "a second request on a stream"} // RFC 9113 section 5.1
		}
		return connError{http2.ErrCodeProtocol, "a request on a stream that is older than others"} // section 5.1.1
	}
	if st == nil || st.remoteClosed { // trailers may cross the server's end of the stream
		c.resetStream(h.Stream, http2.ErrCodeStreamClosed)
		return c.countAbusiveFrame()
	}
	if !h.Has(http2.FlagHeadersEndStream) || f.wrong != "" || f.unsuited != "" || pseudo || st.body.left > 0 {
		c.resetStream(h.Stream, http2.ErrCodeProtocol)
		return c.countAbusiveFrame()
	}
	st.closeRemote()
	return nil
}

// open starts a handler for a new stream.
func (c *conn) open(h frame.Header) error {
	in, wrong := c.request(h)
	cost := streamCost + fieldFactor*c.fields.size() - c.block
	affordable := c.charge(cost, true)
	if affordable {
		c.block += cost
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	if c.closing {
		return nil // by the final GOAWAY the client knows that this stream is not served
	}
	c.lastID = h.Stream
	switch {
	case !affordable, c.running >= c.maxStreams:
		c.resetStream(h.Stream, http2.ErrCodeRefusedStream)
		return c.countAbusiveFrame()
	case wrong != "":
		c.server.options.Logger.Debug("HTTP/2 request refused", "remote", c.remote, "error", wrong)
		c.resetStream(h.Stream, http2.ErrCodeProtocol)
		return c.countAbusiveFrame()
	}
	st, r := c.newStream(h, in)
	st.cost, c.block = c.block, 0 // which finish takes back
	if c.running++; c.running == 1 {
		c.counted.Busy()
	}
	c.handlers.Add(1)
	c.opening()
	switch {
	case c.fields.tooMany:
		go st.refuse(r, http.StatusRequestHeaderFieldsTooLarge, "the header fields of the request are too large")
	case c.fields.unsuited != "":
		go st.refuse(r, http.StatusBadRequest, "the request has "+c.fields.unsuited)
		return c.countAbusiveFrame()
	default:
		go st.serve(r)
	}
	return nil
}
