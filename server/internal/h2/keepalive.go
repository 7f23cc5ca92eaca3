package h2

import (
	"time"

	"golang.org/x/net/http2"

	"github.com/levelwire/levelwire/server/internal/h2/frame"
)

// drainPing is sent along with the first GOAWAY: when it is answered, the client
// knows that it must not open streams any more.
var drainPing = [8]byte{'d', 'r', 'a', 'i', 'n'}

// drainWait is how long a client may take to answer that.
const drainWait = time.Second

// tick looks whether the client is still there, and whether it is still needed.
func (c *conn) tick() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	o := &c.server.options
	now := time.Now()
	c.resetShut(now)
	read := c.began.Add(time.Duration(c.lastRead.Load()))
	next := o.PingAfter - now.Sub(read)
	switch {
	case c.goAway && !c.closing:
		c.drainForGood()
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
			c.drainForGood()
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
		c.drainForGood()
	}
}

// drain asks the client to open no more streams, but accepts those that are on
// their way (RFC 9113 section 6.8).
func (c *conn) drain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil || c.goAway {
		return
	}
	c.goAway = true
	if c.timer != nil { // else it has not been announced; then it will be sent
		c.sendGoAway()
	}
}

func (c *conn) sendGoAway() {
	b := c.out.open()
	*b = frame.AppendGoAway(*b, frame.MaxStreamID, http2.ErrCodeNo, "")
	c.appendPing(drainPing)
	c.timer.Reset(drainWait)
}

// drainForGood says which stream was the last; the connection ends with it.
// c.mu is held.
func (c *conn) drainForGood() {
	if c.err != nil || c.closing {
		return
	}
	c.goAway, c.closing = true, true
	b := c.out.open()
	*b = frame.AppendGoAway(*b, c.lastID, http2.ErrCodeNo, "")
	c.writeSoon()
	c.finishIfDone()
}
