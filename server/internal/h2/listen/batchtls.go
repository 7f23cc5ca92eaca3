package listen

import (
	"crypto/tls"
	"net"
	"sync"
)

const (
	// batchSize is how many encrypted bytes are collected before a system call.
	batchSize = 128 << 10
	// maxRecord is more than a TLS record with its header.
	maxRecord = 17 << 10
)

// batchBuffers holds buffers of connections whose batch is open. An idle
// connection has none.
var batchBuffers = sync.Pool{New: func() any {
	buf := make([]byte, 0, batchSize+maxRecord)
	return &buf
}}

// BatchTLS returns a listener whose connections speak TLS and can write the
// records of a batch with one system call: crypto/tls writes each record, of
// 16 kB at most, on its own. The connections are *tls.Conn, as net/http needs
// them; for HTTP/1.1 nothing changes.
func BatchTLS(inner net.Listener, config *tls.Config) net.Listener {
	return &batchListener{Listener: inner, config: config}
}

type batchListener struct {
	net.Listener
	config *tls.Config
}

// Accept implements net.Listener.
func (l *batchListener) Accept() (net.Conn, error) {
	inner, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return tls.Server(&BatchConn{Conn: inner}, l.config), nil
}

// BatchConn lies between a tls.Conn and its network connection. While a batch is
// open, it collects what tls.Conn writes, record by record. The goroutine that
// reads writes through it, too: it answers key updates. Records keep their order.
type BatchConn struct {
	net.Conn

	mu   sync.Mutex // held while anything is written
	open bool
	buf  *[]byte // of the open batch; nil before its first record
}

// Write implements net.Conn.
func (b *BatchConn) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.open {
		return b.Conn.Write(p)
	}
	if b.buf == nil {
		b.buf = batchBuffers.Get().(*[]byte)
	}
	*b.buf = append(*b.buf, p...)
	if len(*b.buf) >= batchSize {
		if err := b.send(); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// Begin opens a batch. The caller must call End.
func (b *BatchConn) Begin() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open = true
}

// End writes what the batch has collected. It blocks while the peer does not read.
func (b *BatchConn) End() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open = false
	if b.buf == nil {
		return nil
	}
	err := b.send()
	*b.buf = (*b.buf)[:0]
	batchBuffers.Put(b.buf)
	b.buf = nil
	return err
}

// send writes what has been collected so far. b.mu is held.
func (b *BatchConn) send() error {
	if len(*b.buf) == 0 {
		return nil
	}
	_, err := b.Conn.Write(*b.buf)
	*b.buf = (*b.buf)[:0]
	return err
}
