package faultnet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Direction is one of the two ways that bytes go through a Proxy.
type Direction int

const (
	// ToServer is from the client to the server: requests.
	ToServer Direction = iota
	// ToClient is from the server to the client: responses.
	ToClient
)

// dialTimeout bounds how long a client waits for a target that does not
// answer.
const dialTimeout = 10 * time.Second

// acceptRetry is the pause after a failed accept.
const acceptRetry = 10 * time.Millisecond

// Stats counts what went through a Proxy since it was made.
type Stats struct {
	Accepted int64    // connections that were forwarded
	Refused  int64    // connections closed at once, by Refuse or for want of a server
	Open     int      // connections that are open now
	Bytes    [2]int64 // delivered, by Direction
}

// Proxy forwards TCP connections to a target and injects faults into them. Without
// faults it is transparent, half-closed connections included. Faults apply to
// the connections that are open as well as to those still to come, until they
// are lifted. All methods are safe for concurrent use.
//
// A Proxy holds two goroutines per connection and one for its listener; Close
// waits for all of them.
type Proxy struct {
	listener net.Listener
	route    route
	rules    [2]*rules
	refuse   atomic.Bool
	accepted atomic.Int64
	refused  atomic.Int64
	stop     context.CancelFunc // ends dialing
	tasks    sync.WaitGroup

	mu    sync.Mutex // guards what follows; never held while reading or writing
	conns map[*pair]struct{}
	ended bool
}

// New starts a proxy on a free port of 127.0.0.1 that forwards connections to
// target, a host:port. The target need not listen yet. The caller must Close
// it.
func New(target string) (*Proxy, error) {
	if _, _, err := net.SplitHostPort(target); err != nil {
		return nil, fmt.Errorf("faultnet: the target must be host:port: %w", err)
	}
	return listen(one(target))
}

// route finds the server of a new connection.
type route interface {
	dial(ctx context.Context, dialer *net.Dialer) (conn net.Conn, target string, err error)
	// accepts reports whether a server that was dialed may still get the connection.
	accepts(target string) bool
}

// one is the route to a single server.
type one string

func (o one) dial(ctx context.Context, dialer *net.Dialer) (net.Conn, string, error) {
	conn, err := dialer.DialContext(ctx, "tcp", string(o))
	return conn, string(o), err
}

func (one) accepts(string) bool { return true }

func listen(route route) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("faultnet: listen on the loopback interface: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	p := &Proxy{
		listener: l, route: route, rules: [2]*rules{newRules(), newRules()},
		stop: stop, conns: map[*pair]struct{}{},
	}
	p.tasks.Go(func() { p.accept(ctx) })
	return p, nil
}

// Addr returns the host:port that clients connect to.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Stats returns the counters.
func (p *Proxy) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Stats{
		Accepted: p.accepted.Load(), Refused: p.refused.Load(), Open: len(p.conns),
		Bytes: [2]int64{p.rules[ToServer].delivered.Load(), p.rules[ToClient].delivered.Load()},
	}
}

// Refuse closes every new connection at once while on. Connections that are
// open stay.
func (p *Proxy) Refuse(on bool) { p.refuse.Store(on) }

// Cut resets every open connection on both sides, as a crash of either would,
// and returns how many there were. Bytes under way are lost. A connection is
// open from when the proxy has reached the server, which a client knows only
// once it has an answer.
func (p *Proxy) Cut() int {
	return p.cut(func(*pair) bool { return true })
}

func (p *Proxy) cut(which func(*pair) bool) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for c := range p.conns {
		if which(c) && c.reset() {
			n++
		}
	}
	return n
}

// CloseWrite ends one direction of every open connection: the receiving side
// reads what is under way and then the end, while the other direction goes on.
// New connections are not affected.
func (p *Proxy) CloseWrite(d Direction) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		// Ending the copy is enough: it closes its side of the connection when
		// the source ends.
		c.from(d).CloseRead()
	}
}

// Stall stops all bytes of a direction while on, on connections that stay
// open: the half-open connection that only a ping detects. The bytes are not
// lost; they go on when the stall is lifted.
func (p *Proxy) Stall(d Direction, on bool) {
	p.rules[d].set(func(f *faults) { f.stalled = on })
}

// Delay holds every chunk of a direction back for a time; zero lifts it. It
// also bounds the rate, since chunks (of up to 16 KiB) wait one after another.
func (p *Proxy) Delay(d Direction, by time.Duration) {
	p.rules[d].set(func(f *faults) { f.delay = max(by, 0) })
}

// Limit bounds the rate of a direction, for each connection by itself, in
// bytes per second; zero lifts it.
func (p *Proxy) Limit(d Direction, bytesPerSecond int) {
	p.rules[d].set(func(f *faults) { f.rate = max(bytesPerSecond, 0) })
}

// CutAfter lets n more bytes of a direction through, over all connections
// together, and then resets the connection that carries the next one; the
// fault is then used up. A message is so torn at an exact place. A negative n
// lifts it.
func (p *Proxy) CutAfter(d Direction, n int64) {
	p.rules[d].set(func(f *faults) { f.budget = max(n, -1) })
}

// Heal lifts all faults. Connections that were cut stay cut.
func (p *Proxy) Heal() {
	p.Refuse(false)
	for _, r := range p.rules {
		r.set(func(f *faults) { *f = noFaults })
	}
}

// Close stops listening, resets every connection and waits until all of the
// proxy's goroutines have ended. Further calls do nothing.
func (p *Proxy) Close() error {
	p.mu.Lock()
	if p.ended {
		p.mu.Unlock()
		p.tasks.Wait()
		return nil
	}
	p.ended = true
	p.mu.Unlock()
	p.stop()
	err := p.listener.Close()
	p.Cut()
	p.tasks.Wait()
	return err
}

func (p *Proxy) accept(ctx context.Context) {
	for {
		client, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // out of file descriptors, for example: retry after a pause
			select {
			case <-time.After(acceptRetry):
			case <-ctx.Done():
			}
			continue
		}
		p.tasks.Go(func() { p.serve(ctx, client.(*net.TCPConn)) })
	}
}

func (p *Proxy) serve(ctx context.Context, client *net.TCPConn) {
	c, err := p.open(ctx, client)
	if err != nil {
		p.refused.Add(1)
		reset(client)
		return
	}
	var copies sync.WaitGroup
	copies.Go(func() { p.rules[ToServer].copy(c, ToServer) })
	p.rules[ToClient].copy(c, ToClient)
	copies.Wait()
	c.client.Close()
	c.server.Close()
	p.mu.Lock()
	delete(p.conns, c)
	p.mu.Unlock()
}

var (
	errRefused = errors.New("faultnet: connections are refused")
	errEnded   = errors.New("faultnet: the proxy is closed")
)

// open connects a client to a server. If the server was drained while it was
// dialed, another one is dialed: a Kill after the Drain must find all of the
// server's connections.
func (p *Proxy) open(ctx context.Context, client *net.TCPConn) (*pair, error) {
	for {
		server, target, err := p.dial(ctx)
		if err != nil {
			return nil, err
		}
		c := &pair{client: client, server: server, target: target, cut: make(chan struct{})}
		taken, err := p.enter(c)
		if taken {
			return c, nil
		}
		reset(server)
		if err != nil {
			return nil, err
		}
	}
}

// enter adds a connection, unless the current faults forbid it.
func (p *Proxy) enter(c *pair) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.ended:
		return false, errEnded
	case p.refuse.Load():
		return false, errRefused
	case !p.route.accepts(c.target):
		return false, nil
	}
	p.conns[c] = struct{}{}
	p.accepted.Add(1)
	return true, nil
}

// dial connects to a server, and gives up when the proxy is closed.
func (p *Proxy) dial(ctx context.Context) (*net.TCPConn, string, error) {
	if p.refuse.Load() {
		return nil, "", errRefused
	}
	server, target, err := p.route.dial(ctx, &net.Dialer{Timeout: dialTimeout})
	if err != nil {
		return nil, "", err
	}
	return server.(*net.TCPConn), target, nil
}

// pair is a connection of a client and the connection to its server.
type pair struct {
	client, server *net.TCPConn
	target         string // of server
	once           sync.Once
	cut            chan struct{} // closed by reset, to wake waiting goroutines
}

// from and to are the ends that bytes of a direction come from and go to.
func (c *pair) from(d Direction) *net.TCPConn {
	if d == ToServer {
		return c.client
	}
	return c.server
}

func (c *pair) to(d Direction) *net.TCPConn { return c.from(1 - d) }

// reset breaks both connections; false if that has been done before.
func (c *pair) reset() (first bool) {
	c.once.Do(func() {
		first = true
		close(c.cut)
		reset(c.client)
		reset(c.server)
	})
	return first
}

// reset closes a connection so that the peer gets an error, not an end.
func reset(c *net.TCPConn) {
	c.SetLinger(0)
	c.Close()
}
