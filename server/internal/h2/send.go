package h2

import (
	"os"
	"time"

	"golang.org/x/net/http2"

	"github.com/levelwire/levelwire/server/internal/h2/frame"
)

// parts are bytes that are sent as if they were joined.
type parts struct {
	list [][]byte
	at   int // what of the first was taken
	left int
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

// send appends DATA frames with p, the last of which ends the stream if end
// says so, as far as the windows and the output's limits allow, and waits where
// they do not. The bytes are copied. What ends the stream is left for finish to
// write, with what that appends.
func (st *stream) send(p parts, end bool) error {
	c := st.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	defer st.passTurn()
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

// sendable says why nothing can be sent on the stream, if so. c.mu is held.
func (st *stream) sendable() error {
	if st.err == nil && st.canSend.expired() {
		st.reset(http2.ErrCodeInternal, os.ErrDeadlineExceeded)
		st.conn.writeSoon()
	}
	return st.err
}

// closeLocal ends our side of the stream, if the last DATA or HEADERS frame has
// not done so. c.mu is held.
func (st *stream) closeLocal() {
	if !st.localClosed {
		b := st.conn.out.open()
		*b = frame.AppendHeader(*b, 0, http2.FrameData, http2.FlagDataEndStream, st.id)
		st.ended()
	}
}

// ended notes that END_STREAM has been appended, after the handler has returned.
// A client that sees it may open another stream at once, so this one does not
// count any more, although it has not finished. c.mu is held.
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
		st.batch, st.share = c.out.batch, 0
	}
	limit := longLimit
	if short := st.share == 0 && n <= shortMessage; short {
		limit = outputLimit
	} else if c.out.queue.first != nil && !st.turn {
		return 0
	}
	n = min(n, streamShare-st.share, limit-c.out.len())
	return max(0, int(min(int64(n), st.sendWindow, c.sendWindow)))
}

// waitForRoom returns when it is worth to look again. c.mu is held, but not
// while it waits.
func (st *stream) waitForRoom() {
	c := st.conn
	if c.out.len() > 0 && c.out.state != writing {
		c.writeNow() // it makes room
		if st.sendWindow > 0 && c.sendWindow > 0 {
			return
		}
	}
	crowdedOut := st.turn && st.share < streamShare
	st.passTurn()
	if st.err != nil {
		return
	}
	st.noteShut()
	switch {
	case st.sendWindow <= 0: // there is nothing to wait for in the queue
	case crowdedOut:
		c.out.queue.pushFirst(st)
	default:
		c.out.queue.push(st)
	}
	st.canSend.wait(&c.mu)
	c.out.queue.remove(st)
}

// noteShut notes whether it is the client's windows that a stream waits for. c.mu is
// held.
func (st *stream) noteShut() {
	if st.sendWindow > 0 && st.conn.sendWindow > 0 {
		st.shut = time.Time{}
	} else if st.shut.IsZero() {
		st.shut = time.Now()
	}
}

// resetShut resets streams whose client has not let anything be sent for
// Options.WriteTimeout: neither on the stream, nor, if that is what it waits for,
// on the connection. c.mu is held.
func (c *conn) resetShut(now time.Time) {
	for _, st := range c.streams {
		if st.shut.IsZero() {
			continue
		}
		since := st.shut
		if st.sendWindow > 0 && c.granted.After(since) {
			since = c.granted // it is others' turn
		}
		if now.Sub(since) >= c.server.options.WriteTimeout {
			st.reset(http2.ErrCodeInternal, os.ErrDeadlineExceeded)
			c.writeSoon()
		}
	}
}

// passTurn lets the next go on. c.mu is held.
func (st *stream) passTurn() {
	if st.turn {
		st.turn = false
		st.conn.wakeNext()
	}
}

// appendData appends frames with the first n bytes of p. c.mu is held.
func (st *stream) appendData(p *parts, n int, end bool) {
	c := st.conn
	st.shut = time.Time{}
	st.share += n
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
