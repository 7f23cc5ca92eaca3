package h2

import (
	"time"

	"golang.org/x/net/http2"

	"github.com/levelwire/levelwire/server/internal/h2/frame"
)

// drainPing is sent with the first GOAWAY. A client that answers it has read the
// GOAWAY, and opens no more streams.
var drainPing = [8]byte{'d', 'r', 'a', 'i', 'n'}

// drainWait is how long a client may take to answer drainPing.
const drainWait = time.Second

// tick checks whether the client still answers, and whether the connection has been
// idle for too long. It sets the timer for its next call.
func (c *conn) tick() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	o := &c.server.options
	now := time.Now()
	c.resetBlocked(now)
	read := c.started.Add(time.Duration(c.lastRead.Load()))
	next := o.PingAfter - now.Sub(read)
	switch {
	case c.goAway && !c.closing:
		c.sendFinalGoAway()
		next = o.PingAfter
	case !c.pinged.IsZero() && read.Before(c.pinged):
		if next = o.PingTimeout - now.Sub(c.pinged); next <= 0 {
			c.fail(errSilent)
			return
		}
	case next <= 0:
		c.pinged = now
		c.appendPing([8]byte{})
		next = o.PingTimeout
	}
	if c.running == 0 && !c.closing {
		idle := o.IdleTimeout - now.Sub(c.idleSince)
		if idle <= 0 {
			c.sendFinalGoAway()
			idle = o.PingAfter
		}
		next = min(next, idle)
	}
	c.timer.Reset(max(min(next, o.WriteTimeout), time.Millisecond))
}

func (c *conn) appendPing(data [8]byte) {
	b := c.out.open()
	*b = append(frame.AppendHeader(*b, 8, http2.FramePing, 0, 0), data[:]...)
	c.writeSoon()
}

func (c *conn) pingAnswered(data []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.goAway && string(data) == string(drainPing[:]) {
		c.sendFinalGoAway()
	}
}

// drain asks the client to open no more streams, but serves those that it opens
// before it has read that (RFC 9113 section 6.8).
func (c *conn) drain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil || c.goAway {
		return
	}
	c.goAway = true
	if c.timer != nil { // otherwise sendPreface sends it
		c.sendGoAway()
	}
}

func (c *conn) sendGoAway() {
	b := c.out.open()
	*b = frame.AppendGoAway(*b, frame.MaxStreamID, http2.ErrCodeNo, "")
	c.appendPing(drainPing)
	c.timer.Reset(drainWait)
}

// sendFinalGoAway names the last stream that is served. The connection ends with
// that stream. c.mu is held.
func (c *conn) sendFinalGoAway() {
	if c.err != nil || c.closing {
		return
	}
	c.goAway, c.closing = true, true
	b := c.out.open()
	*b = frame.AppendGoAway(*b, c.lastID, http2.ErrCodeNo, "")
	c.writeSoon()
	c.finishIfDone()
}
