package watchstream

import (
	"net/http"
	"runtime"
	"sync"
)

// multiplexed is an answer on a connection that carries many.
type multiplexed interface {
	// Connection is comparable, and the same for all answers of one connection.
	// Its Push sends what has been collected for the connection. It blocks while the
	// client does not read. It returns no error: the answers' own writes do.
	Connection() interface{ Push() }
	// TryWrite adds the joined parts to what is collected for the connection, if that
	// blocks neither on the client nor on other answers. It does not keep the parts.
	// Only Push sends.
	TryWrite(parts ...[]byte) bool
}

// multiplexedOf finds out what a writer can do behind its wrappers.
func multiplexedOf(w http.ResponseWriter) (multiplexed, bool) {
	for {
		switch t := w.(type) {
		case multiplexed:
			return t, true
		case interface{ Unwrap() http.ResponseWriter }:
			w = t.Unwrap()
		default:
			return nil, false
		}
	}
}

// scheduler drains the streams of one connection that are awake, one after the
// other, and sends for all of them at once. Its goroutine exists while there is
// something to do.
type scheduler struct {
	connection interface{ Push() }
	streams    int // guarded by schedulers.mu

	mu      sync.Mutex // no other lock is taken while it is held
	awake   []*Stream  // owned by this scheduler
	spare   []*Stream  // the goroutine's: the list that it drained last
	running bool
}

// schedulers finds the scheduler of a connection.
type schedulers struct {
	mu           sync.Mutex
	byConnection map[interface{ Push() }]*scheduler
}

// join returns the scheduler of a connection for one more stream, which must leave.
func (s *schedulers) join(connection interface{ Push() }) *scheduler {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.byConnection[connection]
	if c == nil {
		c = &scheduler{connection: connection}
		if s.byConnection == nil {
			s.byConnection = map[interface{ Push() }]*scheduler{}
		}
		s.byConnection[connection] = c
	}
	c.streams++
	return c
}

func (s *schedulers) leave(c *scheduler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.streams--; c.streams == 0 {
		delete(s.byConnection, c.connection)
	}
}

// add queues a stream, which the caller owns. It reports whether the caller must
// have Start called.
func (c *scheduler) add(t *Stream) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.awake = append(c.awake, t)
	first := !c.running
	c.running = true
	return first
}

// Start implements watchcache.Starter.
func (c *scheduler) Start() { go c.run() }

// run drains the streams that are awake until none is.
func (c *scheduler) run() {
	buffers := bufferPool.Get().(*buffers)
	defer buffers.release()
	for {
		c.mu.Lock()
		list := c.awake
		if len(list) == 0 {
			c.running = false
			c.mu.Unlock()
			return
		}
		c.awake, c.spare = c.spare[:0], nil
		c.mu.Unlock()
		ended := list[:0]
		for _, t := range list {
			switch t.drain(buffers) {
			case moreReady:
				c.add(t)
			case refused:
				ended = append(ended, t)
			}
		}
		c.connection.Push()
		if len(buffers.sends) > 0 {
			list[0].streams.traceWritten(buffers)
		}
		if len(ended) > 0 {
			runtime.Gosched() // the errors of other connections come before the ends of these
			ended[0].streams.finishRefused(ended)
		}
		clear(list)
		c.spare = list
	}
}
