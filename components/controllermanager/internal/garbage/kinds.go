package garbage

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// discoveries are how new the collector's knowledge of what is served is. It is safe for concurrent use.
type discoveries struct {
	begun time.Time // when the collector was made

	mu      sync.Mutex
	defined time.Time // when the collector last saw a definition change; zero: never
	// answered and whole are when discoveries began: the last one that the server answered, and the last one in which
	// each group could be asked. Zero: there was none.
	answered, whole time.Time
	reason          error         // why the last one was not whole
	ended           chan struct{} // is closed when one has ended
}

var errNotDiscovered = errors.New("the server was not asked yet which kinds it serves")

func newDiscoveries() *discoveries {
	return &discoveries{begun: time.Now(), ended: make(chan struct{})}
}

// change notes that a definition has changed.
func (d *discoveries) change() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.defined = time.Now()
}

// changed returns when a definition last changed.
func (d *discoveries) changed() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.defined
}

// end notes a discovery that the server has answered, and whose resources are watched. The error names the groups that
// could not be asked.
func (d *discoveries) end(begun time.Time, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.answered, d.reason = begun, err
	if err == nil {
		d.whole = begun
	}
	close(d.ended)
	d.ended = make(chan struct{})
}

// missing returns as reason why there may be kinds that the collector does not know although they were served when a
// definition changed; nil: it knows all. What is defined is served a little later, so only a discovery after settle
// counts. A group that was known and cannot be asked afterwards is watched on, and misses nothing. answered reports
// whether the server was asked since then; if it was not, ended is closed when it may have been.
func (d *discoveries) missing(defined time.Time) (ended <-chan struct{}, answered bool, reason error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	since := func(discovery time.Time) bool {
		return !discovery.IsZero() && (defined.IsZero() || !discovery.Before(defined.Add(settle)))
	}
	switch {
	case since(d.whole):
		return nil, true, nil
	case since(d.answered):
		return nil, true, d.reason
	default:
		return d.ended, false, errNotDiscovered
	}
}

// awaitKinds waits until the collector knows the kinds that were defined when the graph came to an owner's moment. It
// returns as unknown which groups cannot be asked, if the owner waits for them no longer.
//
// That is after a minute, or when a minute has passed since the last definition: one aggregated server may be away for
// good, and nothing that the collector could ask says what it has. An owner whose dependents are to stay does not
// go while no discovery has been answered at all.
func (c *Controller) awaitKinds(ctx context.Context, o object, since time.Time) (unknown, err error) {
	defined := c.discoveries.changed()
	answered, unknown := c.awaitDiscovery(ctx, defined)
	if unknown != nil && (!answered && o.orphan || !c.waitedForKinds(defined, since)) {
		return nil, fmt.Errorf("%w: %w", errGraphBehind, unknown)
	}
	return unknown, nil
}

// awaitDiscovery waits until the server was asked what is served since a definition changed. It returns whether it was,
// and why some kinds are not known.
func (c *Controller) awaitDiscovery(ctx context.Context, defined time.Time) (answered bool, reason error) {
	ended, answered, reason := c.discoveries.missing(defined)
	if answered {
		return true, reason
	}
	leave, ok := c.enter()
	if !ok {
		return false, reason
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, graphTimeout)
	defer cancel()
	for !answered {
		select {
		case <-ended:
			ended, answered, reason = c.discoveries.missing(defined)
		case <-ctx.Done():
			return false, reason
		}
	}
	return true, reason
}

// waitedForKinds reports whether an owner has waited, since then, for as long as it does for groups that cannot be asked.
func (c *Controller) waitedForKinds(defined, since time.Time) bool {
	if defined.IsZero() {
		defined = c.discoveries.begun
	}
	return isOver(defined) || isOver(since)
}

// enter takes one of the places of workers that wait for the graph.
func (c *Controller) enter() (leave func(), ok bool) {
	select {
	case c.waiting <- struct{}{}:
		return func() { <-c.waiting }, true
	default:
		return nil, false
	}
}
