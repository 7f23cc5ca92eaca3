package listen

import (
	"net"
	"sync"
	"time"
)

// LimitWrites returns a listener whose connections fail each write that takes
// longer than the limit, at the latest after half as long again: a client that does
// not read cannot block the goroutine that writes to it for ever. A write deadline
// that a connection's user sets takes the place of the limit while it is set.
func LimitWrites(inner net.Listener, limit time.Duration) net.Listener {
	return &limitListener{Listener: inner, limit: limit}
}

type limitListener struct {
	net.Listener
	limit time.Duration
}

// Accept implements net.Listener.
func (l *limitListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &limitConn{Conn: conn, limit: l.limit}, nil
}

// limitConn is a connection of LimitWrites.
type limitConn struct {
	net.Conn
	limit time.Duration

	mu    sync.Mutex // not held while anything is written
	until time.Time  // the deadline that arm has set
	user  bool       // the connection's user has set a deadline
}

// Write implements net.Conn.
func (b *limitConn) Write(p []byte) (int, error) {
	if err := b.arm(); err != nil {
		return 0, err
	}
	return b.Conn.Write(p)
}

// arm sets the deadline, if less than the limit is left of the last one: setting it
// costs as much as a small write.
func (b *limitConn) arm() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if b.user || b.until.Sub(now) >= b.limit {
		return nil
	}
	b.until = now.Add(b.limit + b.limit/2)
	return b.Conn.SetWriteDeadline(b.until)
}

// SetWriteDeadline implements net.Conn.
func (b *limitConn) SetWriteDeadline(t time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.user, b.until = !t.IsZero(), time.Time{}
	return b.Conn.SetWriteDeadline(t)
}

// SetDeadline implements net.Conn.
func (b *limitConn) SetDeadline(t time.Time) error {
	if err := b.Conn.SetReadDeadline(t); err != nil {
		return err
	}
	return b.SetWriteDeadline(t)
}

// CloseWrite ends the server's side, where connections can do that: net/http does
// so before it closes a connection that the client still writes to.
func (b *limitConn) CloseWrite() error {
	if c, ok := b.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return nil
}
