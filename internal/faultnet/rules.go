package faultnet

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// chunk is the most bytes that are copied at a time.
const chunk = 16 << 10

// faults are the faults injected into one direction.
type faults struct {
	stalled bool
	delay   time.Duration // per chunk
	rate    int           // bytes per second; 0: no limit
	budget  int64         // bytes until the connection is cut; negative: no end
}

var noFaults = faults{budget: -1}

// rules are the faults of one direction, which may change at any time.
type rules struct {
	delivered atomic.Int64

	mu      sync.Mutex
	faults  faults
	changed chan struct{} // closed, and replaced, by every change
}

func newRules() *rules {
	return &rules{faults: noFaults, changed: make(chan struct{})}
}

func (r *rules) set(change func(*faults)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.faults)
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *rules) now() (faults, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.faults, r.changed
}

// copy carries the bytes of one direction of a connection until the source
// ends, and then ends the destination; or until either is broken, and then
// resets both, as neither side would learn of it otherwise.
func (r *rules) copy(c *pair, d Direction) {
	from, to := c.from(d), c.to(d)
	buf := make([]byte, chunk)
	for {
		n, err := from.Read(buf)
		if n > 0 && !r.deliver(c, to, buf[:n]) {
			c.reset()
			return
		}
		if err != nil {
			// A clean end is forwarded as such; also when only a stall, which
			// holds the end back like any byte, is over.
			if !errors.Is(err, io.EOF) || !r.unstalled(c) || to.CloseWrite() != nil {
				c.reset()
			}
			return
		}
	}
}

// deliver writes b under the current faults; false means the connection is to
// be cut. A change of the faults takes effect at the next step.
func (r *rules) deliver(c *pair, to net.Conn, b []byte) bool {
	if f, _ := r.now(); f.delay > 0 && !r.pause(c, f.delay) {
		return false
	}
	for len(b) > 0 {
		if !r.unstalled(c) {
			return false
		}
		f, _ := r.now()
		n := len(b)
		if f.rate > 0 {
			n = min(n, max(f.rate/50, 1)) // steps of about 20 ms
		}
		n, cut := r.spend(n)
		if n > 0 {
			// Counted first: a peer that has answered finds its bytes counted.
			r.delivered.Add(int64(n))
			written, err := to.Write(b[:n])
			r.delivered.Add(int64(written - n))
			if err != nil {
				return false
			}
			b = b[n:]
		}
		if cut {
			return false
		}
		if f.rate > 0 && !r.pause(c, time.Duration(n)*time.Second/time.Duration(f.rate)) {
			return false
		}
	}
	return true
}

// spend takes n bytes from the budget, fewer if it is short of them. When a
// byte does not fit, cut is true and the budget is used up for good.
func (r *rules) spend(n int) (allowed int, cut bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.faults.budget < 0 {
		return n, false
	}
	if int64(n) <= r.faults.budget {
		r.faults.budget -= int64(n)
		return n, false
	}
	allowed = int(r.faults.budget)
	r.faults.budget = -1
	return allowed, true
}

// unstalled waits while the direction is stalled; false if the connection was
// cut meanwhile.
func (r *rules) unstalled(c *pair) bool {
	for {
		f, changed := r.now()
		if !f.stalled {
			return true
		}
		select {
		case <-changed:
		case <-c.cut:
			return false
		}
	}
}

// pause waits; until the faults change at the longest, so that lifting a long
// delay takes effect at once. It is false if the connection was cut.
func (r *rules) pause(c *pair, d time.Duration) bool {
	_, changed := r.now()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-changed:
	case <-c.cut:
		return false
	}
	return true
}
