package read

import (
	"context"
	"fmt"
	"time"

	"github.com/levelwire/levelwire/server/internal/status"
)

// A client that comes from another server of the same store may know a revision
// that this server's cache has not reached. Its watch opens all the same, and is
// silent until the cache has caught up: nothing is lost by that. But it does not
// wait for ever, since the revision may be one that never comes, of a store that has
// been restored from a backup.

// catchUpCheck is how often a watch checks whether the cache has caught up. The cache
// wakes it for events only, and bookmarks wait for the revision, too.
const catchUpCheck = 200 * time.Millisecond

// expectRevision sets the time until which the revision of a client that is ahead of
// the cache must have come. A bookmark would say that the revision exists, so a
// client that asked for bookmarks gets an error at the end of its watch at the latest.
func (w *Watch) expectRevision(now time.Time) {
	if w.caughtUp() {
		return
	}
	w.catchUpDeadline = now.Add(w.reader.config.CatchUpTimeout)
	if w.wantsBookmarks && w.deadline.Before(w.catchUpDeadline) {
		w.catchUpDeadline = w.deadline
	}
}

func (w *Watch) caughtUp() bool { return w.cache.Current().Revision() >= w.revision }

// AwaitsRevision reports whether the cache is still behind the client's revision.
func (w *Watch) AwaitsRevision() bool {
	if !w.catchUpDeadline.IsZero() && w.caughtUp() {
		w.catchUpDeadline = time.Time{}
	}
	return !w.catchUpDeadline.IsZero()
}

// Overdue returns the error that ends a watch whose revision has not come in time,
// nil if there is time left. It is a 504 if the store has not got the revision. If the
// store has it, or cannot say, only this server is behind: a 429, which reflectors
// answer with the same watch a little later, here or at another server, and not with
// a list.
func (w *Watch) Overdue(ctx context.Context, now time.Time) error {
	if !w.AwaitsRevision() || now.Before(w.catchUpDeadline) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, w.reader.config.CatchUpTimeout)
	defer cancel()
	current, err := w.reader.storeOf(w.cache.Resource()).Current(ctx)
	if err == nil && current < w.revision {
		return status.ResourceVersionTooLarge(w.revision, current)
	}
	if !w.AwaitsRevision() { // any more: the store may have taken a while
		return nil
	}
	return status.TooManyRequests(fmt.Sprintf("this server has not reached resource version %d yet, it is at %d: watch again in a moment",
		w.revision, w.cache.Current().Revision()), 1)
}
