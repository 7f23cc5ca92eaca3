package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// Bounds on connections, beside those of Options.
const (
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 2 * time.Minute // longer than API servers keep connections, so that they close them
	maxHeaderBytes    = 64 << 10
)

const (
	healthPath = "/healthz"
	readyPath  = "/readyz"
)

// Server serves webhooks over TLS. New makes it, and it runs once. All its
// methods may be called concurrently. It is a controller.Runnable that needs no
// leader election: every process answers.
type Server struct {
	opts         Options
	certificates *certificates
	slots        chan struct{}        // one for each review that runs
	counters     map[string]*counters // by path; the map does not change
	routes       http.Handler

	mu       sync.Mutex
	phase    phase
	listener net.Listener
	started  chan struct{}
}

type phase int

const (
	idle phase = iota
	serving
	stopping
	stopped
)

// New returns a server that does not listen yet. It reads the certificate
// files.
func New(opts Options) (*Server, error) {
	if err := opts.complete(); err != nil {
		return nil, err
	}
	certificates, err := newCertificates(opts)
	if err != nil {
		return nil, err
	}
	s := &Server{opts: opts, certificates: certificates, slots: make(chan struct{}, opts.MaxInFlight), started: make(chan struct{}), counters: map[string]*counters{}}
	for path := range opts.Handlers {
		s.counters[path] = &counters{}
	}
	if s.routes, err = s.handler(); err != nil {
		return nil, fmt.Errorf("webhook server: a path of Handlers cannot be served: %w", err)
	}
	return s, nil
}

// Name is the server's name.
func (s *Server) Name() string { return s.opts.Name }

// NeedLeaderElection returns false: a webhook is served by every process.
func (s *Server) NeedLeaderElection() bool { return false }

// Started is closed when the server listens.
func (s *Server) Started() <-chan struct{} { return s.started }

// Addr returns the address that the server listens on; nil before Started is
// closed.
func (s *Server) Addr() net.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener == nil {
		return nil
	}
	return s.listener.Addr()
}

// Healthy is for readiness: it returns an error while the server does not
// listen, when it stops, and when its certificate has expired. It is also
// served, at /readyz; /healthz answers for as long as the server runs.
func (s *Server) Healthy() error {
	s.mu.Lock()
	phase := s.phase
	s.mu.Unlock()
	switch phase {
	case idle:
		return fmt.Errorf("%s: not started", s.opts.Name)
	case stopping, stopped:
		return fmt.Errorf("%s: stopping", s.opts.Name)
	}
	if err := s.certificates.valid(); err != nil {
		return fmt.Errorf("%s: %w", s.opts.Name, err)
	}
	return nil
}

// Run serves until ctx ends, finishes the reviews that run, and returns. It
// leaves no connection and no goroutine. The error is nil if ctx has ended and
// all reviews were finished in Options.ShutdownTimeout.
func (s *Server) Run(ctx context.Context) error {
	listener, err := s.listen(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", s.opts.Name, err)
	}
	// Reviews do not end with ctx: they are finished.
	reviews, endReviews := context.WithCancel(context.WithoutCancel(ctx))
	defer endReviews()
	server := &http.Server{
		Handler:           s.routes,
		TLSConfig:         &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: s.certificates.current, NextProtos: []string{"h2", "http/1.1"}},
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       s.opts.Timeout + readHeaderTimeout,
		WriteTimeout:      2*s.opts.Timeout + readHeaderTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		BaseContext:       func(net.Listener) context.Context { return reviews },
		ErrorLog:          slog.NewLogLogger(s.opts.Logger.Handler(), slog.LevelDebug),
	}
	ended := make(chan error, 1)
	go func() { ended <- server.ServeTLS(listener, "", "") }()
	select {
	case err := <-ended:
		s.enter(stopped)
		_ = server.Close()
		return fmt.Errorf("%s: %w", s.opts.Name, err)
	case <-ctx.Done():
	}
	err = s.stop(server, endReviews, ended)
	<-ended //nolint:errcheck // that it was shut down
	return err
}

// stop lets clients go elsewhere, and then finishes what runs.
func (s *Server) stop(server *http.Server, endReviews func(), ended <-chan error) error {
	s.enter(stopping)
	defer s.enter(stopped)
	if s.opts.ShutdownDelay > 0 {
		timer := time.NewTimer(s.opts.ShutdownDelay)
		defer timer.Stop()
		<-timer.C
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.opts.ShutdownTimeout)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		endReviews()
		_ = server.Close()
		return fmt.Errorf("%s: reviews were still running %v after the stop: %w", s.opts.Name, s.opts.ShutdownTimeout, err)
	}
	return nil
}

func (s *Server) enter(p phase) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.phase = p
}

func (s *Server) listen(ctx context.Context) (net.Listener, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.phase != idle {
		return nil, errors.New("a webhook server runs once; make another")
	}
	listener := s.opts.Listener
	if listener == nil {
		var err error
		if listener, err = new(net.ListenConfig).Listen(ctx, "tcp", s.opts.Address); err != nil {
			return nil, err
		}
	}
	s.phase, s.listener = serving, listener
	close(s.started)
	return listener, nil
}

// handler routes requests. Health checks need neither a slot nor a client's
// certificate. ServeMux panics for patterns that are malformed or in conflict,
// which is the error then.
func (s *Server) handler() (h http.Handler, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	mux := http.NewServeMux()
	mux.HandleFunc(healthPath, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) })
	mux.HandleFunc(readyPath, func(w http.ResponseWriter, _ *http.Request) {
		if err := s.Healthy(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ok"))
	})
	for path, h := range s.opts.Handlers {
		mux.Handle(path, s.bounded(h, s.counters[path]))
	}
	return mux, nil
}

// bounded gives each review a deadline, a logger, and its turn, and counts it. A
// panic of a handler that is not of this package is net/http's to contain; it
// counts as failed.
func (s *Server) bounded(next http.Handler, counts *counters) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun := time.Now()
		recorder := &codeRecorder{ResponseWriter: w}
		returned := false
		defer func() {
			code := recorder.status()
			if !returned {
				code = http.StatusInternalServerError
				counts.panics.Add(1)
			}
			counts.finished(code, time.Since(begun))
		}()
		s.serveReview(recorder, r, next, counts)
		returned = true
	})
}

func (s *Server) serveReview(w http.ResponseWriter, r *http.Request, next http.Handler, counts *counters) {
	if s.opts.ClientCAFile != "" && len(r.TLS.VerifiedChains) == 0 {
		http.Error(w, "a client certificate is required", http.StatusUnauthorized)
		return
	}
	ctx := context.WithValue(context.WithValue(r.Context(), loggerKey{}, s.opts.Logger), countersKey{}, counts)
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		http.Error(w, "too many reviews run", http.StatusServiceUnavailable)
		return
	}
	counts.inFlight.Add(1)
	defer counts.inFlight.Add(-1)
	next.ServeHTTP(w, r.WithContext(ctx))
}
