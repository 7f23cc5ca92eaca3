package h2

import (
	"runtime"
	"sync"
	"time"

	"github.com/levelwire/levelwire/server/internal/h2/frame"
)

const (
	// outputLimit is how many bytes wait for the connection at most before
	// streams have to wait with what they have to say.
	outputLimit = 256 << 10
	// longLimit is how many of them may be from those who have more to say than
	// shortMessage. So there is room for a watch's events among long lists, and
	// little is written before them.
	longLimit    = 192 << 10
	shortMessage = 16 << 10
	// streamShare is how many of them may be one stream's.
	streamShare = 128 << 10
	// controlLimit is how many of them may be answers to frames that cost the
	// peer nothing. Whoever sends pings and does not read the answers has
	// something else in mind.
	controlLimit = 16 << 10
	// eager is from when on a write does not wait for others to join in.
	eager = 32 << 10
)

type writerState uint8

const (
	nobody  writerState = iota
	claimed             // somebody is about to write, and lets others go first
	writing             // somebody writes: what is appended goes out with the next batch
)

// output collects frames until somebody writes them. Whoever appends frames
// while nobody writes becomes the writer, takes everything that has come
// together, and writes it without holding the lock; everybody else appends and
// goes on with his work. All of it is guarded by conn.mu.
type output struct {
	buf     *buffer
	state   writerState
	batch   uint64 // counts the buffers that were taken away to be written
	control int    // bytes of acknowledgements in buf
	last    bool   // the connection ends when everything is written
	over    bool   // that has happened: nothing more can be said
	queue   streamQueue
	emptied *sync.Cond // told when buf was taken away; nil until waitBelow has waited
}

// open returns the frames that wait, to append to.
func (o *output) open() *[]byte {
	if o.buf == nil {
		o.buf = getBuffer()
	}
	return &o.buf.bytes
}

// reserve is open for those who are about to append n bytes.
func (o *output) reserve(n int) *[]byte {
	o.open()
	o.buf = o.buf.with(n)
	return &o.buf.bytes
}

func (o *output) len() int {
	if o.buf == nil {
		return 0
	}
	return len(o.buf.bytes)
}

func (o *output) drop() {
	if o.buf != nil {
		o.buf.put()
		o.buf = nil
	}
	o.tell()
}

// tell lets those go on who wait in waitBelow.
func (o *output) tell() {
	if o.emptied != nil {
		o.emptied.Broadcast()
	}
}

// write sees to it that what has been appended is written, by the caller if
// nobody else does it. Only handlers' goroutines may call it: it blocks while
// the peer does not read. c.mu is held, but not while it writes.
func (c *conn) write() {
	switch {
	case c.err != nil || c.out.state == writing || c.out.len() == 0:
		return
	case c.out.len() >= eager:
	case c.out.state == claimed:
		return
	case c.running > 1:
		// What woke this stream has often woken others, too. They are runnable
		// now: after they have run, one write serves all of them.
		c.out.state = claimed
		c.mu.Unlock()
		runtime.Gosched()
		c.mu.Lock()
		if c.out.state != claimed || c.err != nil {
			return
		}
	}
	c.writeNow()
}

// writeNow is write without waiting for others to join in. Nobody else may be
// writing.
func (c *conn) writeNow() {
	c.out.state = writing
	c.writeBatch(c.takeBatch())
	if c.err == nil && (c.out.len() > 0 || c.out.last) {
		// Others have said something meanwhile. To write that, too, could keep
		// this stream from its own work for as long as they go on.
		go c.writeAll(c.takeBatch())
		return
	}
	c.out.state = nobody
}

// waitBelow returns when less than limit bytes wait to be written, the caller has
// written what there was, or the connection is gone. It blocks while the peer does
// not read. c.mu is held, but not while it waits.
func (c *conn) waitBelow(limit int) {
	for c.err == nil && c.out.len() >= limit {
		if c.out.state != writing {
			c.writeNow()
			return
		}
		if c.out.emptied == nil {
			c.out.emptied = sync.NewCond(&c.mu)
		}
		c.out.emptied.Wait()
	}
}

// writeSoon is write for those who must not block: the reader, because a peer
// that waits for us to read would wait for ever, and timers. c.mu is held.
func (c *conn) writeSoon() {
	if c.err != nil || c.out.over || c.out.state == writing {
		return
	}
	c.out.state = writing
	go c.writeAll(c.takeBatch())
}

// writeAll writes a batch that was taken, and then until there is nothing left.
// The caller has set the state to writing.
func (c *conn) writeAll(batch *buffer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writeBatch(batch)
	for c.out.len() > 0 && c.err == nil {
		c.writeBatch(c.takeBatch())
	}
	c.out.state = nobody
	if c.out.last && c.err == nil {
		c.out.last, c.out.over = false, true
		c.mu.Unlock()
		// The reader ends with the peer's answer, or when the time is up.
		_ = c.tls.CloseWrite() // the connection is closed in any case
		_ = c.tls.SetReadDeadline(time.Now().Add(lingerTime))
		c.mu.Lock()
	}
}

// takeBatch takes away what is there now, so that there is room again; nil:
// nothing is there. c.mu is held.
func (c *conn) takeBatch() *buffer {
	batch := c.out.buf
	if batch != nil {
		c.out.buf, c.out.control = nil, 0
		c.out.batch++
		c.out.tell()
		c.wakeNext()
	}
	return batch
}

// writeBatch writes what was taken. c.mu is held, but not while it writes.
func (c *conn) writeBatch(batch *buffer) {
	if batch == nil {
		return
	}
	if c.err == nil {
		c.mu.Unlock()
		err := c.send(batch.bytes)
		c.mu.Lock()
		if err != nil {
			c.fail(err)
		}
	}
	batch.put()
}

func (c *conn) send(b []byte) error {
	if c.batch == nil || len(b) <= frame.DefaultSize { // one record
		_, err := c.tls.Write(b)
		return err
	}
	c.batch.Begin()
	_, err := c.tls.Write(b)
	if e := c.batch.End(); err == nil {
		err = e
	}
	return err
}
