package read

import (
	"errors"
	"time"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/storage"
)

// Config is what a Reader works with.
type Config struct {
	// Store returns the revision that a consistent read must reach, and what a
	// collection held at a revision that its cache has evicted. Required, unless StoreOf
	// is set.
	Store storage.Reader
	// StoreOf returns what is behind the cache of a resource, in place of Store, where the
	// revisions of different resources cannot be compared.
	StoreOf func(stored *resource.Resource) storage.Reader
	// Compacted returns the revision before which lists do not show what a cache still has: they
	// are read from what is behind it, which has compacted that history, or is to decide. It is
	// called for every list at one revision, and must not block. nil: there is none.
	Compacted func(stored *resource.Resource) storage.Revision
	// Cache returns the cache of a stored resource; nil if there is none yet. It is
	// called for every read. Required.
	Cache func(stored *resource.Resource) *watchcache.Cache
	// MinWatchTimeout is the shortest lifetime of a watch that asked for none; each
	// gets a random one up to twice as long. Default 30 min.
	MinWatchTimeout time.Duration
	// CatchUpTimeout is how long a watch from a revision that the cache has not
	// reached waits for it. Default 5 s.
	CatchUpTimeout time.Duration
}

// Reader answers the reads of all resources over one store. It holds no state of
// its own and is safe for concurrent use.
type Reader struct {
	config Config
}

// New returns a Reader, or what is wrong with its configuration.
func New(config Config) (*Reader, error) {
	switch {
	case config.Store == nil && config.StoreOf == nil:
		return nil, errors.New("read: Config.Store is missing: give it the store behind the caches")
	case config.Cache == nil:
		return nil, errors.New("read: Config.Cache is missing: give it the watch caches of the stored resources")
	}
	if config.MinWatchTimeout <= 0 {
		config.MinWatchTimeout = 30 * time.Minute
	}
	if config.CatchUpTimeout <= 0 {
		config.CatchUpTimeout = 5 * time.Second
	}
	return &Reader{config: config}, nil
}

// storeOf returns what is behind the cache of a stored resource.
func (r *Reader) storeOf(stored *resource.Resource) storage.Reader {
	if r.config.StoreOf != nil {
		return r.config.StoreOf(stored)
	}
	return r.config.Store
}

// compacted returns the revision before which lists are read from what is behind a cache.
func (r *Reader) compacted(stored *resource.Resource) storage.Revision {
	if r.config.Compacted != nil {
		return r.config.Compacted(stored)
	}
	return 0
}

// Scope says which objects a request is about, as its path does.
type Scope struct {
	Resource  *resource.Resource // the version that is asked for
	Namespace string             // "" for all namespaces and for cluster-scoped kinds
	Name      string             // "" for the whole collection
	// Visible limits a list or a watch of all namespaces to those that a user may see; nil
	// does not.
	Visible Visibility
}

// keyPrefix is what the keys of the scope's collection begin with. Continue
// tokens leave it out. It depends on the path alone and not on selectors, so that
// the tokens are those of Kubernetes.
func (s Scope) keyPrefix() string {
	if s.Resource.Namespaced && s.Namespace != "" {
		return s.Namespace + "/"
	}
	return ""
}

// filledCache returns the cache of a resource. While the cache is being filled,
// clients are asked to come back: a 429.
func (r *Reader) filledCache(res *resource.Resource) (*watchcache.Cache, error) {
	if cache := r.config.Cache(res.Stored()); cache != nil {
		select {
		case <-cache.Ready():
			return cache, nil
		default:
		}
	}
	return nil, errInitializing()
}
