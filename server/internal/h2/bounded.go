package h2

import (
	"net"
	"sync"
	"time"
)

// LimitWrites returns a listener on whose connections each write fails that takes
// longer than the limit, and at most half as long again: a client that does not
// read cannot hold for ever who writes to it. While a connection has a write
// deadline that somebody has set, that one holds instead.
func LimitWrites(inner net.Listener, limit time.Duration) net.Listener {
	return &boundedListener{Listener: inner, limit: limit}
}

type boundedListener struct {
	net.Listener
	limit time.Duration
}

// Accept implements net.Listener.
func (l *boundedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &boundedConn{Conn: conn, limit: l.limit}, nil
}

// boundedConn is a connection of LimitWrites.
type boundedConn struct {
	net.Conn
	limit time.Duration

	mu    sync.Mutex // not held while anything is written
	until time.Time  // the deadline that arm has set
	own   bool       // another is set, not by arm
}

// Write implements net.Conn.
func (b *boundedConn) Write(p []byte) (int, error) {
	if err := b.arm(); err != nil {
		return 0, err
	}
	return b.Conn.Write(p)
}

// arm sets the deadline, if what is left of the last one is less than the limit:
// to set it costs as much as a small write.
func (b *boundedConn) arm() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if b.own || b.until.Sub(now) >= b.limit {
		return nil
	}
	b.until = now.Add(b.limit + b.limit/2)
	return b.Conn.SetWriteDeadline(b.until)
}

// SetWriteDeadline implements net.Conn.
func (b *boundedConn) SetWriteDeadline(t time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.own, b.until = !t.IsZero(), time.Time{}
	return b.Conn.SetWriteDeadline(t)
}

// SetDeadline implements net.Conn.
func (b *boundedConn) SetDeadline(t time.Time) error {
	if err := b.Conn.SetReadDeadline(t); err != nil {
		return err
	}
	return b.SetWriteDeadline(t)
}

// CloseWrite ends what we send, where connections can do that: net/http does so
// before it closes a connection that the client still writes to.
func (b *boundedConn) CloseWrite() error {
	if c, ok := b.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return nil
}
