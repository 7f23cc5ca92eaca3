// Package exampleserver starts an API server in the process of an example, which
// has no testing.TB; tests have levelwiretest.
package exampleserver

import (
	"context"
	"io"
	"log/slog"
	"os"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/server"
)

// Start returns a client of a new server, and what stops both. It panics if there
// is no server.
func Start() (c *client.Client, stop func()) {
	dir, err := os.MkdirTemp("", "levelwire-example-*")
	Check(err)
	s, err := server.Listen(server.Config{
		DataDir: dir, Storage: server.Memory, SecurePort: server.AnyPort, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	Check(err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	<-s.Ready()
	c, err = client.FromKubeconfig(s.Kubeconfig(), client.Options{})
	Check(err)
	return c, func() {
		c.CloseIdleConnections()
		cancel()
		Check(<-done)
		Check(os.RemoveAll(dir))
	}
}

// Check ends the example with an error, if there is one.
func Check(err error) {
	if err != nil {
		panic(err)
	}
}
