package load

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

var (
	errProtocol = errors.New("the server breaks HTTP/2")
	// ErrFull means that the server allows no more streams on this connection.
	ErrFull = errors.New("the server allows no more streams on this connection")
	// ErrClosed is why streams end whose connection was closed by Close.
	ErrClosed = errors.New("the connection was closed")
)

const (
	maxWindow     = 1<<31 - 1
	initialWindow = 65535 // RFC 9113, section 6.9.2
	// refill is how much of a window is used before it is opened again.
	refill = maxWindow / 2
	// maxRecord is the most that one read from TLS returns.
	maxRecord = 16 << 10
)

// Options of a connection. The zero value has the defaults.
type Options struct {
	// ReadBuffer is how many bytes are asked of the socket at once; default
	// 256 kB. A thousand connections want less.
	ReadBuffer int
	// StreamWindow is how much the server may send on a stream before the client
	// opens the window again; default, and most, 2 GB. Streams that do not ask to
	// be stalled get the whole of it anyway.
	StreamWindow int
	// Nap is how long to wait after a read that brought little before the next,
	// so that a burst costs a few reads and not one for each event. Interrupts of
	// network cards are held back in the same way. It adds to latencies.
	Nap time.Duration
}

// Conn is an HTTP/2 connection to a server. Its methods may be called
// concurrently; Receivers are called by the one goroutine that reads.
type Conn struct {
	tls       *tls.Conn
	authority string
	options   Options
	received  atomic.Int64
	done      chan struct{} // closed when the reader has ended
	settled   chan struct{} // closed when the server's settings are known

	// The reader's own.
	frames   frames
	at       time.Time // of the last read
	current  *stream   // of the DATA frame that has begun; nil: none
	consumed int       // of the connection's window
	headers  headers

	mu         sync.Mutex
	streams    map[uint32]*stream
	next       uint32 // the next stream's id
	maxStreams int
	err        error // why there are no new streams
	output     output
	framer     *http2.Framer
	fields     *hpack.Encoder
	block      bytes.Buffer // what fields writes
	window     int          // the connection's, for sending
	firstWin   int          // of each new stream, for sending
	maxFrame   int
	blocked    []*stream // wait for the window, in order
}

// Dial connects to host:port and returns when the server has sent its limits.
// config must name what is trusted; NextProtos is set.
func Dial(ctx context.Context, address string, config *tls.Config, o Options) (*Conn, error) {
	if o.ReadBuffer <= 0 {
		o.ReadBuffer = 256 << 10
	}
	if o.StreamWindow <= 0 || o.StreamWindow > maxWindow {
		o.StreamWindow = maxWindow
	}
	socket, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	config = config.Clone()
	config.NextProtos = []string{"h2"}
	if host, _, err := net.SplitHostPort(address); err == nil && config.ServerName == "" {
		config.ServerName = host
	}
	naps := &napping{socket: socket}
	secure := tls.Client(&buffered{socket, bufio.NewReaderSize(naps, o.ReadBuffer)}, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("TLS with %s: %w", address, err), socket.Close())
	}
	if p := secure.ConnectionState().NegotiatedProtocol; p != "h2" {
		return nil, errors.Join(fmt.Errorf("%s does not speak HTTP/2 but %q", address, p), socket.Close())
	}
	naps.nap = o.Nap
	c := &Conn{
		tls: secure, authority: address, options: o,
		done: make(chan struct{}), settled: make(chan struct{}),
		streams: map[uint32]*stream{}, next: 1, maxStreams: 100,
		window: initialWindow, firstWin: initialWindow, maxFrame: 16 << 10,
	}
	c.output.to = secure
	c.framer = http2.NewFramer(&c.output, nil)
	c.fields = hpack.NewEncoder(&c.block)
	c.headers.init()
	return c, c.start(ctx)
}

// start sends the preface and waits for the server's.
func (c *Conn) start(ctx context.Context) error {
	c.mu.Lock()
	_, err := c.output.Write([]byte(http2.ClientPreface))
	err = errors.Join(err, c.framer.WriteSettings(
		http2.Setting{ID: http2.SettingEnablePush, Val: 0},
		http2.Setting{ID: http2.SettingInitialWindowSize, Val: uint32(c.options.StreamWindow)},
		http2.Setting{ID: http2.SettingMaxFrameSize, Val: maxControl},
	), c.framer.WriteWindowUpdate(0, maxWindow-initialWindow))
	if err = errors.Join(err, c.flush()); err != nil {
		return errors.Join(err, c.tls.Close())
	}
	go c.read()
	select {
	case <-c.settled:
		return nil
	case <-c.done:
		return c.err
	case <-ctx.Done():
		c.Close()
		return ctx.Err()
	}
}

// Close ends the connection and all its streams with ErrClosed, and waits
// until End of all receivers has returned. A Receiver must not call it, nor block.
func (c *Conn) Close() {
	_ = c.fail(ErrClosed)
	_ = c.tls.NetConn().Close() // It may have been closed by the server's end.
	<-c.done
}

// Received is how many bytes of frames have arrived.
func (c *Conn) Received() int64 { return c.received.Load() }

// Done is closed when the connection has ended and all receivers know it.
func (c *Conn) Done() <-chan struct{} { return c.done }

// read is the goroutine that receives everything.
func (c *Conn) read() {
	defer close(c.done)
	buffer := make([]byte, maxRecord)
	for {
		n, err := c.tls.Read(buffer)
		if n > 0 {
			c.at = time.Now()
			c.received.Add(int64(n))
			err = errors.Join(c.frames.cut(buffer[:n], c), err)
		}
		if err != nil {
			c.end(fmt.Errorf("read: %w", err))
			return
		}
	}
}

// end calls End of all receivers.
func (c *Conn) end(err error) {
	err = c.fail(err)
	_ = c.tls.NetConn().Close() // It is of no use any more, whatever this says.
	c.mu.Lock()
	streams := c.streams
	c.streams, c.blocked = nil, nil
	c.mu.Unlock()
	for _, s := range streams {
		s.to.End(err)
	}
}

// fail refuses new streams and returns the first reason.
func (c *Conn) fail(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
	}
	return c.err
}

// buffered asks the socket for much at once. TLS itself asks for a record.
type buffered struct {
	net.Conn
	reader *bufio.Reader
}

// Read implements net.Conn.
func (b *buffered) Read(p []byte) (int, error) { return b.reader.Read(p) }

// napping lets a burst gather.
type napping struct {
	socket net.Conn
	nap    time.Duration
	little bool // came with the last read
}

// Read implements io.Reader.
func (n *napping) Read(p []byte) (int, error) {
	if n.little && n.nap > 0 {
		time.Sleep(n.nap)
	}
	got, err := n.socket.Read(p)
	n.little = got < len(p)/2
	return got, err
}
