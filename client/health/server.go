package health

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Bounds on the connections of a Server.
const (
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 2 * time.Minute
	shutdownTimeout   = 5 * time.Second
)

// Server serves a Handler over HTTP for as long as a program runs: the handler of
// NewHandler, perhaps with /metrics beside it. It is a controller.Runnable that needs
// no leader election, because probes and scrapes ask every process. It runs once.
type Server struct {
	// Address is where it listens, as host:port; ":8080" is port 8080 of all of the
	// machine's addresses. Required without Listener.
	Address string
	// Listener is used in place of Address.
	Listener net.Listener
	// Handler answers the requests. Required.
	Handler http.Handler
}

// Name is for the errors of controller.Run.
func (s *Server) Name() string { return "health server" }

// NeedLeaderElection returns false.
func (s *Server) NeedLeaderElection() bool { return false }

// Run serves until ctx ends, finishes the requests that run, for 5 seconds at most, and
// leaves no connection and no goroutine. The error is nil if ctx has ended.
func (s *Server) Run(ctx context.Context) error {
	if s.Handler == nil {
		return errors.New("health server: set Handler")
	}
	listener := s.Listener
	if listener == nil {
		var err error
		if listener, err = new(net.ListenConfig).Listen(ctx, "tcp", s.Address); err != nil {
			return fmt.Errorf("health server: %w", err)
		}
	}
	server := &http.Server{Handler: s.Handler, ReadHeaderTimeout: readHeaderTimeout, IdleTimeout: idleTimeout}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		_ = server.Close()
		return fmt.Errorf("health server: %w", err)
	case <-ctx.Done():
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if err := server.Shutdown(stopping); err != nil {
		_ = server.Close()
	}
	<-ended //nolint:errcheck // that it was shut down
	return nil
}
