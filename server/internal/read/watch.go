package read

import (
	"context"
	"math/rand/v2"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/storage"
)

// WatchPlan is what one watch request asks for, checked and complete. What is wrong
// with a request is said before there is a plan; errors of Open come when the
// stream has begun.
type WatchPlan struct {
	// Initial says that the watch begins with the state as ADDED events.
	Initial bool
	// Bookmarks says that the client wants to be told how far the stream has come.
	Bookmarks bool
	// Revision is the one that the client knows; 0 if it did not say.
	Revision storage.Revision
	// Lifetime is how long the watch may last.
	Lifetime time.Duration

	reader     *Reader
	cache      *watchcache.Cache
	selection  *watchcache.Selection
	mostRecent bool // the request has no resourceVersion
}

// Watch checks what a watch request asks for.
func (r *Reader) Watch(scope Scope, opts *metav1.ListOptions) (p WatchPlan, err error) {
	sel, err := scope.parse(opts)
	if err == nil {
		err = validateWatch(opts)
	}
	if err != nil {
		return p, err
	}
	p = WatchPlan{reader: r, Bookmarks: opts.AllowWatchBookmarks, mostRecent: opts.ResourceVersion == ""}
	if p.Revision, err = parseResourceVersion(opts.ResourceVersion); err != nil {
		return p, err
	}
	if p.selection, err = scope.selection(sel); err != nil {
		return p, err
	}
	if p.cache, err = r.filledCache(scope.Resource); err != nil {
		return p, err
	}
	if opts.SendInitialEvents != nil {
		p.Initial = *opts.SendInitialEvents
	} else {
		// What clients asked for before the option existed.
		p.Initial = p.Revision == 0
	}
	p.Lifetime = r.watchLifetime(opts.TimeoutSeconds)
	return p, nil
}

// watchLifetime returns how long a watch lasts. Watches that do not say get a random
// time, so that those of a restarted server do not all end at once.
func (r *Reader) watchLifetime(timeoutSeconds *int64) time.Duration {
	if timeoutSeconds != nil && *timeoutSeconds > 0 {
		const century = 100 * 365 * 24 * 3600 // as good as for ever, and does not overflow a Duration
		return time.Duration(min(*timeoutSeconds, century)) * time.Second
	}
	return time.Duration(float64(r.config.MinWatchTimeout) * (1 + rand.Float64()))
}

// Open returns the cursor that the watch reads from. It waits for the initial state
// until the deadline at most.
func (p *WatchPlan) Open(ctx context.Context, deadline time.Time, waker watchcache.Waker) (*watchcache.Watcher, error) {
	opts := watchcache.WatchOptions{Selection: p.selection, After: p.Revision, Waker: waker}
	p.selection = nil // the watcher keeps what it needs of it
	if p.Initial || p.mostRecent {
		// Other watches, most of those that a restarted server gets, wait for nothing:
		// a deadline would leave a part of itself in the request's context.
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline)
		defer cancel()
	}
	switch {
	case p.Initial:
		snapshot, err := p.initialState(ctx)
		if err != nil {
			return nil, err
		}
		opts.Initial = &snapshot
	case p.mostRecent:
		current, err := p.reader.config.Store.Current(ctx)
		if err != nil {
			return nil, err
		}
		opts.After = current
	case p.Revision == 0:
		opts.After = p.cache.Current().Revision()
	}
	watcher, err := p.cache.Resume(ctx, opts)
	return watcher, CacheError(err)
}

// initialState is the snapshot whose objects come first.
func (p *WatchPlan) initialState(ctx context.Context) (watchcache.Snapshot, error) {
	switch {
	case p.mostRecent:
		return p.reader.latest(ctx, p.cache)
	case p.Revision == 0:
		return p.cache.Current(), nil
	}
	return notOlderThan(ctx, p.cache, p.Revision)
}

// Reached returns how far the watch's cache has come.
func (p *WatchPlan) Reached() storage.Revision { return p.cache.Current().Revision() }
