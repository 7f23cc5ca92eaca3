package server

import (
	"context"
	"errors"
	"time"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/registry/bootstrap"
	"github.com/levelwire/levelwire/storage"
)

// leave is the first step of a shutdown: /readyz fails, the server removes its
// address from default/kubernetes, and goes on serving for Config.ShutdownDelay, so
// that load balancers notice.
func (s *Server) leave(ctx context.Context, set *registry.Set, store storage.Store, caches *caches) {
	close(s.leaving)
	select {
	case <-s.ready:
	default:
		return // its address has not been added, or not completely
	}
	s.withdraw(context.WithoutCancel(ctx), set, store, caches)
	timer := time.NewTimer(s.config.ShutdownDelay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done(): // a part of the server has failed
	}
}

// withdrawTimeout bounds what withdraw adds to the time of stopping.
const withdrawTimeout = time.Second

// withdraw removes the server's address from default/kubernetes, and waits until
// open watches can have got that change. A store that fails does not delay the
// shutdown: a server that starts at the same address again takes the entry over.
func (s *Server) withdraw(ctx context.Context, set *registry.Set, store storage.Store, caches *caches) {
	ctx, cancel := context.WithTimeout(ctx, withdrawTimeout)
	defer cancel()
	err := bootstrap.Withdraw(ctx, set, s.endpoint())
	if err == nil {
		err = caches.waitCurrent(ctx, store)
	}
	if err != nil {
		s.config.Logger.Warn("the server could not be taken out of default/kubernetes", "error", err)
	}
}

var errLeaving = errors.New("the server has been asked to end")

// checkLeaving makes /readyz fail as soon as the server shuts down.
func (s *Server) checkLeaving(context.Context) error {
	select {
	case <-s.leaving:
		return errLeaving
	default:
		return nil
	}
}
