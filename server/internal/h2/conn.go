package h2

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/levelwire/levelwire/server/internal/h2/frame"
	"github.com/levelwire/levelwire/server/internal/h2/listen"
)

// secure is a connection as crypto/tls makes them.
type secure interface {
	net.Conn
	CloseWrite() error
	ConnectionState() tls.ConnectionState
	NetConn() net.Conn
}

// conn is one connection.
type conn struct {
	server  *Server
	handler http.Handler
	tls     secure
	batch   *listen.BatchConn // under tls, if it came from listen.BatchTLS
	ctx     context.Context
	state   *tls.ConnectionState
	remote  string

	// The reader's alone.
	in      reader
	decoder *hpack.Decoder
	fields  fieldCollector
	abuse   tokenBucket

	handlers sync.WaitGroup
	began    time.Time
	lastRead atomic.Int64 // ns after began, by the monotonic clock

	// mu guards everything below, and all streams' shared part.
	mu      sync.Mutex
	streams map[uint32]*stream // those of which the peer may still say or hear something
	running int                // handlers that have not returned, see stream.ended
	lastID  uint32             // the newest stream of the peer's
	out     output
	err     error // why nothing is written any more
	closing bool  // a final GOAWAY is on its way: nothing new is accepted
	goAway  bool  // the peer was told to open no more streams

	sendWindow    int64
	granted       time.Time // when it grew last
	initialWindow int64     // the peer's SETTINGS_INITIAL_WINDOW_SIZE
	peerFrameSize int

	recvWindow int64 // what the peer may still send
	recvSpent  int64 // what was consumed since the last WINDOW_UPDATE

	encoder   *hpack.Encoder
	timer     *time.Timer
	idleSince time.Time
	pinged    time.Time // when the ping was sent that has not been answered
}

func newConn(s *Server, tc secure, handler http.Handler) *conn {
	c := &conn{
		server: s, handler: handler, tls: tc, ctx: context.Background(),
		remote:        tc.RemoteAddr().String(),
		streams:       make(map[uint32]*stream),
		sendWindow:    frame.DefaultWindow,
		initialWindow: frame.DefaultWindow,
		peerFrameSize: frame.DefaultSize,
		recvWindow:    int64(s.options.ConnWindow),
		began:         time.Now(),
	}
	c.idleSince = c.began
	if base, ok := handler.(interface{ BaseContext() context.Context }); ok {
		c.ctx = base.BaseContext() // net/http's, with the server and the local address
	}
	state := tc.ConnectionState()
	c.state = &state
	if b, ok := tc.NetConn().(*listen.BatchConn); ok {
		c.batch = b
	}
	c.in.source = tc
	c.in.conn = c
	c.abuse = newAbuseLimit(s.options.MaxConcurrentStreams)
	c.fields.limit = s.options.MaxHeaderBytes
	c.decoder = hpack.NewDecoder(4096, c.fields.add)
	c.decoder.SetMaxStringLength(s.options.MaxHeaderBytes)
	c.encoder = hpack.NewEncoder((*headerSink)(&c.out))
	return c
}

// serve reads until the connection ends, and waits for the handlers.
func (c *conn) serve() {
	c.announce()
	err := c.greet()
	if err == nil {
		err = c.read()
	}
	c.end(err)
	c.in.release()
	c.handlers.Wait()
	c.mu.Lock()
	c.timer.Stop()
	c.mu.Unlock()
}

// announce sends our preface, and lets everything else be sent.
func (c *conn) announce() {
	o := &c.server.options
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.out.open()
	*b = frame.AppendSettings(*b,
		http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: uint32(o.MaxConcurrentStreams)},
		http2.Setting{ID: http2.SettingInitialWindowSize, Val: uint32(o.StreamWindow)},
		http2.Setting{ID: http2.SettingMaxFrameSize, Val: uint32(o.MaxReadFrameSize)},
		http2.Setting{ID: http2.SettingMaxHeaderListSize, Val: uint32(o.MaxHeaderBytes)},
	)
	*b = frame.AppendWindowUpdate(*b, 0, int64(o.ConnWindow)-frame.DefaultWindow)
	c.writeSoon()
	c.timer = time.AfterFunc(min(o.PingAfter, o.IdleTimeout, o.WriteTimeout), c.tick)
	if c.goAway {
		c.sendGoAway()
	}
}

// greet reads the client's preface (RFC 9113 section 3.4).
func (c *conn) greet() error {
	if err := c.tls.SetReadDeadline(time.Now().Add(c.server.options.HandshakeTimeout)); err != nil {
		return err
	}
	got, err := c.in.next(len(frame.Preface))
	if err != nil {
		return err
	}
	if string(got) != frame.Preface {
		return connError{http2.ErrCodeProtocol, "this is not an HTTP/2 preface"}
	}
	head, err := c.in.head()
	if err != nil {
		return err
	}
	if head.Type != http2.FrameSettings || head.Has(http2.FlagSettingsAck) {
		return connError{http2.ErrCodeProtocol, "the first frame must be SETTINGS"}
	}
	if err := c.frame(head); err != nil {
		return err
	}
	return c.tls.SetReadDeadline(time.Time{})
}

func (c *conn) read() error {
	for {
		head, err := c.in.head()
		if err != nil {
			return err
		}
		if err := c.frame(head); err != nil {
			return err
		}
	}
}

// end says goodbye if that makes sense, and closes the connection.
func (c *conn) end(err error) {
	var broken connError
	if errors.As(err, &broken) {
		c.server.options.Logger.Debug("HTTP/2 connection ended: the client broke the protocol", "remote", c.remote, "error", err)
		c.mu.Lock()
		if c.err == nil {
			c.closing = true
			b := c.out.open()
			*b = frame.AppendGoAway(*b, c.lastID, broken.code, broken.reason)
			c.abandonStreams(errConnClosed)
			c.out.last = true
			c.writeSoon()
		}
		c.mu.Unlock()
		c.linger()
	}
	c.mu.Lock()
	c.fail(errConnClosed)
	c.mu.Unlock()
}

const (
	// lingerTime and lingerBytes bound how long a connection is read from after
	// its last words. Closing it with unread bytes would make the kernel reset
	// it, and the peer might never see them.
	lingerTime  = 250 * time.Millisecond
	lingerBytes = 1 << 20
)

func (c *conn) linger() {
	if c.tls.SetReadDeadline(time.Now().Add(lingerTime)) == nil {
		_, _ = io.CopyN(io.Discard, c.tls, lingerBytes) // any end will do
	}
}

// fail ends everything at once. c.mu is held.
func (c *conn) fail(err error) {
	if c.err != nil {
		return
	}
	c.err = err
	c.closing = true
	c.abandonStreams(err)
	c.out.drop()
	// Not tls.Conn's, which would wait for a write that is stuck. The peer
	// misses a close_notify, but HTTP/2 frames say themselves where they end.
	_ = c.netConn().Close() // it is gone in any case
}

func (c *conn) netConn() net.Conn {
	if c.batch != nil {
		return c.batch.Conn
	}
	return c.tls.NetConn()
}

// abandonStreams tells all handlers that nobody listens to them any more. c.mu
// is held.
func (c *conn) abandonStreams(err error) {
	for id, st := range c.streams {
		delete(c.streams, id)
		st.abandon(err)
	}
}

// finishIfDone closes a draining connection after its last stream, as soon as
// everything is written. c.mu is held.
func (c *conn) finishIfDone() {
	if c.running > 0 || len(c.streams) > 0 {
		return
	}
	c.idleSince = time.Now()
	if c.closing {
		c.out.last = true
		c.writeSoon()
	}
}
