package server

import (
	"context"
	"errors"
	"time"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/registry/bootstrap"
	"github.com/levelwire/levelwire/storage"
)

// leave is what a server does first that is asked to end: /readyz fails, it
// takes itself out of default/kubernetes, and goes on serving for as long as it
// takes whoever sends clients to notice.
func (s *Server) leave(ctx context.Context, set *registry.Set, store storage.Store, caches *caches) {
	close(s.leaving)
	select {
	case <-s.ready:
	default:
		return // never announced, or not all of it
	}
	s.withdraw(context.WithoutCancel(ctx), set, store, caches)
	timer := time.NewTimer(s.config.ShutdownDelay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done(): // a part has failed
	}
}

// withdrawTimeout bounds what withdraw adds to the time of stopping.
const withdrawTimeout = time.Second

// withdraw tells whoever finds the server by default/kubernetes that it goes,
// while they can still hear it. A store that fails does not hold up the end:
// the address is taken over when a server starts there again.
func (s *Server) withdraw(ctx context.Context, set *registry.Set, store storage.Store, caches *caches) {
	ctx, cancel := context.WithTimeout(ctx, withdrawTimeout)
	defer cancel()
	err := bootstrap.Withdraw(ctx, set, s.endpoint())
	if err == nil {
		err = caches.overtake(ctx, store) // so that the watches that end now have heard of it
	}
	if err != nil {
		s.config.Logger.Warn("the server could not be taken out of default/kubernetes", "error", err)
	}
}

var errLeaving = errors.New("the server has been asked to end")

// staying has /readyz fail as soon as the server is asked to end.
func (s *Server) staying(context.Context) error {
	select {
	case <-s.leaving:
		return errLeaving
	default:
		return nil
	}
}
