package h2

import (
	"os"
	"time"

	"golang.org/x/net/http2"

	"github.com/levelwire/levelwire/server/internal/h2/frame"
)

// parts are slices that are sent as if they were joined.
type parts struct {
	list [][]byte
	at   int // how much of the first slice was taken
	left int // bytes not taken yet
}

func join(list ...[]byte) parts {
	p := parts{list: list}
	for _, b := range list {
		p.left += len(b)
	}
	return p
}

// appendTo moves n bytes to b.
func (p *parts) appendTo(b []byte, n int) []byte {
	p.left -= n
	for n > 0 {
		first := p.list[0][p.at:]
		take := min(n, len(first))
		b = append(b, first[:take]...)
		n -= take
		p.at += take
		if take == len(first) {
			p.list, p.at = p.list[1:], 0
		}
	}
	return b
}

// send appends DATA frames with p, and waits where the windows and the output's
// limits do not allow more. If end is set, the last frame ends the stream, and
// finish writes it together with what it appends itself. The bytes are copied.
func (st *stream) send(p parts, end bool) error {
	c := st.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	defer st.admitNext()
	for p.left > 0 {
		if err := st.sendable(); err != nil {
			return err
		}
		if n := st.room(p.left); n > 0 {
			st.appendData(&p, n, end)
		} else {
			st.waitForRoom()
		}
	}
	if st.err != nil {
		return st.err
	}
	if end {
		st.closeLocal()
		return nil
	}
	c.write()
	return nil
}

// sendable returns why nothing can be sent on the stream, or nil. c.mu is held.
func (st *stream) sendable() error {
	if st.err == nil && st.canSend.expired() {
		st.reset(http2.ErrCodeInternal, os.ErrDeadlineExceeded)
		st.conn.writeSoon()
	}
	return st.err
}

// closeLocal sends END_STREAM, if the last DATA or HEADERS frame has not. c.mu is
// held.
func (st *stream) closeLocal() {
	if !st.localClosed {
		b := st.conn.out.open()
		*b = frame.AppendHeader(*b, 0, http2.FrameData, http2.FlagDataEndStream, st.id)
		st.ended()
	}
}

// ended notes that END_STREAM has been appended, after the handler has returned. A
// client that reads it may open another stream at once, so this one no longer
// counts as running, although finish has not returned. c.mu is held.
func (st *stream) ended() {
	c := st.conn
	st.localClosed = true
	c.running--
	c.idleSince = time.Now()
	if st.remoteClosed {
		delete(c.streams, st.id)
	}
}

// room returns how many of n bytes may be appended now. c.mu is held.
func (st *stream) room(n int) int {
	c := st.conn
	if st.batch != c.out.batch {
		st.batch, st.batchBytes = c.out.batch, 0
	}
	limit := longOutputLimit
	if short := st.batchBytes == 0 && n <= shortMessage; short {
		limit = outputLimit
	} else if c.out.queue.first != nil && !st.admitted {
		return 0
	}
	n = min(n, maxStreamBatch-st.batchBytes, limit-c.out.len())
	return max(0, int(min(int64(n), st.sendWindow, c.sendWindow)))
}

// waitForRoom returns when there may be room again. c.mu is held, but not while it
// waits.
func (st *stream) waitForRoom() {
	c := st.conn
	if c.out.len() > 0 && c.out.state != writing {
		c.writeNow() // which makes room
		if st.sendWindow > 0 && c.sendWindow > 0 {
			return
		}
	}
	crowdedOut := st.admitted && st.batchBytes < maxStreamBatch
	st.admitNext()
	if st.err != nil {
		return
	}
	st.noteBlocked()
	switch {
	case st.sendWindow <= 0: // it waits for the client, not for the queue
	case crowdedOut:
		c.out.queue.pushFirst(st)
	default:
		c.out.queue.push(st)
	}
	st.canSend.wait(&c.mu)
	c.out.queue.remove(st)
}

// noteBlocked notes since when a stream waits for the client's windows, if it does.
// c.mu is held.
func (st *stream) noteBlocked() {
	if st.sendWindow > 0 && st.conn.sendWindow > 0 {
		st.blockedSince = time.Time{}
	} else if st.blockedSince.IsZero() {
		st.blockedSince = time.Now()
	}
}

// resetBlocked resets streams whose client has kept the window shut for
// Options.WriteTimeout: the stream's, or, if the stream waits for that, the
// connection's. c.mu is held.
func (c *conn) resetBlocked(now time.Time) {
	for _, st := range c.streams {
		if st.blockedSince.IsZero() {
			continue
		}
		since := st.blockedSince
		if st.sendWindow > 0 && c.windowUpdated.After(since) {
			since = c.windowUpdated // other streams have used the connection's window
		}
		if now.Sub(since) >= c.server.options.WriteTimeout {
			st.reset(http2.ErrCodeInternal, os.ErrDeadlineExceeded)
			c.writeSoon()
		}
	}
}

// admitNext admits the next stream of the queue after this one. c.mu is held.
func (st *stream) admitNext() {
	if st.admitted {
		st.admitted = false
		st.conn.wakeNext()
	}
}

// appendData appends frames with the first n bytes of p. c.mu is held.
func (st *stream) appendData(p *parts, n int, end bool) {
	c := st.conn
	st.blockedSince = time.Time{}
	st.batchBytes += n
	st.sendWindow -= int64(n)
	c.sendWindow -= int64(n)
	b := c.out.reserve(n + frame.HeaderSize*(1+n/c.peerFrameSize))
	for n > 0 {
		size := min(n, c.peerFrameSize)
		n -= size
		var flags http2.Flags
		if end && p.left == size {
			flags = http2.FlagDataEndStream
			st.ended()
		}
		*b = frame.AppendHeader(*b, size, http2.FrameData, flags, st.id)
		*b = p.appendTo(*b, size)
	}
}
