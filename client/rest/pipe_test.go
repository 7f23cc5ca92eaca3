package rest

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	clientrest "k8s.io/client-go/rest"
)

// network is an in-memory one: synctest knows when everybody on it waits.
type network struct {
	accept chan net.Conn
	closed chan struct{}
	once   sync.Once

	mu    sync.Mutex
	conns []*deafConn // the client's ends
	dials int
}

func newNetwork() *network {
	return &network{accept: make(chan net.Conn), closed: make(chan struct{})}
}

func (n *network) Accept() (net.Conn, error) {
	select {
	case c := <-n.accept:
		return c, nil
	case <-n.closed:
		return nil, net.ErrClosed
	}
}

func (n *network) Close() error {
	n.once.Do(func() { close(n.closed) })
	return nil
}

func (n *network) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }

func (n *network) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	c := &deafConn{Conn: client, deaf: make(chan struct{}), closed: make(chan struct{})}
	n.mu.Lock()
	n.conns, n.dials = append(n.conns, c), n.dials+1
	n.mu.Unlock()
	select {
	case n.accept <- server:
		return c, nil
	case <-n.closed:
		return nil, &net.OpError{Op: "dial", Net: "pipe", Err: errors.New("connection refused")}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// goDeaf makes all connections half-open: what is written vanishes, and
// nothing arrives any more.
func (n *network) goDeaf() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.conns {
		c.once.Do(func() { close(c.deaf) })
	}
}

func (n *network) dialed() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.dials
}

// deafConn can be made half-open.
type deafConn struct {
	net.Conn
	deaf, closed    chan struct{}
	once, closeOnce sync.Once
}

func (c *deafConn) isDeaf() bool {
	select {
	case <-c.deaf:
		return true
	default:
		return false
	}
}

func (c *deafConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.isDeaf() {
		<-c.closed
		return 0, net.ErrClosed
	}
	return n, err
}

func (c *deafConn) Write(p []byte) (int, error) {
	if c.isDeaf() {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

func (c *deafConn) Close() error {
	c.closeOnce.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// httpVersions are what every behaviour is tested with.
var httpVersions = map[string]Options{
	"HTTP/1.1": {ForceHTTP1: true},
	"HTTP/2":   {UnencryptedHTTP2: true},
}

// serve starts a server on a network of its own, and a client of it.
func serve(t testing.TB, opts Options, handler http.Handler) (*Client, *network) {
	t.Helper()
	n := newNetwork()
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Handler: handler, Protocols: protocols}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(n)
	}()
	opts.Dial = n.dial
	client, err := New(&clientrest.Config{Host: "http://server"}, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Close()
		client.CloseIdleConnections()
		<-done
	})
	return client, n
}

// context5s bounds a test that waits for something real.
func context5s(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func contextTimeout(t testing.TB, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), d)
}
