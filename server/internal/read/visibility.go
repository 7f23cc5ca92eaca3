package read

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/runqueue"
	"github.com/levelwire/levelwire/server/internal/status"
	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/storage"
)

// Visibility is the set of namespaces that a user may see, at each revision. Its changes have
// revisions of the same store as the objects, so that what a user may see of a collection at
// a revision is well defined. It is used concurrently.
type Visibility interface {
	// Wait blocks until every change up to a revision is known. It fails with ctx's error,
	// and as watchcache.Cache.NotOlderThan does.
	Wait(ctx context.Context, revision storage.Revision) error
	// Reached returns the revision up to which every change is known.
	Reached() storage.Revision
	// At returns the set at a revision that is known. It fails with an
	// *watchcache.ExpiredError if it is not known any more.
	At(revision storage.Revision) (*watchcache.Namespaces, error)
	// Now returns the latest set.
	Now() *watchcache.Namespaces
	// Next returns the first change after a revision, 0 if there is none among those that
	// are known. It fails as At does.
	Next(after storage.Revision) (at storage.Revision, set *watchcache.Namespaces, err error)
	// Subscribe has waker woken after each change, until Unsubscribe.
	Subscribe(waker watchcache.Waker)
	// Await has waker woken when every change up to a revision is known, unless
	// Unsubscribe comes first.
	Await(revision storage.Revision, waker watchcache.Waker)
	Unsubscribe(waker watchcache.Waker)
}

// visible limits the selection of a list to what the user may see at the source's revision.
// A state of the past that had more in it than the user may see now is refused with a 410:
// to leave that out would make it another state.
func (r *Reader) visible(ctx context.Context, s Scope, cache *watchcache.Cache, selection *watchcache.Selection, source readSource, opts *metav1.ListOptions) (*watchcache.Selection, error) {
	if s.Visible == nil {
		return selection, nil
	}
	revision := source.snapshot.Revision()
	if source.storeRevision != 0 {
		revision = source.storeRevision
	}
	err := s.Visible.Wait(ctx, revision)
	if consistent := opts.ResourceVersion == "" && opts.Continue == ""; err == nil && !consistent {
		err = r.confirm(ctx, cache, s.Visible)
	}
	if err != nil {
		return nil, cacheError(err)
	}
	set, err := s.Visible.At(revision)
	var old *watchcache.ExpiredError
	switch {
	case errors.As(err, &old) && opts.Continue != "":
		return nil, errContinueExpired(source.start)
	case err != nil:
		return nil, cacheError(err)
	case s.Visible.Now().Contains(set):
		return selection.InNamespaces(set), nil
	case opts.Continue != "":
		return nil, errContinueExpired(source.start)
	case opts.ResourceVersion == "" || opts.ResourceVersion == "0" || opts.ResourceVersionMatch == metav1.ResourceVersionMatchNotOlderThan:
		return nil, status.TooManyRequests("a right was withdrawn while the list was read: list again", 1)
	}
	return nil, errListExpired()
}

// OldestRevision returns the revision of the past whose policy a list or a watch with these
// options needs; 0 if it needs none but that of the present.
func OldestRevision(opts *metav1.ListOptions) (storage.Revision, error) {
	if opts.Continue != "" {
		token, err := decodeContinue(opts.Continue)
		return max(token.Revision, 0), err
	}
	return parseResourceVersion(opts.ResourceVersion)
}

// confirm waits until the policy is known up to the store's current revision. A server that is
// cut off from the store, or was stopped for a while, does not know by itself that a right
// was withdrawn through another one.
func (r *Reader) confirm(ctx context.Context, cache *watchcache.Cache, visible Visibility) error {
	task := runqueue.FromContext(ctx)
	task.Block()
	defer task.Unblock()
	current, err := r.storeOf(cache.Resource()).Current(ctx)
	if err != nil {
		return err
	}
	return visible.Wait(ctx, current)
}

// resumeVisible opens the cursor of a filtered watch. It waits until the policy and the cache
// are at its revision.
func (w *Watch) resumeVisible(ctx context.Context, opts watchcache.WatchOptions) (cursor, error) {
	after := opts.After
	if opts.Initial != nil {
		after = opts.Initial.Revision()
	}
	wait, cancel := context.WithTimeout(ctx, w.reader.config.CatchUpTimeout)
	defer cancel()
	err := w.visible.Wait(wait, after)
	if err == nil {
		_, err = w.cache.NotOlderThan(wait, after)
	}
	if err == nil && !w.mostRecent {
		err = w.reader.confirm(wait, w.cache, w.visible)
	}
	var behind *watchcache.TooLargeError
	switch {
	case err == nil:
		return newVisibleWatcher(ctx, w.cache, w.visible, opts.Selection, after, opts.Initial, opts.Waker)
	case ctx.Err() != nil, wait.Err() == nil && !errors.As(err, &behind):
		return nil, err
	}
	w.catchUpDeadline = time.Now()
	if err := w.Overdue(ctx, w.catchUpDeadline); err != nil {
		return nil, err
	}
	return nil, status.TooManyRequests("the roles and bindings of that resource version are not known yet: watch again in a moment", 1)
}
