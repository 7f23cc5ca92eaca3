package relay

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/levelwire/levelwire/server/internal/apiserver"
	"github.com/levelwire/levelwire/server/internal/apiserver/watchstream"
	"github.com/levelwire/levelwire/server/internal/runqueue"
	"github.com/levelwire/levelwire/server/internal/status"
	"github.com/levelwire/levelwire/storage"
)

// Coalesced history of the upstream, or a list, may bring the cache from one version to a later one
// without every change in between: then it has what differs from the state that the cache had
// before. That is right for clients that had that state, or an earlier one. A client with a
// version in between, which it has got from another server, may know an object that was made
// and deleted meanwhile, and would never get the deletion. Such a client is passed on.

// coalescedKey is the key of a context whose request's answer says whether it begins with
// coalesced history: the value is a *bool.
type coalescedKey struct{}

// watchHistory notes for watches whether the upstream, a Levelwire server or relay, begins them
// with coalesced history, and has it end those that would go on with it. Other servers have
// exact history only.
type watchHistory struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (w watchHistory) RoundTrip(req *http.Request) (*http.Response, error) {
	coalesced, ok := req.Context().Value(coalescedKey{}).(*bool)
	if !ok {
		return w.next.RoundTrip(req)
	}
	req = req.Clone(req.Context())
	req.Header.Set(watchstream.HistoryHeader, watchstream.Exact)
	response, err := w.next.RoundTrip(req)
	if err == nil {
		*coalesced = response.Header.Get(watchstream.HistoryHeader) != ""
	}
	return response, err
}

// CloseIdleConnections closes those of the round tripper below, which http.Client looks for.
func (w watchHistory) CloseIdleConnections() {
	if c, ok := w.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// after reports whether a gap ends after a version.
func (g *gaps) after(version storage.Revision) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.pending != nil || slices.ContainsFunc(g.list, func(gap gap) bool { return gap.through > version })
}

// gaps are the ranges of versions through which the cache has come like that.
type gaps struct {
	mu      sync.Mutex
	list    []gap            // ascending
	pending chan struct{}    // closed when it is known how far the last gap goes; nil if there is none
	begins  storage.Revision // of the pending gap
}

// gap is what clients with a version between the two must not be served from.
type gap struct{ from, through storage.Revision }

// maxGaps is how many gaps are kept. Beyond it, the earliest two become one.
const maxGaps = 32

// begin notes that the cache has every change up to a version, and perhaps not all after it.
func (g *gaps) begin(from storage.Revision) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.pending == nil {
		g.pending, g.begins = make(chan struct{}), from
	}
}

// end notes that the cache has every change after a version.
func (g *gaps) end(through storage.Revision) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.pending == nil {
		return
	}
	close(g.pending)
	g.pending = nil
	g.add(gap{g.begins, through})
}

// note notes a gap whose end is known.
func (g *gaps) note(from, through storage.Revision) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.add(gap{from, through})
}

// open notes a gap whose end is not known yet: clients with any version after its beginning are
// passed on until closed is called.
func (g *gaps) open(from storage.Revision) (closed func(through storage.Revision)) {
	g.note(from, math.MaxInt64)
	return func(through storage.Revision) {
		g.mu.Lock()
		defer g.mu.Unlock()
		if i := slices.IndexFunc(g.list, func(gap gap) bool { return gap.through == math.MaxInt64 }); i >= 0 {
			g.list[i].through = through
		}
	}
}

// add adds a gap. The lock is held.
func (g *gaps) add(added gap) {
	if added.through <= added.from+1 {
		return // no version is between the two
	}
	g.list = append(g.list, added)
	if len(g.list) > maxGaps {
		g.list[1] = gap{min(g.list[0].from, g.list[1].from), max(g.list[0].through, g.list[1].through)}
		g.list = g.list[1:]
	}
}

// reset forgets all gaps: the cache has begun anew.
func (g *gaps) reset() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.list = nil
	if g.pending != nil {
		close(g.pending)
		g.pending = nil
	}
}

// has reports whether a version lies in a gap. If that is not known yet, it returns what is
// closed when it is.
func (g *gaps) has(version storage.Revision) (in bool, unknown <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.pending != nil && version > g.begins {
		return false, g.pending
	}
	for _, gap := range g.list {
		if gap.from < version && version < gap.through {
			return true, nil
		}
	}
	return false, nil
}

const (
	// watchPatience is how long a watch waits for the cache to reach its version.
	watchPatience = 5 * time.Second
	// askAfter is after which part of that time the upstream is asked whether it has it.
	askAfter = time.Second
)

// prepareWatch waits until the cache has the version from which a watch begins. It fails with
// apiserver.ErrNotCached if the cache has come past that version without every change.
func (s *source) prepareWatch(ctx context.Context, at storage.Revision) error {
	task := runqueue.FromContext(ctx)
	task.Block()
	defer task.Unblock()
	patience := watchPatience
	if _, hears := s.silence.is(); !hears {
		patience = silencePatience
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	reached, err := s.awaitUnlessSilent(ctx, at, askAfter)
	if err == nil && !reached {
		if current, err := s.Current(ctx); err == nil && current < at {
			return nil // there is no such version, which the watch says
		}
		reached, err = s.awaitUnlessSilent(ctx, at, patience)
	}
	switch {
	case errors.Is(err, apiserver.ErrNotCached):
		return err
	case !reached:
		return status.TooManyRequests(fmt.Sprintf("the relay has not reached resource version %d yet, it is at %d: watch again in a moment", at, s.cache.Reached()), 1)
	}
	in, unknown := s.gaps.has(at)
	for unknown != nil {
		select {
		case <-unknown:
			in, unknown = s.gaps.has(at)
		case <-ctx.Done():
			return status.TooManyRequests("the relay has lost the upstream for a moment, and does not know yet whether it has all changes: watch again", 1)
		}
	}
	if in {
		s.relay.counts.olderWatches.Add(1)
		return apiserver.ErrNotCached
	}
	return nil
}

// reaches waits for the cache to reach a version.
func (s *source) reaches(ctx context.Context, at storage.Revision, d time.Duration) bool {
	if s.cache.Reached() >= at {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	return s.follows.Wait(ctx, at) == nil
}
