package apiserver

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/status"
	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/storage"
)

// cacheOf returns the filled cache behind a resource. While it is being filled
// clients are asked to come back: a 429.
func (s *Server) cacheOf(res *resource.Resource) (*watchcache.Cache, error) {
	if cache := s.config.Cache(res.Stored()); cache != nil {
		select {
		case <-cache.Ready():
			return cache, nil
		default:
		}
	}
	return nil, errFilling()
}

func errFilling() error {
	return status.TooManyRequests("storage is (re)initializing", 1)
}

// latest returns a snapshot that shows every write that was acknowledged
// before the call: a consistent read.
func (s *Server) latest(ctx context.Context, cache *watchcache.Cache) (watchcache.Snapshot, error) {
	revision, err := s.config.Store.Current(ctx)
	if err != nil {
		return watchcache.Snapshot{}, err
	}
	return notOlderThan(ctx, cache, revision)
}

func notOlderThan(ctx context.Context, cache *watchcache.Cache, revision storage.Revision) (watchcache.Snapshot, error) {
	snapshot, err := cache.NotOlderThan(ctx, revision)
	return snapshot, cacheError(err)
}

// cacheError turns the errors of the watch cache into those of the API.
func cacheError(err error) error {
	var large *watchcache.TooLargeError
	var old *watchcache.ExpiredError
	switch {
	case errors.As(err, &large):
		return status.ResourceVersionTooLarge(large.Requested, large.Current)
	case errors.As(err, &old):
		return status.Expired(old.Requested, old.Oldest)
	case errors.Is(err, watchcache.ErrNotReady):
		return errFilling()
	}
	return err
}

// snapshotForGet chooses what a GET reads: unset is the most recent state, "0"
// whatever is at hand, N not older than N.
func (s *Server) snapshotForGet(ctx context.Context, cache *watchcache.Cache, version string) (watchcache.Snapshot, error) {
	revision, err := parseVersion(version)
	switch {
	case err != nil:
		return watchcache.Snapshot{}, err
	case version == "":
		return s.latest(ctx, cache)
	case revision == 0:
		return cache.Current(), nil
	}
	return notOlderThan(ctx, cache, revision)
}

// place is where a list is read from.
type place struct {
	snapshot watchcache.Snapshot
	// start is where a continued list goes on, relative to the list's prefix.
	start string
	// past, if not zero, is a revision that the cache has forgotten and the
	// store may still have; snapshot is empty then. forgotten is what to
	// answer if the store has not.
	past      storage.Revision
	forgotten error
}

// placeOfList is the grid of list semantics. o has been validated.
func (s *Server) placeOfList(ctx context.Context, cache *watchcache.Cache, o *listOptions) (at place, err error) {
	revision, err := parseVersion(o.version)
	if err != nil {
		return at, err
	}
	if o.version != "" && revision == 0 {
		o.limit = 0 // Kubernetes ignores the limit at "0", and clients rely on it
	}
	if o.token != "" {
		return s.placeOfToken(ctx, cache, o.token, revision)
	}
	switch {
	case o.version == "":
		at.snapshot, err = s.latest(ctx, cache)
	case revision == 0:
		at.snapshot = cache.Current()
	case o.match == metav1.ResourceVersionMatchExact, o.match == "" && o.limit > 0:
		return exactly(ctx, cache, revision)
	default:
		at.snapshot, err = notOlderThan(ctx, cache, revision)
	}
	return at, err
}

func (s *Server) placeOfToken(ctx context.Context, cache *watchcache.Cache, token string, revision storage.Revision) (at place, err error) {
	t, err := decodeContinue(token)
	if err != nil {
		return at, err
	}
	if revision != 0 {
		return at, status.BadRequest("specifying resource version is not allowed when using continue")
	}
	if t.Revision == inconsistent {
		at.snapshot, err = s.latest(ctx, cache)
	} else if at, err = exactly(ctx, cache, t.Revision); at.past != 0 {
		at.forgotten = continueExpired(t.Start)
	}
	at.start = t.Start
	return at, err
}

// exactly is the state at one revision: from the cache if it remembers.
func exactly(ctx context.Context, cache *watchcache.Cache, revision storage.Revision) (at place, err error) {
	at.snapshot, err = cache.Exact(ctx, revision)
	if errors.Is(err, watchcache.ErrExpired) {
		return place{past: revision, forgotten: cacheError(err)}, nil
	}
	return at, cacheError(err)
}

func errNotFound(q *request) error {
	return apierrors.NewNotFound(q.resource.GroupResource(), q.name)
}
