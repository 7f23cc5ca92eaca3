package server

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/levelwire/levelwire/server/internal/apiserver/audit"
	"github.com/levelwire/levelwire/server/internal/watchcache/caches"
	"github.com/levelwire/levelwire/storage"
)

// leave is the first step of a shutdown: /readyz fails, the server removes its
// address from default/kubernetes and its Lease, and goes on serving for Config.ShutdownDelay, so
// that load balancers notice.
func (s *Server) leave(ctx context.Context, writes *writePath, store storage.Store, caches *caches.Set) {
	close(s.leaving)
	select {
	case <-s.ready:
	default:
		return // its address has not been added, or not completely
	}
	if !s.config.ReadOnly {
		s.withdraw(context.WithoutCancel(ctx), writes, store, caches)
	}
	timer := time.NewTimer(s.config.ShutdownDelay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done(): // a part of the server has failed
	}
}

// withdrawTimeout bounds what withdraw adds to the time of stopping.
const withdrawTimeout = time.Second

// withdraw removes the server's address from default/kubernetes and its Lease, and waits until
// open watches can have got that change. A store that fails does not delay the
// shutdown: a server that starts at the same address again takes the entry over.
func (s *Server) withdraw(ctx context.Context, writes *writePath, store storage.Store, caches *caches.Set) {
	ctx, cancel := context.WithTimeout(ctx, withdrawTimeout)
	defer cancel()
	err := writes.endpoint.Withdraw(ctx)
	if err == nil && writes.lease != nil {
		err = writes.lease.Release(ctx)
	}
	if err == nil {
		err = caches.WaitCurrent(ctx, store)
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

// failedTimeout is how long the parts of a server have to end after its storage has
// failed.
const failedTimeout = 3 * time.Second

// awaitEnd returns what wait returns, or, failedTimeout after it, the error with which the
// storage has failed: reads of a member that has failed may wait for its locks for ever, and
// the parts of the server for these reads. Only the end of the process ends them.
func awaitEnd(wait func() error, failure <-chan error) error {
	ended := make(chan error, 1)
	go func() { ended <- wait() }()
	select {
	case err := <-ended:
		return err
	case err := <-failure:
		if err == nil {
			return <-ended
		}
		timer := time.NewTimer(failedTimeout)
		defer timer.Stop()
		select {
		case err := <-ended:
			return err
		case <-timer.C:
			return err
		}
	}
}

// closeAudit writes what the audit log's backends have not got yet. One that hangs may
// delay the shutdown as long as requests may.
func (s *Server) closeAudit(auditor *audit.Auditor) {
	ctx, cancel := context.WithTimeout(context.Background(), s.shutdownTimeout())
	defer cancel()
	auditor.Close(ctx)
}

// shutdownTimeout returns ShutdownTimeout, or its default.
func (s *Server) shutdownTimeout() time.Duration {
	return cmp.Or(s.config.ShutdownTimeout, 10*time.Second)
}
