package h2

import (
	"runtime"
	"sync"
	"time"

	"github.com/levelwire/levelwire/server/internal/h2/frame"
)

const (
	// outputLimit is how many bytes may wait to be written before streams must wait
	// with more.
	outputLimit = 256 << 10
	// longOutputLimit is how many of them may be of messages longer than
	// shortMessage. So there is room for a watch's events among long lists, and few
	// bytes are written before them.
	longOutputLimit = 192 << 10
	shortMessage    = 16 << 10
	// maxStreamBatch is how many of them one stream may add to a batch.
	maxStreamBatch = 128 << 10
	// maxAckBytes is how many of them may be acknowledgements. A client that sends
	// PINGs without reading the answers is not using them as PINGs.
	maxAckBytes = 16 << 10
	// writeAtOnce is how many of them are written without waiting for more streams
	// to append theirs.
	writeAtOnce = 32 << 10
)

type writerState uint8

const (
	idle    writerState = iota
	claimed             // a goroutine is about to write, and lets others append first
	writing             // a goroutine writes: what is appended meanwhile is in the next batch
)

// output collects frames until they are written. A goroutine that appends frames
// while none is writing becomes the writer: it takes the batch of all frames that
// have been appended, and writes it without holding the lock. Others append and go
// on. conn.mu guards all fields.
type output struct {
	buf      *buffer
	state    writerState
	batch    uint64 // counts the batches that were taken to be written
	ackBytes int    // bytes of acknowledgements in buf
	last     bool   // the connection ends when everything is written
	ended    bool   // the connection has ended so: nothing more can be sent
	queue    streamQueue
	taken    *sync.Cond // signalled when a batch is taken; nil until waitBelow has waited
}

// open returns the current batch, to append frames to.
func (o *output) open() *[]byte {
	if o.buf == nil {
		o.buf = getBuffer()
	}
	return &o.buf.bytes
}

// reserve is open with room for n more bytes.
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
	o.wakeWaiting()
}

// wakeWaiting wakes the goroutines in waitBelow.
func (o *output) wakeWaiting() {
	if o.taken != nil {
		o.taken.Broadcast()
	}
}

// write has everything that was appended written: by the caller, unless another
// goroutine is writing or about to. Only handlers' goroutines may call it, because
// it blocks while the client does not read. c.mu is held, but not while it writes.
func (c *conn) write() {
	switch {
	case c.err != nil || c.out.state == writing || c.out.len() == 0:
		return
	case c.out.len() >= writeAtOnce:
	case c.out.state == claimed:
		return
	case c.running > 1:
		// The event that woke this stream has often woken others, which are runnable
		// now. After they have run, one write serves all of them.
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

// writeNow is write without waiting for other streams. No other goroutine may be
// writing.
func (c *conn) writeNow() {
	c.out.state = writing
	c.writeBatch(c.takeBatch())
	if c.err == nil && (c.out.len() > 0 || c.out.last) {
		// Other streams have appended frames meanwhile. Writing those here, too, could
		// keep this stream from its own work for as long as they go on.
		go c.writeAll(c.takeBatch())
		return
	}
	c.out.state = idle
}

// waitBelow returns when less than limit bytes wait to be written, when it has
// written them itself, or when the connection is gone. It blocks while the client
// does not read. c.mu is held, but not while it waits.
func (c *conn) waitBelow(limit int) {
	for c.err == nil && c.out.len() >= limit {
		if c.out.state != writing {
			c.writeNow()
			return
		}
		if c.out.taken == nil {
			c.out.taken = sync.NewCond(&c.mu)
		}
		c.out.taken.Wait()
	}
}

// writeSoon is write for goroutines that must not block: timers, and the reader,
// because a client that waits for the server to read would wait for ever. c.mu is
// held.
func (c *conn) writeSoon() {
	if c.err != nil || c.out.ended || c.out.state == writing {
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
	c.out.state = idle
	if c.out.last && c.err == nil {
		c.out.last, c.out.ended = false, true
		c.mu.Unlock()
		// The reader ends when the client closes its side, or at the deadline.
		_ = c.tls.CloseWrite() // the connection is closed in any case
		_ = c.tls.SetReadDeadline(time.Now().Add(lingerTime))
		c.mu.Lock()
	}
}

// takeBatch takes the batch that has been appended, which makes room; nil: it is
// empty. c.mu is held.
func (c *conn) takeBatch() *buffer {
	batch := c.out.buf
	if batch != nil {
		c.out.buf, c.out.ackBytes = nil, 0
		c.out.batch++
		c.out.wakeWaiting()
		c.wakeNext()
	}
	return batch
}

// writeBatch writes a batch that was taken. c.mu is held, but not while it writes.
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
