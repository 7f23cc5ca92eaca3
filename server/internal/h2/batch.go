package h2

import (
	"crypto/tls"
	"net"
	"sync"
)

// batchSize is how many encrypted bytes are collected before a system call.
const batchSize = 128 << 10

// NewListener returns a listener whose connections speak TLS and write the
// records of one batch with one system call: crypto/tls writes each record,
// of 16 kB at most, on its own. The connections are *tls.Conn, as net/http
// needs them; for HTTP/1.1 nothing changes.
func NewListener(inner net.Listener, config *tls.Config) net.Listener {
	return &listener{Listener: inner, config: config}
}

type listener struct {
	net.Listener
	config *tls.Config
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	inner, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return tls.Server(&batchConn{Conn: inner}, l.config), nil
}

// batchConn lies between a tls.Conn and its network connection. While a batch
// is open, it collects what is written. tls.Conn writes one record at a time,
// but not only for us: it also answers key updates, in the reader's goroutine.
// That keeps its place in the order.
type batchConn struct {
	net.Conn

	mu   sync.Mutex
	open bool
	buf  *buffer
}

// Write implements net.Conn.
func (b *batchConn) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.open {
		return b.Conn.Write(p)
	}
	if b.buf == nil {
		b.buf = getLargeBuffer()
	}
	b.buf.bytes = append(b.buf.bytes, p...)
	if len(b.buf.bytes) >= batchSize {
		if err := b.send(); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// begin opens a batch; the caller must end it.
func (b *batchConn) begin() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open = true
}

// end writes what has been collected.
func (b *batchConn) end() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open = false
	if b.buf == nil {
		return nil
	}
	err := b.send()
	b.buf.put()
	b.buf = nil
	return err
}

func (b *batchConn) send() error {
	if len(b.buf.bytes) == 0 {
		return nil
	}
	_, err := b.Conn.Write(b.buf.bytes)
	b.buf.bytes = b.buf.bytes[:0]
	return err
}
