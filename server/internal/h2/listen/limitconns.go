package listen

import (
	"container/list"
	"context"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// limitLogInterval is how often connections that are refused, evicted or throttled are logged
// at most.
const limitLogInterval = 10 * time.Second

const (
	// newcomerTime is for how long a connection is that of a newcomer, which may be about to say
	// who it is: a handshake takes two or three round trips.
	newcomerTime = 500 * time.Millisecond
	// moveInterval is how often a client that is not authenticated can put its connection
	// behind those of others.
	moveInterval = time.Second
)

// logInterval says when to log again.
type logInterval struct{ last time.Time }

func (i *logInterval) due() bool {
	now := time.Now()
	if now.Sub(i.last) < limitLogInterval {
		return false
	}
	i.last = now
	return true
}

// ConnectionLimit bounds the connections that are open at the same time, of all its
// listeners together. If that many are open, a new connection takes the place of one that
// no user holds: of that which was used longest ago, by its last request or, if it has had
// none, when it was opened. Those of newcomers come after the others. So neither connections
// that are only held nor requests without credentials keep out a client that can say who it
// is. Those that users hold are never closed for others, and each user has a share of them,
// see Conn.Hold: some always remain for clients that have yet to say who they are. It is safe
// for concurrent use.
type ConnectionLimit struct {
	most         int
	perUser      int
	newcomerTime time.Duration // shorter in tests
	logger       *slog.Logger

	// mu is held for a few instructions only, and no other lock is taken meanwhile.
	mu           sync.Mutex
	open         int
	held         []*Conn              // those that users hold, in no order
	holders      map[Holder]*holdings // the users that hold some
	newcomers    list.List            // of *Conn that were opened just now and that no user holds, in this order
	unheld       list.List            // of other *Conn that no user holds, in the order of their last use
	refused      int64
	evicted      int64
	throttled    int64
	yielded      int64
	roomLog      logInterval // of refused and evicted ones
	throttledLog logInterval
}

// NewConnectionLimit returns a limit of so many connections, and of so many of each user
// but proxies and the system's own; 0 or less means none.
func NewConnectionLimit(most, perUser int, logger *slog.Logger) *ConnectionLimit {
	return &ConnectionLimit{most: most, perUser: perUser, newcomerTime: newcomerTime, logger: logger, holders: make(map[Holder]*holdings)}
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

// Evicted returns how many connections that no user held have been closed to make room for
// new ones.
func (l *ConnectionLimit) Evicted() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.evicted
}

// admit counts a connection, or returns nil if there is no room for it.
func (l *ConnectionLimit) admit(inner net.Conn) *Conn {
	c := &Conn{Conn: inner, limit: l, opened: time.Now()}
	for {
		victim, ok := l.enter(c)
		switch {
		case ok:
			return c
		case victim == nil:
			l.log("connections are refused", c)
			return nil
		}
		l.log("connections that no user holds are closed to make room for new ones", victim)
		_ = victim.Close() // which makes room
	}
}

// enter counts a connection if there is room. Otherwise it returns the connection that is
// to be closed in its favor, if there is one.
func (l *ConnectionLimit) enter(c *Conn) (victim *Conn, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settle()
	if l.most <= 0 || l.open < l.most {
		l.open++
		c.enlist(&l.newcomers)
		return nil, true
	}
	if victim = l.leastUsed(c.host()); victim == nil {
		l.refused++
		return nil, false
	}
	victim.delist()
	l.evicted++
	return victim, false
}

// settle puts connections of clients that are newcomers no more behind the others. It is called
// for each new one, so that some at a time are enough. l.mu is held.
func (l *ConnectionLimit) settle() {
	now := time.Now()
	for range maxExamined {
		e := l.newcomers.Front()
		if e == nil || now.Sub(e.Value.(*Conn).opened) < l.newcomerTime {
			return
		}
		c := e.Value.(*Conn)
		c.delist()
		c.enlist(&l.unheld)
	}
}

// leastUsed returns the connection that no user holds and that was used longest ago, or nil.
// Those of newcomers come after those, and are closed for one of their own host, if there is.
// One that a user has given up, and on which it has sent a request since, comes last: the
// request should be answered, but its client, which may not read the answer, must not keep
// new connections out. l.mu is held.
func (l *ConnectionLimit) leastUsed(host netip.Prefix) *Conn {
	for range min(maxExamined, l.unheld.Len()) {
		e := l.unheld.Front()
		c := e.Value.(*Conn)
		if !c.yielded || c.idleSince.Load() != busy {
			return c
		}
		l.unheld.MoveToBack(e)
	}
	if c := l.newcomer(host); c != nil {
		return c
	}
	if e := l.unheld.Front(); e != nil {
		return e.Value.(*Conn)
	}
	return nil
}

// newcomer returns the first connection of a newcomer that is to be closed for another one from
// a host: a host that opens connections faster than clients say who they are closes its own.
// l.mu is held.
func (l *ConnectionLimit) newcomer(host netip.Prefix) *Conn {
	e := l.newcomers.Front()
	if e == nil {
		return nil
	}
	first := e.Value.(*Conn)
	for n := 0; e != nil && n < maxExamined; n++ {
		if c := e.Value.(*Conn); c.host() == host {
			return c
		}
		e = e.Next()
	}
	return first
}

// log says, every limitLogInterval at most, that there is no room.
func (l *ConnectionLimit) log(what string, last *Conn) {
	l.mu.Lock()
	due, open, refused, evicted := l.roomLog.due(), l.open, l.refused, l.evicted
	l.mu.Unlock()
	if due {
		l.logger.Warn(what+": as many are open as may be (--max-connections, or what the limit of open files leaves: ulimit -n, LimitNOFILE of the service)",
			"open", open, "refused", refused, "evicted", evicted, "last", last.RemoteAddr().String())
	}
}

func (l *ConnectionLimit) closed(c *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
	l.release(c)
	c.closed = true
	c.state.CompareAndSwap(held, unheld)
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

// Conn is a connection of a ConnectionLimit. The methods but those of net.Conn do nothing
// on nil, a connection that no limit counts.
type Conn struct {
	net.Conn
	limit  *ConnectionLimit
	opened time.Time
	once   sync.Once
	state  atomic.Int32 // one of those below; limit.mu is held to change it
	// idleSince is since when there is no request on the connection, in nanoseconds of Unix
	// time, or one of busy and claimed.
	idleSince atomic.Int64
	refusal   atomic.Pointer[refusal] // of its first user; nil: none was refused

	// limit.mu guards these.
	list    *list.List    // that which the connection is in: limit.newcomers, limit.unheld, or its holder's; nil: it is being closed
	element *list.Element // of list
	holder  *holdings     // nil: no user's
	account *account      // of the holder; nil: it is no namespace
	place   int           // in limit.held, if there is a holder
	system  bool          // held by one of the system's users
	yielded bool          // a user has held it, but it was idle when a user could have no other
	drain   func()        // see OnYield
	moved   time.Time     // when a request that is not authenticated was last noted
	closed  bool
}

// The states of a connection.
const (
	unheld int32 = iota // no user holds it
	held                // a user holds it
)

// host returns what the addresses of the client's host begin with: it may have as many of IPv6
// as it likes.
func (c *Conn) host() netip.Prefix {
	tcp, ok := c.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	ip := tcp.AddrPort().Addr().Unmap().WithZone("")
	prefix, _ := ip.Prefix(min(64, ip.BitLen()))
	return prefix
}

// enlist puts the connection at the end of a list. limit.mu is held.
func (c *Conn) enlist(l *list.List) {
	c.list, c.element = l, l.PushBack(c)
}

// delist takes the connection off its list. limit.mu is held.
func (c *Conn) delist() {
	if c.list != nil {
		c.list.Remove(c.element)
		c.list, c.element = nil, nil
	}
}

// Close implements net.Conn.
func (c *Conn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { c.limit.closed(c) })
	return err
}

// CloseWrite ends the server's side, where connections can do that.
func (c *Conn) CloseWrite() error {
	if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return nil
}

type contextKey struct{}

// Context returns a context for FromContext; it is a ConnContext of http.Server. conn may
// be a *tls.Conn above a connection of the limit's listeners.
func (l *ConnectionLimit) Context(ctx context.Context, conn net.Conn) context.Context {
	if c := counted(conn); c != nil {
		return context.WithValue(ctx, contextKey{}, c)
	}
	return ctx
}

// FromContext returns the connection of the context of one of its requests, or nil.
func FromContext(ctx context.Context) *Conn {
	c, _ := ctx.Value(contextKey{}).(*Conn)
	return c
}

// counted returns the connection of a limit that is under others, or nil.
func counted(conn net.Conn) *Conn {
	for {
		switch c := conn.(type) {
		case *Conn:
			return c
		case *limitConn:
			conn = c.Conn
		case *BatchConn:
			conn = c.Conn
		case interface{ NetConn() net.Conn }: // *tls.Conn
			conn = c.NetConn()
		default:
			return nil
		}
	}
}

// Used notes a request of a client that is not authenticated: connections on which
// nothing was asked for longer are closed before its own. It does not keep one that a user
// has given up. It is noted once in a moveInterval: otherwise a client that asks on many
// connections, again and again, would have others closed before its own.
func (c *Conn) Used() {
	if c == nil || c.state.Load() == held {
		return
	}
	l := c.limit
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settle()
	if c.list != &l.unheld { // a newcomer's will be the last of them
		return
	}
	c.yielded = false
	if now := time.Now(); now.Sub(c.moved) >= moveInterval {
		c.moved = now
		c.list.MoveToBack(c.element)
	}
}
