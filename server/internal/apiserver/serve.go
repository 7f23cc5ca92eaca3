package apiserver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/levelwire/levelwire/server/internal/h2"
)

const (
	// maxStreams is how many requests one HTTP/2 connection may have open.
	// Informers of a whole process share a connection, each with a stream.
	maxStreams = 1000
	// A silent connection is asked for a sign of life after pingAfter, and
	// closed pingTimeout later. A half-open one would hold its watches for ever.
	pingAfter   = 15 * time.Second
	pingTimeout = 10 * time.Second

	readHeaderTimeout = 15 * time.Second
	idleTimeout       = 3 * time.Minute
	maxHeaderBytes    = 64 << 10
	// maxFrame is the largest HTTP/2 frame that is received; bodies come in fewer pieces.
	maxFrame = 256 << 10
)

// Serve answers requests on a listener until ctx ends, and then drains: new
// connections are refused, watches end cleanly, and other requests have
// ShutdownTimeout to finish before their connections are closed. It returns
// nil after a drain. tlsConfig nil serves plain HTTP/1.1, for tests and for
// use behind a proxy; otherwise Serve asks clients for certificates and offers
// HTTP/2. Serve may be called for several listeners; once one of them drains,
// the whole server does.
func (s *Server) Serve(ctx context.Context, listener net.Listener, tlsConfig *tls.Config) error {
	server, streams := s.httpServer()
	listener = h2.LimitWrites(listener, s.config.WriteTimeout)
	if tlsConfig != nil {
		listener = h2.NewListener(listener, s.prepareTLS(tlsConfig))
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return fmt.Errorf("serve %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	// The context has ended, but draining needs time of its own.
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.config.ShutdownTimeout)
	defer cancel()
	_ = listener.Close()               // nobody new; an error means that it is closed already
	<-served                           //nolint:errcheck // It says so; and until it does, Shutdown would fail to close it again.
	server.SetKeepAlivesEnabled(false) // HTTP/1.1 ends with the request under way, however long HTTP/2 takes
	// Clients are told to go before their watches end: they would open them again
	// at once, on the connection that they have.
	_ = streams.Shutdown(ctx) // which has ended, so that nothing is waited for
	s.stopOnce.Do(func() { close(s.stopping) })
	err := streams.Shutdown(drain)
	if e := server.Shutdown(drain); err == nil {
		err = e
	}
	s.sockets.drain(drain)
	if errors.Is(err, context.DeadlineExceeded) {
		s.config.Logger.Warn("requests were still under way when the time to drain was over", "timeout", s.config.ShutdownTimeout)
		err = server.Close()
	}
	return err
}

// httpServer returns the server of all connections, and that of those among them
// that speak HTTP/2.
func (s *Server) httpServer() (*http.Server, *h2.Server) {
	server := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(s.config.Logger.Handler(), slog.LevelDebug),
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
		Logger:               s.config.Logger,
	})
	streams.Attach(server)
	return server, streams
}

// prepareTLS returns a copy that asks for client certificates without judging
// them: that is authenticate.go's part, which can say why.
func (s *Server) prepareTLS(config *tls.Config) *tls.Config {
	config = config.Clone()
	config.DynamicRecordSizingDisabled = true // records are for throughput here, not for the first paint of a page
	if config.MinVersion == 0 {
		config.MinVersion = tls.VersionTLS12
	}
	if len(config.NextProtos) == 0 {
		config.NextProtos = []string{"h2", "http/1.1"}
	}
	if s.config.ClientCAs != nil {
		config.ClientAuth = tls.RequestClientCert
		config.ClientCAs = s.config.ClientCAs
	}
	return config
}
