package apiserver

import (
	"context"
	"fmt"
	"time"

	"github.com/levelwire/levelwire/server/internal/status"
	"github.com/levelwire/levelwire/storage"
)

// A client that comes from another server of the same store may be ahead of
// this one. Its watch opens all the same, and is silent until the cache has come
// as far: nothing is lost by that. But it cannot wait for ever, since the version
// may be one that never comes, of a store that has been restored from a backup.

// aheadCheck is how often a stream looks whether the version has come: nobody
// tells its own goroutine, and bookmarks wait for it.
const aheadCheck = 200 * time.Millisecond

// expectFrom notes that the client is ahead, if it is. A bookmark would say that
// its version exists, so one that asked for bookmarks is told by its end in any
// case.
func (t *watchStream) expectFrom(now, deadline time.Time) {
	if t.caughtUp() {
		return
	}
	t.patience = now.Add(t.server.config.CatchUpTimeout)
	if t.plan.Bookmarks && deadline.Before(t.patience) {
		t.patience = deadline
	}
}

func (t *watchStream) caughtUp() bool { return t.plan.Reached() >= t.plan.Revision }

// ahead reports whether the cache is still behind the client.
func (t *watchStream) ahead() bool {
	if !t.patience.IsZero() && t.caughtUp() {
		t.patience = time.Time{}
	}
	return !t.patience.IsZero()
}

// overdue returns what to tell a client whose version has not come in time.
func (t *watchStream) overdue(now time.Time) error {
	if !t.ahead() || now.Before(t.patience) {
		return nil
	}
	ctx, cancel := context.WithTimeout(t.ctx, t.server.config.CatchUpTimeout)
	defer cancel()
	is, err := t.server.config.Store.Current(ctx)
	if err == nil && is < t.plan.Revision {
		return status.ResourceVersionTooLarge(t.plan.Revision, is)
	}
	if !t.ahead() { // any more: the store may have taken a while
		return nil
	}
	return errBehind(t.plan.Revision, t.plan.Reached())
}

// errBehind is for a version that exists, as far as is known. Reflectors answer
// a 429 with the same watch a little later, on this server or another one, and
// not with a list.
func errBehind(requested, reached storage.Revision) error {
	return status.TooManyRequests(fmt.Sprintf("this server has not reached resource version %d yet, it is at %d: watch again in a moment", requested, reached), 1)
}

// errStopping makes clients come back, to whoever is in this server's place then.
func errStopping() error { return status.TooManyRequests("the server is shutting down", 1) }
