package faultnet

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// pipeBuffer is how many bytes one direction of a connection holds before
// writing blocks.
const pipeBuffer = 64 << 10

// Pipe is a network in memory: a listener, and Dial to reach it. It starts no
// goroutine and blocks only on channels, and its deadlines are timers of
// package time; so within a testing/synctest bubble a reader that waits for
// bytes is durably blocked, and time moves on. Make it inside the bubble that
// uses it.
//
// Unlike net.Pipe, each direction has a buffer, as a socket has: a writer need
// not meet its reader.
type Pipe struct {
	pending chan *pipeConn
	once    sync.Once
	closed  chan struct{}
}

var _ net.Listener = (*Pipe)(nil)

// NewPipe returns a network in memory. Closing it refuses new connections;
// those that exist stay open.
func NewPipe() *Pipe {
	return &Pipe{pending: make(chan *pipeConn), closed: make(chan struct{})}
}

// Accept waits for a connection; net.ErrClosed after Close.
func (p *Pipe) Accept() (net.Conn, error) {
	select {
	case c := <-p.pending:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Dial connects to the listener and waits until it accepts. Its shape is that
// of http.Transport.DialContext; network and address are ignored. It fails
// with net.ErrClosed once the pipe is closed, and when ctx ends.
func (p *Pipe) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	up, down := newStream(), newStream()
	client := &pipeConn{in: down, out: up}
	server := &pipeConn{in: up, out: down}
	select {
	case p.pending <- server:
		return client, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Close stops the listener.
func (p *Pipe) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// Addr returns the address of every end, "pipe".
func (p *Pipe) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }

// pipeConn is one end of a connection.
type pipeConn struct {
	in, out *stream
}

func (c *pipeConn) Read(b []byte) (int, error)  { return c.in.read(b) }
func (c *pipeConn) Write(b []byte) (int, error) { return c.out.write(b) }

// CloseWrite ends the connection's outgoing half, as (*net.TCPConn).CloseWrite
// does.
func (c *pipeConn) CloseWrite() error {
	c.out.end()
	return nil
}

// Close lets the peer read what was written, and then the end.
func (c *pipeConn) Close() error {
	c.out.end()
	c.out.abandonWriter()
	c.in.abandonReader()
	return nil
}

func (c *pipeConn) LocalAddr() net.Addr  { return pipeAddr{} }
func (c *pipeConn) RemoteAddr() net.Addr { return pipeAddr{} }

func (c *pipeConn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

func (c *pipeConn) SetReadDeadline(t time.Time) error {
	c.in.setDeadline(&c.in.readDeadline, t)
	return nil
}

func (c *pipeConn) SetWriteDeadline(t time.Time) error {
	c.out.setDeadline(&c.out.writeDeadline, t)
	return nil
}

// errReset is what a writer gets whose peer has gone.
var errReset = &net.OpError{Op: "write", Net: "pipe", Err: io.ErrClosedPipe}
