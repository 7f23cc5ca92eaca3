package read

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/runqueue"
	"github.com/levelwire/levelwire/server/internal/status"
	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/storage"
)

// latest returns a snapshot that includes every write that was acknowledged before
// the call: a consistent read. It asks the store for its current revision and waits
// until the cache has reached it.
func (r *Reader) latest(ctx context.Context, cache *watchcache.Cache) (watchcache.Snapshot, error) {
	task := runqueue.FromContext(ctx)
	task.Block()
	defer task.Unblock()
	snapshot, err := cache.Latest(ctx, r.storeOf(cache.Resource()))
	return snapshot, cacheError(err)
}

// notOlderThan waits until the cache has reached a revision.
func notOlderThan(ctx context.Context, cache *watchcache.Cache, revision storage.Revision) (watchcache.Snapshot, error) {
	task := runqueue.FromContext(ctx)
	task.Block()
	defer task.Unblock()
	snapshot, err := cache.NotOlderThan(ctx, revision)
	return snapshot, cacheError(err)
}

// snapshotForGet chooses what a get reads: the most recent state if resourceVersion
// is empty, whatever the cache holds if it is "0", and else a state that is not
// older than it.
func (r *Reader) snapshotForGet(ctx context.Context, cache *watchcache.Cache, resourceVersion string) (watchcache.Snapshot, error) {
	revision, err := parseResourceVersion(resourceVersion)
	switch {
	case err != nil:
		return watchcache.Snapshot{}, err
	case resourceVersion == "":
		return r.latest(ctx, cache)
	case revision == 0:
		return cache.Current(), nil
	}
	return notOlderThan(ctx, cache, revision)
}

// readSource is where a list is read from, and from which key on.
type readSource struct {
	snapshot watchcache.Snapshot
	// start is where a continued list goes on, relative to the list's prefix.
	start string
	limit int64 // of objects; 0: none
	// storeRevision, if not zero, is a revision that the cache has evicted, or does not answer
	// for any more, and the store may still have; snapshot is empty then.
	storeRevision storage.Revision
	// expired is what to answer if the store has compacted storeRevision.
	expired error
}

// sourceOfList chooses the state that a list shows. The options have been validated.
func (r *Reader) sourceOfList(ctx context.Context, cache *watchcache.Cache, opts *metav1.ListOptions, compacted storage.Revision) (source readSource, err error) {
	limit := max(opts.Limit, 0) // a negative one is none, as in Kubernetes
	if opts.ResourceVersion == "0" {
		limit = 0 // Kubernetes ignores the limit at "0", and clients rely on it
	}
	if opts.Continue != "" {
		source, err = r.sourceOfContinue(ctx, cache, opts, compacted)
	} else {
		source, err = r.sourceOfFirst(ctx, cache, opts, limit, compacted)
	}
	source.limit = limit
	return source, err
}

// sourceOfFirst is the state that a list without a continue token shows.
func (r *Reader) sourceOfFirst(ctx context.Context, cache *watchcache.Cache, opts *metav1.ListOptions, limit int64, compacted storage.Revision) (source readSource, err error) {
	revision, err := parseResourceVersion(opts.ResourceVersion)
	switch {
	case err != nil:
	case opts.ResourceVersion == "":
		source.snapshot, err = r.latest(ctx, cache)
	case revision == 0:
		source.snapshot = cache.Current()
	case opts.ResourceVersionMatch == metav1.ResourceVersionMatchExact, opts.ResourceVersionMatch == "" && limit > 0:
		source, err = exactly(ctx, cache, revision, compacted)
	default:
		source.snapshot, err = notOlderThan(ctx, cache, revision)
	}
	return source, err
}

// sourceOfContinue is the state that the first page of the list was of, or the
// latest one if the token asks for that.
func (r *Reader) sourceOfContinue(ctx context.Context, cache *watchcache.Cache, opts *metav1.ListOptions, compacted storage.Revision) (source readSource, err error) {
	t, err := decodeContinue(opts.Continue)
	if err != nil {
		return source, err
	}
	if opts.ResourceVersion != "" && opts.ResourceVersion != "0" {
		return source, status.BadRequest("specifying resource version is not allowed when using continue")
	}
	if t.Revision == inconsistent {
		source.snapshot, err = r.latest(ctx, cache)
	} else if source, err = exactly(ctx, cache, t.Revision, compacted); source.storeRevision != 0 {
		source.expired = errContinueExpired(t.Start)
	}
	source.start = t.Start
	return source, err
}

// exactly is the state at one revision: the cache's if it still has it and the revision is
// not before compacted, and else the store's, which knows whether it has been compacted.
func exactly(ctx context.Context, cache *watchcache.Cache, revision, compacted storage.Revision) (source readSource, err error) {
	if revision >= compacted {
		source.snapshot, err = cache.Exact(ctx, revision)
	}
	if revision < compacted || errors.Is(err, watchcache.ErrExpired) {
		return readSource{storeRevision: revision, expired: errListExpired()}, nil
	}
	return source, cacheError(err)
}
