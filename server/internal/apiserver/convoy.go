package apiserver

import (
	"net/http"
	"sync"
)

// multiplexed is an answer on a connection that carries many.
type multiplexed interface {
	// Connection is comparable, and the same for all answers of one connection.
	// Its Push sends what has been collected for it. It blocks while the client
	// does not read; of an error the answers themselves learn.
	Connection() interface{ Push() }
	// TryWrite adds the joined parts to what is collected for the connection, if
	// that needs no waiting, neither for the client nor for other answers. It
	// does not keep the parts. Only Push sends.
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

// convoy is the watches of one connection. An event often wakes all of them:
// to wake a goroutine for each costs several times what it costs to send the
// event. So one goroutine, which exists while there is something to do, serves
// those that are awake, and writes for all of them at once. A watch whose turn
// would hold up the others is left to its own goroutine.
type convoy struct {
	connection interface{ Push() }
	members    int // guarded by convoys.mu

	mu      sync.Mutex // nothing else is locked while it is held
	awake   []*watchStream
	spare   []*watchStream // the goroutine's: the list it served last
	running bool
}

// convoys finds the convoy of a connection.
type convoys struct {
	mu   sync.Mutex
	open map[interface{ Push() }]*convoy
}

// join returns the convoy of a connection. Who joins has to leave.
func (s *convoys) join(connection interface{ Push() }) *convoy {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.open[connection]
	if c == nil {
		c = &convoy{connection: connection}
		if s.open == nil {
			s.open = map[interface{ Push() }]*convoy{}
		}
		s.open[connection] = c
	}
	c.members++
	return c
}

func (s *convoys) leave(c *convoy) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.members--; c.members == 0 {
		delete(s.open, c.connection)
	}
}

// add puts a watch, which the caller holds, among those that are awake. It
// reports whether Start has to be called.
func (c *convoy) add(t *watchStream) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.awake = append(c.awake, t)
	first := !c.running
	c.running = true
	return first
}

// Start implements watchcache.Starter.
func (c *convoy) Start() { go c.run() }

// run serves those that are awake until nobody is.
func (c *convoy) run() {
	buffers := watchBufferPool.Get().(*watchBuffers)
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
		for _, t := range list {
			if t.turn(buffers) == more {
				c.add(t)
			}
		}
		c.connection.Push()
		clear(list)
		c.spare = list
	}
}
