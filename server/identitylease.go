package server

import (
	"context"
	"os"
)

// onceReady calls keep, which returns when ctx ends, as soon as the server is ready.
func (s *Server) onceReady(ctx context.Context, keep func(context.Context)) error {
	select {
	case <-s.ready:
		keep(ctx)
	case <-ctx.Done():
	}
	return nil
}

// hostname returns the name of this machine, "" if it has none.
func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return name
}
