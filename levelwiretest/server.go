package levelwiretest

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/server"
)

// shutdownTimeout is short: a test has no use for answers once it
// ends.
const shutdownTimeout = 100 * time.Millisecond

// testTimeout is how long a server may take to become ready.
const testTimeout = 30 * time.Second

// Server is a running API server. It ends with its test, or when it is stopped.
type Server struct {
	*server.Server
	t    testing.TB
	stop func()
}

// Start starts a server and waits until it is ready. change, if given, changes
// its configuration: by default it stores in memory, takes any free port, keeps
// its files in the test's temporary directory and logs nothing. Whatever fails
// ends the test.
func Start(t testing.TB, change ...func(*server.Config)) *Server {
	t.Helper()
	config := server.Config{
		DataDir: t.TempDir(), Storage: server.Memory, SecurePort: server.AnyPort,
		ShutdownTimeout: shutdownTimeout, Logger: slog.New(slog.DiscardHandler),
	}
	for _, f := range change {
		f(&config)
	}
	s, err := server.Listen(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Run(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-served; err != nil {
			t.Errorf("the API server ended with %v", err)
		}
	})
	t.Cleanup(stop)
	select {
	case <-s.Ready():
	case err := <-served:
		served <- nil
		t.Fatalf("the API server did not start: %v", err)
	case <-time.After(testTimeout):
		t.Fatalf("the API server was not ready after %v", testTimeout)
	}
	return &Server{Server: s, t: t, stop: stop}
}

// Stop drains the server and waits until it has ended. What it stores in
// Config.DataDir is there for the next server. Stop may be called again.
func (s *Server) Stop() { s.stop() }

// Config returns client-go's configuration of an administrator.
func (s *Server) Config() *rest.Config {
	s.t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig())
	if err != nil {
		s.t.Fatal(err)
	}
	return config
}

// Client returns a client of an administrator. Its idle connections are closed
// when the test ends.
func (s *Server) Client(opts client.Options) *client.Client {
	s.t.Helper()
	c, err := client.New(s.Config(), opts)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(c.CloseIdleConnections)
	return c
}
