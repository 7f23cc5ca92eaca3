package listen

import (
	"container/list"
	"context"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// limitLogInterval is how often refused and evicted connections are logged at most.
const limitLogInterval = 10 * time.Second

// ConnectionLimit bounds the connections that are open at the same time, of all its
// listeners together. If that many are open, a new connection takes the place of one whose
// client is not authenticated: of that which was used longest ago, by its last request or,
// if it has had none, when it was opened. So connections that are only held keep out no
// client that can say who it is, and those of authenticated clients are never closed. It
// is safe for concurrent use.
type ConnectionLimit struct {
	most   int
	logger *slog.Logger

	// mu is held for a few instructions only, and no other lock is taken meanwhile.
	mu       sync.Mutex
	open     int
	unknown  list.List // of *countedConn whose clients are not authenticated, in the order of their last use
	refused  int64
	evicted  int64
	loggedAt time.Time // when refused or evicted connections were logged last
}

// NewConnectionLimit returns a limit of so many connections; 0 or less means none.
func NewConnectionLimit(most int, logger *slog.Logger) *ConnectionLimit {
	return &ConnectionLimit{most: most, logger: logger}
}

// Listener returns a listener that closes connections for which there is no room at once.
// It accepts them before that: otherwise they would wait in the kernel, and clients would
// not know why.
func (l *ConnectionLimit) Listener(inner net.Listener) net.Listener {
	return &countingListener{Listener: inner, limit: l}
}

// Open returns how many connections are open.
func (l *ConnectionLimit) Open() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open
}

// Refused returns how many connections have been closed at once because too many were
// open.
func (l *ConnectionLimit) Refused() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refused
}

// Evicted returns how many connections of clients that were not authenticated have been
// closed to make room for new ones.
func (l *ConnectionLimit) Evicted() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.evicted
}

// admit counts a connection, or returns nil if there is no room for it.
func (l *ConnectionLimit) admit(inner net.Conn) *countedConn {
	c := &countedConn{Conn: inner, limit: l}
	for {
		victim, ok := l.enter(c)
		switch {
		case ok:
			return c
		case victim == nil:
			return nil
		}
		_ = victim.Close() // which makes room
	}
}

// enter counts a connection if there is room. Otherwise it returns the connection that is
// to be closed in its favor, if there is one.
func (l *ConnectionLimit) enter(c *countedConn) (victim *countedConn, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.most <= 0 || l.open < l.most {
		l.open++
		if l.most > 0 {
			c.element = l.unknown.PushBack(c)
		}
		return nil, true
	}
	first := l.unknown.Front()
	if first == nil {
		l.refused++
		l.log("connections are refused", c)
		return nil, false
	}
	victim = first.Value.(*countedConn)
	l.remove(victim)
	l.evicted++
	l.log("connections of clients that are not authenticated are closed to make room for new ones", victim)
	return victim, false
}

// log says, every limitLogInterval at most, that there is no room. l.mu is held.
func (l *ConnectionLimit) log(what string, last *countedConn) {
	if now := time.Now(); now.Sub(l.loggedAt) >= limitLogInterval {
		l.loggedAt = now
		l.logger.Warn(what+": as many are open as this process may have; to allow more, raise its limit of open files (ulimit -n, LimitNOFILE of the service)",
			"open", l.open, "refused", l.refused, "evicted", l.evicted, "last", last.RemoteAddr().String())
	}
}

// remove takes a connection off the list of those that may be closed. l.mu is held.
func (l *ConnectionLimit) remove(c *countedConn) {
	if c.element != nil {
		l.unknown.Remove(c.element)
		c.element = nil
	}
}

func (l *ConnectionLimit) closed(c *countedConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
	l.remove(c)
}

type countingListener struct {
	net.Listener
	limit *ConnectionLimit
}

// Accept implements net.Listener.
func (l *countingListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if counted := l.limit.admit(conn); counted != nil {
			return counted, nil
		}
		_ = conn.Close() // nothing was written to it
	}
}

// countedConn is a connection of a ConnectionLimit.
type countedConn struct {
	net.Conn
	limit         *ConnectionLimit
	once          sync.Once
	authenticated atomic.Bool
	element       *list.Element // of limit.unknown, whose lock guards it; nil: it is not in there
}

// Close implements net.Conn.
func (c *countedConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { c.limit.closed(c) })
	return err
}

// CloseWrite ends the server's side, where connections can do that.
func (c *countedConn) CloseWrite() error {
	if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return nil
}

type contextKey struct{}

// Context returns a context for Authenticated and Used; it is a ConnContext of
// http.Server. conn may be a *tls.Conn above a connection of the limit's listeners.
func (l *ConnectionLimit) Context(ctx context.Context, conn net.Conn) context.Context {
	for {
		switch c := conn.(type) {
		case *countedConn:
			return context.WithValue(ctx, contextKey{}, c)
		case *limitConn:
			conn = c.Conn
		case *BatchConn:
			conn = c.Conn
		case interface{ NetConn() net.Conn }: // *tls.Conn
			conn = c.NetConn()
		default:
			return ctx
		}
	}
}

// Authenticated notes that the client has said who it is: its connection is not closed in
// favor of others any more. The context is that of one of its requests.
func Authenticated(ctx context.Context) {
	c, ok := ctx.Value(contextKey{}).(*countedConn)
	if !ok || c.authenticated.Swap(true) {
		return
	}
	c.limit.mu.Lock()
	defer c.limit.mu.Unlock()
	c.limit.remove(c)
}

// Used notes a request of a client that is not authenticated: connections on which
// nothing was asked for longer are closed before its own.
func Used(ctx context.Context) {
	c, ok := ctx.Value(contextKey{}).(*countedConn)
	if !ok {
		return
	}
	c.limit.mu.Lock()
	defer c.limit.mu.Unlock()
	if c.element != nil {
		c.limit.unknown.MoveToBack(c.element)
	}
}
