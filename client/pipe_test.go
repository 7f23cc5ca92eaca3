package client

import (
	"context"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/internal/faultnet"
)

// network is one in memory whose connections can be made half-open.
type network struct {
	*faultnet.Pipe

	mu    sync.Mutex
	conns []*deafConn // the client's ends
}

func newNetwork() *network { return &network{Pipe: faultnet.NewPipe()} }

func (n *network) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := n.Dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c := &deafConn{Conn: conn, deaf: make(chan struct{}), closed: make(chan struct{})}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.conns = append(n.conns, c)
	return c, nil
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

// cut closes all connections.
func (n *network) cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.conns {
		_ = c.Close()
	}
}

func (n *network) dialed() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.conns)
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
	client, err := New(&rest.Config{Host: "http://server"}, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Close()
		client.CloseIdleConnections()
		n.cut()
		<-done
	})
	return client, n
}

func contextTimeout(t testing.TB, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), d)
}
