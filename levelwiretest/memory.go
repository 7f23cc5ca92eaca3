package levelwiretest

import (
	"context"
	"net"

	"google.golang.org/grpc/test/bufconn"
)

// memoryListener takes connections that are made in this process, through memory.
// They have buffers, as those of the network do: HTTP/2 needs them.
type memoryListener struct{ listener *bufconn.Listener }

const connBytes = 256 << 10

func newMemoryListener() memoryListener { return memoryListener{bufconn.Listen(connBytes)} }

// address is that of every connection. Nothing listens there.
var address = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 6443}

// Accept implements net.Listener.
func (l memoryListener) Accept() (net.Conn, error) {
	c, err := l.listener.Accept()
	if err != nil {
		return nil, err
	}
	return memoryConn{c}, nil
}

// Close implements net.Listener.
func (l memoryListener) Close() error { return l.listener.Close() }

// Addr implements net.Listener.
func (l memoryListener) Addr() net.Addr { return address }

func (l memoryListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	c, err := l.listener.DialContext(ctx)
	if err != nil {
		return nil, err
	}
	return memoryConn{c}, nil
}

// memoryConn is a connection with an address as the server knows them.
type memoryConn struct{ net.Conn }

// LocalAddr implements net.Conn.
func (memoryConn) LocalAddr() net.Addr { return address }

// RemoteAddr implements net.Conn.
func (memoryConn) RemoteAddr() net.Addr { return address }
