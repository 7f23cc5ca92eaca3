package load

import "io"

// output gathers frames that several goroutines write, so that the goroutine that comes
// while a write to the socket is under way adds to the next one.
type output struct {
	to      io.Writer
	waiting []byte
	spare   []byte
	busy    bool // a goroutine writes to the socket
}

// Write implements io.Writer, in memory. The connection's lock is held.
func (o *output) Write(p []byte) (int, error) {
	o.waiting = append(o.waiting, p...)
	return len(p), nil
}

// flush sends what waits, unless another goroutine does it already. It is called with
// the lock held, which it releases.
func (c *Conn) flush() error {
	o := &c.output
	defer c.mu.Unlock()
	if o.busy {
		return nil
	}
	o.busy = true
	for len(o.waiting) > 0 && c.err == nil {
		out := o.waiting
		o.waiting = o.spare[:0]
		c.mu.Unlock()
		_, err := o.to.Write(out)
		c.mu.Lock()
		o.spare = out
		if err != nil && c.err == nil {
			c.err = err
		}
	}
	o.busy = false
	return c.err
}
