package apiserver

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/levelwire/levelwire/server/internal/h2"
	"github.com/levelwire/levelwire/server/internal/h2/listen"
)

const (
	// maxStreams is how many requests one HTTP/2 connection may have open, once its
	// client is known. Informers of a whole process share a connection, each with a
	// stream.
	maxStreams = 1000
	// A connection without traffic is pinged after pingAfter, and closed pingTimeout
	// later. A half-open connection would keep its watches for ever.
	pingAfter   = 15 * time.Second
	pingTimeout = 10 * time.Second

	// readHeaderTimeout is how long a client may take for a TLS handshake, then for the
	// preface of HTTP/2, or for the header of a request of HTTP/1.1.
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 3 * time.Minute
	maxHeaderBytes    = 64 << 10
	// maxFrame is the largest HTTP/2 frame that is received; bodies come in fewer pieces.
	maxFrame = 256 << 10
)

// HTTP2Server names an implementation of HTTP/2 for Serve.
type HTTP2Server string

const (
	// HTTP2Levelwire is the server of package h2. It writes the events of all
	// watches of a connection together.
	HTTP2Levelwire HTTP2Server = "levelwire"
	// HTTP2NetHTTP is the server of Go's net/http. Events cost six times the processor
	// time on it, because each watch writes its own.
	HTTP2NetHTTP HTTP2Server = "net/http"
)

// Serve answers requests on a listener until ctx ends, and then drains: new
// connections are refused, watches end cleanly, and other requests have
// ShutdownTimeout to finish before their connections are closed. It returns
// nil after a drain. If the listener fails, Serve drains as well, and returns why
// it has failed. tlsConfig nil serves plain HTTP/1.1, for tests and for
// use behind a proxy; otherwise Serve asks clients for certificates and offers
// HTTP/2. Serve may be called for several listeners; once one of them drains,
// the whole server does.
func (s *Server) Serve(ctx context.Context, listener net.Listener, tlsConfig *tls.Config) error {
	server, shutdownHTTP2 := s.httpServer()
	listener = listen.LimitWrites(s.connections.Listener(listener), s.config.WriteTimeout)
	if tlsConfig != nil {
		listener = listen.BatchTLS(listener, s.prepareTLS(tlsConfig))
	}
	if s.open != nil {
		running, stop := context.WithCancel(ctx)
		var reauthorizing sync.WaitGroup
		reauthorizing.Go(func() { s.open.Run(running) })
		defer reauthorizing.Wait()
		defer stop()
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	var failed error
	select {
	case err := <-served:
		failed = fmt.Errorf("serve %s: %w", listener.Addr(), err)
	case <-ctx.Done():
		_ = listener.Close() // no new connections; an error means that it is closed already
		<-served             //nolint:errcheck // It reports that; before it has, Shutdown would fail to close the listener again.
	}
	return cmp.Or(failed, s.drain(context.WithoutCancel(ctx), server, shutdownHTTP2))
}

// drain ends the connections of a server that accepts no more of them.
func (s *Server) drain(ctx context.Context, server *http.Server, shutdownHTTP2 func(context.Context) error) error {
	drain, cancel := context.WithTimeout(ctx, s.config.ShutdownTimeout)
	defer cancel()
	server.SetKeepAlivesEnabled(false) // HTTP/1.1 ends with the request under way, however long HTTP/2 takes
	// Clients get GOAWAY before their watches end. Otherwise they would open the
	// watches again at once, on the same connection.
	ended, end := context.WithCancel(ctx)
	end()
	_ = shutdownHTTP2(ended) // this does not wait
	s.stopOnce.Do(func() {
		close(s.stopping)
		s.streams.Stop()
	})
	err := shutdownHTTP2(drain)
	if e := server.Shutdown(drain); err == nil {
		err = e
	}
	s.sockets.Drain(drain)
	if errors.Is(err, context.DeadlineExceeded) {
		s.config.Logger.Warn("requests were still under way when the time to drain was over", "timeout", s.config.ShutdownTimeout)
		err = server.Close()
	}
	return err
}

// httpServer returns the server of all connections, and a function that sends
// GOAWAY to those that speak HTTP/2 and waits for their requests until its context
// ends.
func (s *Server) httpServer() (server *http.Server, shutdownHTTP2 func(context.Context) error) {
	server = &http.Server{
		Handler:           s,
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ConnContext:       s.connections.Context,
		ConnState:         s.connections.NoteState,
		ErrorLog:          slog.NewLogLogger(s.config.Logger.Handler(), slog.LevelDebug),
	}
	if s.config.HTTP2Server == HTTP2NetHTTP {
		server.HTTP2 = &http.HTTP2Config{
			MaxConcurrentStreams: maxStreams,
			MaxReadFrameSize:     maxFrame,
			SendPingTimeout:      pingAfter,
			PingTimeout:          pingTimeout,
			WriteByteTimeout:     s.config.WriteTimeout,
		}
		return server, server.Shutdown
	}
	streams := h2.New(h2.Options{
		MaxConcurrentStreams: maxStreams,
		MaxHeaderBytes:       maxHeaderBytes,
		MaxReadFrameSize:     maxFrame,
		HandshakeTimeout:     readHeaderTimeout,
		IdleTimeout:          idleTimeout,
		PingAfter:            pingAfter,
		PingTimeout:          pingTimeout,
		WriteTimeout:         s.config.WriteTimeout,
		Unauthenticated:      &h2.Unauthenticated{},
		RunQueue:             s.handlers,
		Logger:               s.config.Logger,
	})
	streams.Attach(server)
	return server, streams.Shutdown
}

// prepareTLS returns a copy that asks for client certificates without verifying
// them: package authentication does that, and can answer with the reason.
func (s *Server) prepareTLS(config *tls.Config) *tls.Config {
	config = config.Clone()
	config.DynamicRecordSizingDisabled = true // records are for throughput here, not for the first paint of a page
	if config.MinVersion == 0 {
		config.MinVersion = tls.VersionTLS12
	}
	if len(config.NextProtos) == 0 {
		config.NextProtos = []string{"h2", "http/1.1"}
	}
	if s.authenticator.ClientCAs() != nil {
		config.ClientAuth = tls.RequestClientCert
		config.GetConfigForClient = (&clientAuthorities{base: config.Clone(), of: s.authenticator.ClientCAs}).config
	}
	return config
}

// clientAuthorities tells clients in the handshake which authorities certify users, so
// that a client with several certificates chooses the right one: those that are accepted
// now, because many clients send no certificate of any other.
type clientAuthorities struct {
	base *tls.Config
	of   func() *x509.CertPool
	made atomic.Pointer[tls.Config]
}

// config implements tls.Config.GetConfigForClient. Session tickets remain those of the
// configuration that it is set in.
func (a *clientAuthorities) config(*tls.ClientHelloInfo) (*tls.Config, error) {
	pool := a.of()
	if made := a.made.Load(); made != nil && made.ClientCAs == pool {
		return made, nil
	}
	config := a.base.Clone()
	config.ClientCAs = pool
	a.made.Store(config)
	return config, nil
}
