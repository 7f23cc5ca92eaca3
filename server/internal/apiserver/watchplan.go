package apiserver

import (
	"context"
	"math/rand/v2"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/storage"
)

// watchPlan is what one watch request asks for, checked and complete. Errors
// up to here are HTTP errors; from here on they are events.
type watchPlan struct {
	form      accepted
	include   metav1.IncludeObjectPolicy
	cache     *watchcache.Cache
	selection *watchcache.Selection
	version   string
	revision  storage.Revision
	initial   bool // begin with the state as ADDED events
	bookmarks bool
	lifetime  time.Duration
}

// planWatch reads and checks everything that the request says.
func (s *Server) planWatch(r *http.Request, q *request) (p watchPlan, err error) {
	if p.form, err = negotiate(r, offerFor(streamForm, q.resource)); err != nil {
		return p, err
	}
	if p.include, err = includeObject(q.query); err != nil {
		return p, err
	}
	o, err := parseListOptions(q)
	if err == nil {
		err = o.validateWatch()
	}
	if err != nil {
		return p, err
	}
	if p.revision, err = parseVersion(o.version); err != nil {
		return p, err
	}
	if p.selection, err = o.selection(q); err != nil {
		return p, err
	}
	if p.cache, err = s.cacheOf(q.resource); err != nil {
		return p, err
	}
	p.version, p.bookmarks = o.version, o.bookmarks
	if o.sendInitialEvents != nil {
		p.initial = *o.sendInitialEvents
	} else {
		// What clients had before they could say it.
		p.initial = p.revision == 0
	}
	p.lifetime = s.watchLifetime(o.timeout)
	return p, nil
}

// watchLifetime returns how long a watch lives. Those that do not say get a
// random time, so that the watches of a restarted server do not all end at
// once.
func (s *Server) watchLifetime(asked time.Duration) time.Duration {
	if asked > 0 {
		return asked
	}
	return time.Duration(float64(s.config.MinWatchTimeout) * (1 + rand.Float64()))
}

// openWatch places the cursor where the grid of watch semantics says. Its errors
// are for the stream.
func (s *Server) openWatch(ctx context.Context, deadline time.Time, p *watchPlan, waker watchcache.Waker) (*watchcache.Watcher, error) {
	opts := watchcache.WatchOptions{Selection: p.selection, After: p.revision, Waker: waker}
	if p.initial || p.version == "" {
		// Others, most of those that a restarted server gets, wait for nothing: a
		// deadline would leave a part of itself in the request's context.
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline)
		defer cancel()
	}
	switch {
	case p.initial:
		snapshot, err := s.initialState(ctx, p)
		if err != nil {
			return nil, err
		}
		opts.Initial = &snapshot
	case p.version == "":
		current, err := s.config.Store.Current(ctx)
		if err != nil {
			return nil, err
		}
		opts.After = current
	case p.revision == 0:
		opts.After = p.cache.Current().Revision()
	}
	watcher, err := p.cache.Resume(ctx, opts)
	return watcher, cacheError(err)
}

// initialState is the snapshot whose objects come first.
func (s *Server) initialState(ctx context.Context, p *watchPlan) (watchcache.Snapshot, error) {
	switch {
	case p.version == "":
		return s.latest(ctx, p.cache)
	case p.revision == 0:
		return p.cache.Current(), nil
	}
	return notOlderThan(ctx, p.cache, p.revision)
}
