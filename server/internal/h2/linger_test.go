package h2

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

// countingListener counts the bytes that are read from its connections.
type countingListener struct {
	net.Listener
	read atomic.Int64
}

// Accept implements net.Listener.
func (l *countingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &countedRead{conn, l}, nil
}

type countedRead struct {
	net.Conn
	listener *countingListener
}

// Read implements io.Reader.
func (c *countedRead) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.listener.read.Add(int64(n))
	return n, err
}

// TestWhatFollowsTheEndIsNotDecrypted: after the GOAWAY for a client that breaks the
// protocol, the server reads on for a while, so that the GOAWAY arrives, but does not decrypt
// what it throws away: these are no records at all.
func TestWhatFollowsTheEndIsNotDecrypted(t *testing.T) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	listener := &countingListener{Listener: tcp}
	f := startOn(t, listener, func(http.ResponseWriter, *http.Request) {})
	p := f.dial().greet()
	must(t, p.conn.SetDeadline(time.Now().Add(3*time.Minute)))
	must(t, p.framer.WriteRawFrame(http2.FramePushPromise, 0, 1, make([]byte, 4)))
	for {
		if _, ok := p.read().(*http2.GoAwayFrame); ok {
			break
		}
	}
	const flood = 256 << 10
	before := listener.read.Load()
	raw := p.conn.(*tls.Conn).NetConn().(*net.TCPConn)
	_, err = raw.Write(bytes.Repeat([]byte("x"), flood))
	must(t, err)
	must(t, raw.CloseWrite())
	if _, err := io.Copy(io.Discard, raw); err != nil {
		t.Errorf("the end of the connection did not arrive: %v", err)
	}
	if n := listener.read.Load() - before; n != flood {
		t.Errorf("%d bytes were read of %d that followed the end", n, flood)
	}
}
