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

// tlsConn is what the server uses of a *tls.Conn.
type tlsConn interface {
	net.Conn
	CloseWrite() error
	ConnectionState() tls.ConnectionState
	NetConn() net.Conn
}

// conn is one connection.
type conn struct {
	server  *Server
	handler http.Handler
	tls     tlsConn
	batch   *listen.BatchConn // under tls, if it came from listen.BatchTLS
	counted *listen.Conn      // under tls, if a limit counts it
	ctx     context.Context   // net/http's
	values  context.Context   // the same without its end, see cancelWithBase
	state   *tls.ConnectionState
	remote  string

	// Used by the reading goroutine only.
	in      reader
	decoder *hpack.Decoder
	fields  fieldCollector
	abuse   tokenBucket
	block   int64 // bytes of the header block that is being read, as charge has counted them
	shrunk  bool  // the compression table was emptied, see settingsAcked
	regrown bool  // and is allowed again

	authenticated atomic.Bool // or there is no difference

	// server.mu guards these four.
	held    int64 // bytes that charge has counted
	base    int64 // those of them that are not a request's
	evicted bool  // to make room for others
	place   int   // in server.holders, if held is not 0

	handlers sync.WaitGroup
	pacing   pace
	started  time.Time
	lastRead atomic.Int64 // ns after started, by the monotonic clock

	// mu guards everything below, and the third group of a stream's fields.
	mu         sync.Mutex
	streams    map[uint32]*stream // those on which frames may still come or go
	running    int                // handlers that have not returned, see stream.ended
	maxStreams int                // how many may be running
	lastID     uint32             // the newest stream that the client has opened
	out        output
	err        error // why nothing is written any more; nil: it is
	closing    bool  // the final GOAWAY is on its way: new streams are ignored
	goAway     bool  // a GOAWAY has asked the client to open no more streams
	baseEnded  bool  // ctx has ended: so have those of all streams

	sendWindow    int64
	windowUpdated time.Time // when sendWindow grew last
	initialWindow int64     // the client's SETTINGS_INITIAL_WINDOW_SIZE
	peerFrameSize int

	connWindow int64 // bytes of DATA that the client may have sent without their being consumed
	recvWindow int64 // bytes of DATA that the client may still send
	recvSpent  int64 // bytes consumed since the last WINDOW_UPDATE

	encoder   *hpack.Encoder
	timer     *time.Timer
	idleSince time.Time
	pinged    time.Time // when the PING was sent that has not been answered; zero: none
}

func newConn(s *Server, tc tlsConn, handler http.Handler) *conn {
	c := &conn{
		server: s, handler: handler, tls: tc, ctx: context.Background(),
		remote:        tc.RemoteAddr().String(),
		streams:       make(map[uint32]*stream),
		sendWindow:    frame.DefaultWindow,
		initialWindow: frame.DefaultWindow,
		peerFrameSize: frame.DefaultSize,
		maxStreams:    s.options.MaxConcurrentStreams,
		connWindow:    int64(s.options.ConnWindow),
		started:       time.Now(),
		pacing:        pace{resume: make(chan struct{}, 1)},
	}
	if limits := s.options.Unauthenticated; limits != nil {
		c.maxStreams = min(c.maxStreams, limits.MaxConcurrentStreams)
		c.connWindow = min(c.connWindow, frame.DefaultWindow)
	} else {
		c.authenticated.Store(true)
	}
	c.recvWindow = c.connWindow
	c.idleSince = c.started
	if base, ok := handler.(interface{ BaseContext() context.Context }); ok {
		c.ctx = base.BaseContext() // net/http's own, with the server and the local address
	}
	c.values = context.WithoutCancel(c.ctx)
	c.counted = listen.FromContext(c.ctx)
	c.counted.OnYield(c.drain)
	state := tc.ConnectionState()
	c.state = &state
	if b, ok := tc.NetConn().(*listen.BatchConn); ok {
		c.batch = b
	}
	c.base = c.certificateCost()
	c.in.source = tc
	c.in.conn = c
	c.abuse = newAbuseLimit(s.options.MaxConcurrentStreams)
	c.fields.limit = s.options.MaxHeaderBytes
	c.decoder = hpack.NewDecoder(headerTable, c.fields.add)
	c.decoder.SetMaxStringLength(s.options.MaxHeaderBytes)
	c.encoder = hpack.NewEncoder((*headerSink)(&c.out))
	return c
}

// serve reads until the connection ends, and waits for the handlers.
func (c *conn) serve() {
	defer c.cancelWithBase()()
	c.sendPreface()
	err := c.readPreface()
	if err == nil {
		err = c.read()
	}
	c.pauseFlood()
	c.end(err)
	c.in.release()
	c.handlers.Wait()
	c.mu.Lock()
	c.timer.Stop()
	c.mu.Unlock()
}

// cancelWithBase ends the contexts of all streams when the connection's own ends before
// them: they have its values only, because each would need an entry in it otherwise. stop
// has that forgotten.
func (c *conn) cancelWithBase() (stop func() bool) {
	return context.AfterFunc(c.ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.baseEnded = true
		for _, st := range c.streams {
			st.cancel()
		}
	})
}

// sendPreface appends the server's preface, before anything else.
func (c *conn) sendPreface() {
	o := &c.server.options
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.out.open()
	settings := []http2.Setting{
		{ID: http2.SettingMaxConcurrentStreams, Val: uint32(c.maxStreams)},
		{ID: http2.SettingInitialWindowSize, Val: uint32(o.StreamWindow)},
		{ID: http2.SettingMaxFrameSize, Val: uint32(o.MaxReadFrameSize)},
		{ID: http2.SettingMaxHeaderListSize, Val: uint32(o.MaxHeaderBytes)},
	}
	if o.Unauthenticated != nil {
		// No compression table, until authenticate allows one: with it, a byte of a
		// request stands for up to 4 kB.
		settings = append(settings, http2.Setting{ID: http2.SettingHeaderTableSize, Val: 0})
	}
	*b = frame.AppendSettings(*b, settings...)
	if more := c.connWindow - frame.DefaultWindow; more != 0 {
		*b = frame.AppendWindowUpdate(*b, 0, more)
	}
	c.writeSoon()
	c.timer = time.AfterFunc(min(o.PingAfter, o.IdleTimeout, o.WriteTimeout), c.tick)
	if c.goAway {
		c.sendGoAway()
	}
}

// readPreface reads the client's preface (RFC 9113 section 3.4).
func (c *conn) readPreface() error {
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
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.out.ended {
		return nil // the server has said all that it will: the reader's deadline is writeAll's
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
		c.pace()
	}
}

// end closes the connection. If the client broke the protocol, a GOAWAY is sent
// first.
func (c *conn) end(err error) {
	var broken connError
	if errors.As(err, &broken) {
		c.server.options.Logger.Debug("HTTP/2 connection ended: the client broke the protocol", "remote", c.remote, "error", err)
		c.mu.Lock()
		if c.err == nil {
			c.closing = true
			b := c.out.open()
			*b = frame.AppendGoAway(*b, c.lastID, broken.code, broken.reason)
			c.failStreams(errConnClosed)
			c.out.last = true
			c.writeSoon()
		}
		c.mu.Unlock()
		c.abandonStreams()
		c.linger()
	}
	c.mu.Lock()
	c.fail(errConnClosed)
	c.mu.Unlock()
	c.abandonStreams()
}

const (
	// lingerTime and lingerBytes bound how long a connection is read from after its
	// last frame was written. Closing it with unread bytes would make the kernel
	// reset it, and the client might never see that frame.
	lingerTime  = 250 * time.Millisecond
	lingerBytes = 1 << 20
)

// linger reads what the client still sends, for a while. It does not decrypt that: small
// records of a flood would cost more there than frames did that were served.
func (c *conn) linger() {
	raw := c.netConn()
	if raw.SetReadDeadline(time.Now().Add(lingerTime)) == nil {
		_, _ = io.CopyN(io.Discard, raw, lingerBytes) // the connection is closed next, whatever ended this
	}
}

// fail closes the connection. The reading goroutine, which that ends, then has the
// handlers end: abandonStreams. c.mu is held.
func (c *conn) fail(err error) {
	if c.err != nil {
		return
	}
	c.err = err
	c.closing = true
	c.failStreams(err)
	c.out.drop()
	// Not tls.Conn's, which would wait for a write that is stuck. The client
	// misses a close_notify, but HTTP/2 frames carry their own length.
	_ = c.netConn().Close() // nothing is left to do about an error
}

func (c *conn) netConn() net.Conn {
	if c.batch != nil {
		return c.batch.Conn
	}
	return c.tls.NetConn()
}

// failStreams has nothing more be sent on any stream. c.mu is held.
func (c *conn) failStreams(err error) {
	for _, st := range c.streams {
		if st.err == nil {
			st.err = err
		}
	}
}

// finishIfDone closes a draining connection after its last stream, as soon as
// everything is written. c.mu is held.
func (c *conn) finishIfDone() {
	if c.running > 0 || len(c.streams) > 0 {
		return
	}
	c.idleSince = time.Now()
	c.counted.Idle(c.idleSince)
	if c.closing {
		c.out.last = true
		c.writeSoon()
	}
}
