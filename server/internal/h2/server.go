package h2

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"

	"github.com/levelwire/levelwire/server/internal/runqueue"
)

// Options are the limits of a server. Zero values mean the defaults named.
type Options struct {
	// MaxConcurrentStreams is how many requests a connection may have under way;
	// 250 by default. A handler whose stream the client has reset counts until it
	// returns.
	MaxConcurrentStreams int
	// MaxHeaderBytes limits the header fields of a request, as RFC 9113 section
	// 6.5.2 counts them; 64 kB by default. A request above it is a 431.
	MaxHeaderBytes int
	// MaxReadFrameSize is the largest frame that is received; 256 kB by default.
	MaxReadFrameSize int
	// StreamWindow and ConnWindow are how many bytes of request bodies may wait
	// for their handlers, for each stream and for a connection; 512 kB and 2 MB
	// by default.
	StreamWindow, ConnWindow int
	// HandshakeTimeout is how long a client may take to begin to speak HTTP/2
	// after the TLS handshake; 10 s by default.
	HandshakeTimeout time.Duration
	// IdleTimeout is how long a connection without requests is kept; 3 min by
	// default.
	IdleTimeout time.Duration
	// A connection that has been silent for PingAfter (15 s by default) is sent a
	// PING, and closed if nothing arrives within PingTimeout (10 s by default).
	PingAfter, PingTimeout time.Duration
	// WriteTimeout is how long a stream may wait for the client's windows, 30 s by
	// default. Then it is reset, at the next check of the connection: there is one at
	// least every WriteTimeout. listen.LimitWrites ends connections that the client
	// does not read at all.
	WriteTimeout time.Duration
	// Unauthenticated limits connections until their clients are known. Nil: there is no
	// difference.
	Unauthenticated *Unauthenticated
	// RunQueue bounds how many connections with floods of frames are read from at a time;
	// nil does not. See response.ServedFor.
	RunQueue *runqueue.Queue
	// Logger gets panics in handlers (Error) and errors of clients (Debug). Nil
	// is slog.Default().
	Logger *slog.Logger
}

func (o *Options) setDefaults() {
	setDefault(&o.MaxConcurrentStreams, 250)
	setDefault(&o.MaxHeaderBytes, 64<<10)
	setDefault(&o.MaxReadFrameSize, 256<<10)
	setDefault(&o.StreamWindow, 512<<10)
	setDefault(&o.ConnWindow, 2<<20)
	setDefault(&o.HandshakeTimeout, 10*time.Second)
	setDefault(&o.IdleTimeout, 3*time.Minute)
	setDefault(&o.PingAfter, 15*time.Second)
	setDefault(&o.PingTimeout, 10*time.Second)
	setDefault(&o.WriteTimeout, 30*time.Second)
	if o.Unauthenticated != nil {
		limits := *o.Unauthenticated
		limits.setDefaults()
		o.Unauthenticated = &limits
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Server serves the HTTP/2 connections of an http.Server. Its methods may be
// called concurrently.
type Server struct {
	options   Options
	unstarted atomic.Int32 // handlers of all connections that have not begun to run

	mu        sync.Mutex
	conns     map[*conn]struct{}
	draining  bool
	empty     chan struct{} // closed when no connection is left; nil while Shutdown does not wait
	heldBytes int64         // the sum of conn.held
	holders   holders       // the connections that hold some of them
}

// New returns a server. It starts nothing.
func New(options Options) *Server {
	options.setDefaults()
	return &Server{options: options, conns: make(map[*conn]struct{})}
}

// Attach makes an http.Server hand its HTTP/2 connections to s. It must be called
// before that server serves, and the TLS configuration must offer "h2".
// http.Server.Shutdown then sends GOAWAY to clients and waits until their last
// requests are done; http.Server.Close closes their connections.
func (s *Server) Attach(server *http.Server) {
	if server.TLSNextProto == nil {
		server.TLSNextProto = make(map[string]func(*http.Server, *tls.Conn, http.Handler))
	}
	server.TLSNextProto[http2.NextProtoTLS] = s.serve
	server.RegisterOnShutdown(s.drain)
}

// serve returns when the connection is closed and the handlers of its requests
// have returned.
func (s *Server) serve(_ *http.Server, tc *tls.Conn, handler http.Handler) {
	c := newConn(s, tc, handler)
	s.mu.Lock()
	s.conns[c] = struct{}{}
	draining := s.draining
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.conns, c)
		s.hold(c, -c.held)
		s.noteClosed()
	}()
	if draining {
		c.drain()
	}
	if !c.charge(c.base, true) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.fail(errEvicted)
		return
	}
	c.serve()
}

// noteClosed wakes Shutdown if no connection is left. s.mu is held.
func (s *Server) noteClosed() {
	if len(s.conns) == 0 && s.empty != nil {
		close(s.empty)
		s.empty = nil
	}
}

// Shutdown sends GOAWAY to all clients and waits until the last request is done
// and the last connection closed, or until ctx ends: then it returns the error of
// ctx. http.Server.Shutdown does the same, but checks only twice a second. It is
// also needed, for connections that are still being opened.
func (s *Server) Shutdown(ctx context.Context) error {
	s.drain()
	s.mu.Lock()
	if s.empty == nil {
		s.empty = make(chan struct{})
	}
	empty := s.empty
	s.noteClosed()
	s.mu.Unlock()
	select {
	case <-empty:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// drain sends GOAWAY to all clients (RFC 9113 section 6.8).
func (s *Server) drain() {
	s.mu.Lock()
	s.draining = true
	conns := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		conns = append(conns, c)
	}
	s.mu.Unlock()
	for _, c := range conns {
		c.drain()
	}
}
