package server

import (
	"context"
	"os"

	"github.com/levelwire/levelwire/server/internal/registry/bootstrap"
)

// keepLease keeps the Lease of this server from when it is ready until ctx ends.
func (s *Server) keepLease(ctx context.Context, lease *bootstrap.Lease) {
	select {
	case <-s.ready:
		lease.Keep(ctx)
	case <-ctx.Done():
	}
}

// hostname returns the name of this machine, "" if it has none.
func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return name
}
