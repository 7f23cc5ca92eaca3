package levelwiretest

import (
	"context"
	"log/slog"
	"net"
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
const testTimeout = 3 * time.Minute

// Server is a running API server. It ends with its test, or when it is stopped. Of the
// methods of server.Server, Kubeconfig is of use to tests: it returns the path of an
// administrator's kubeconfig, for a program or kubectl. A server of StartInMemory has no
// port, so its kubeconfig is of use to Config alone.
type Server struct {
	*server.Server
	t    testing.TB
	stop func()
	dial func(ctx context.Context, network, address string) (net.Conn, error) // nil: as always
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
	config.Dial = s.dial
	return config
}

// UserConfig returns client-go's configuration of a user with a name and groups, who may do
// what roles and bindings allow: at first, little more than discovery. For tests of what
// a program does when it is refused, or of whether a role is enough for it.
//
//	config := s.UserConfig("jane", "developers")
//	config := s.UserConfig("system:serviceaccount:default:robot", "system:serviceaccounts")
func (s *Server) UserConfig(name string, groups ...string) *rest.Config {
	s.t.Helper()
	config, err := s.Server.UserConfig(name, groups...)
	if err != nil {
		s.t.Fatal(err)
	}
	config.Dial = s.dial
	return config
}

// StartInMemory is Start without a port: clients connect through memory, with the
// Config or Client of the server. So server and clients can live in a bubble of
// testing/synctest, in which hours take no time. All of them must be made inside the
// bubble, with its t, and what the test starts must end with the bubble's t.Context().
//
// synctest.Wait returns when everything is idle, and a goroutine that sits out a
// back-off is: after a lost answer, an error or a cut watch, let the back-off pass by
// time.Sleep first.
func StartInMemory(t testing.TB, change ...func(*server.Config)) *Server {
	t.Helper()
	listener := newMemoryListener()
	s := Start(t, append([]func(*server.Config){func(c *server.Config) { c.Listener = listener }}, change...)...)
	s.dial = listener.dial
	return s
}

// NewClient returns a client of an administrator of a new server, which is started
// by StartInMemory. In a bubble of testing/synctest it must be called inside the bubble:
// see there.
func NewClient(t testing.TB, opts client.Options) *client.Client {
	t.Helper()
	return StartInMemory(t).Client(opts)
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
