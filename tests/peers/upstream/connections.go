package upstream

import (
	"net"
	"sync"
)

// connections is a listener that can close the connections it has accepted. The
// end of a kube-apiserver closes those of its process; here the process goes on,
// and a watch that outlives the server's orderly stop would keep its connection,
// over which clients would then reach a server that is no longer there.
type connections struct {
	net.Listener

	mu     sync.Mutex
	open   map[net.Conn]struct{}
	closed bool
}

func (l *connections) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	tracked := &connection{Conn: conn, of: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		_ = conn.Close()
		return nil, net.ErrClosed
	}
	l.open[tracked] = struct{}{}
	return tracked, nil
}

// closeAll closes every connection. None is accepted afterwards.
func (l *connections) closeAll() {
	l.mu.Lock()
	open := l.open
	l.open, l.closed = nil, true
	l.mu.Unlock()
	for conn := range open {
		_ = conn.Close()
	}
}

type connection struct {
	net.Conn
	of *connections
}

func (c *connection) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}
