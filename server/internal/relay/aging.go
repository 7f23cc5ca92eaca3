package relay

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/levelwire/levelwire/server/internal/apiserver/watchstream"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/storage"
)

// A list at one version, as the next page of a list is, expires when the upstream's store has
// compacted that version. A relay is not told when, so it asks: such lists are passed on when
// the version is no longer recent. The cache keeps the history for watches that resume.

// agingInterval is how long a version is recent at least; it is so for up to twice that. Servers
// keep five minutes of history at least, and pages follow each other within seconds.
const agingInterval = time.Minute

// aging is which versions of a cache are recent.
type aging struct {
	recent  atomic.Int64 // the oldest of them
	reached int64        // at the last step
}

// step notes that agingInterval has passed.
func (a *aging) step(reached storage.Revision) {
	a.recent.Store(a.reached)
	a.reached = int64(reached)
}

// ageVersions takes one step for each cache.
func (r *Relay) ageVersions() {
	for _, s := range *r.byResource.Load() {
		s.aging.step(s.cache.Reached())
	}
}

// Compacted returns the version before which a list at one version is passed on.
func (r *Relay) Compacted(res *resource.Resource) storage.Revision {
	if s := (*r.byResource.Load())[res]; s != nil {
		return storage.Revision(s.aging.recent.Load())
	}
	return 0
}

// retainedKey is the key of a context whose lists are also of what the store of a Levelwire
// upstream has compacted, if the upstream has it in a cache.
type retainedKey struct{}

// asksForRetained sends that with lists.
type asksForRetained struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (a asksForRetained) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Context().Value(retainedKey{}) == nil {
		return a.next.RoundTrip(req)
	}
	req = req.Clone(req.Context())
	req.Header.Set(watchstream.HistoryHeader, watchstream.Retained)
	return a.next.RoundTrip(req)
}

// CloseIdleConnections closes those of the round tripper below, which http.Client looks for.
func (a asksForRetained) CloseIdleConnections() {
	if c, ok := a.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// askingForRetained returns the context of such lists.
func askingForRetained(ctx context.Context) context.Context {
	return context.WithValue(ctx, retainedKey{}, true)
}
