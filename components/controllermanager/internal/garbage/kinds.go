package garbage

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/client/discovery"
)

// discoveries are how new the collector's knowledge of what is served is. It is safe for concurrent use.
type discoveries struct {
	begun time.Time // when the collector was made

	mu sync.Mutex
	// defined is when the collector last saw a definition change, and lost when it last gave up a resource. Zero: never.
	defined, lost time.Time
	// answered and whole are when discoveries began: the last one that the server answered, and the last one in which
	// each group could be asked. Zero: there was none.
	answered, whole time.Time
	groups          groups
	ended           chan struct{} // is closed when one has ended
}

var errNotDiscovered = errors.New("the server was not asked yet which kinds it serves")

func newDiscoveries() *discoveries {
	return &discoveries{begun: time.Now(), groups: newGroups(), ended: make(chan struct{})}
}

// change notes that a definition of a group has changed, or of any.
func (d *discoveries) change(group string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.defined = time.Now()
	d.groups.changed[group] = d.defined
}

// lose notes that a resource is served no more.
func (d *discoveries) lose() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lost = time.Now()
}

// changed returns when a definition last changed.
func (d *discoveries) changed() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.defined
}

// end notes a discovery that the server has answered, and whose resources are watched, and which groups could not be asked.
func (d *discoveries) end(begun time.Time, served []discovery.Resource, failed map[schema.GroupVersion]error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	first := begun
	if d.answered.IsZero() {
		first = d.begun
	}
	d.groups.end(begun, first, served, failed)
	d.answered = begun
	if len(failed) == 0 {
		d.whole = begun
	}
	close(d.ended)
	d.ended = make(chan struct{})
}

// gap is why there may be kinds that the collector does not know.
type gap struct {
	reason error // nil: it knows all
	// from is since when an owner may wait for them: after a minute it does no longer.
	from time.Time
	// answered reports whether the server was asked since the definitions changed; if it was not, ended is closed when it
	// may have been.
	answered bool
	ended    <-chan struct{}
}

// missing returns why the collector may lack kinds that were served when a definition changed. What is defined is served a little later, so
// only a discovery after settle counts. What a server that starts serves less for a moment is asked for again after that, too.
func (d *discoveries) missing(defined time.Time) gap {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lost.After(defined) {
		defined = d.lost
	}
	from := defined
	if from.IsZero() {
		from = d.begun
	}
	switch {
	case counts(d.whole, defined):
		return gap{answered: true}
	case !counts(d.answered, defined):
		return gap{errNotDiscovered, from, false, d.ended}
	case d.groups.unnamed != nil: // any group may be missing
		return gap{d.groups.unnamed, from, true, nil}
	}
	from, reason := d.groups.missing()
	return gap{reason, from, true, nil}
}

// counts reports whether a discovery shows what a change of definitions made the server serve. Zero: there was no
// discovery, or no change.
func counts(discovery, defined time.Time) bool {
	return !discovery.IsZero() && (defined.IsZero() || !discovery.Before(defined.Add(settle)))
}

// awaitKinds waits until the collector knows the kinds that were defined when the graph came to an owner's moment. It
// returns as unknown which groups cannot be asked, if the owner waits for them no longer.
//
// That is after a minute, or when a minute has passed since something of those groups was last defined: one aggregated server may be away for
// good, and nothing that the collector could ask says what it has. An owner whose dependents are to stay does not
// go while no discovery has been answered at all.
func (c *Controller) awaitKinds(ctx context.Context, o object, since time.Time, unseen []watched) (unknown, err error) {
	missing := c.awaitDiscovery(ctx, c.definedFor(o, unseen))
	if missing.reason != nil && (!missing.answered && o.orphan || !isOver(missing.from) && !isOver(since)) {
		return nil, fmt.Errorf("%w: %w", errGraphBehind, missing.reason)
	}
	return missing.reason, nil
}

// definedFor returns when the last definition had changed that an owner waits for. Those that change while it waits are not
// among them: where some change all the time, no discovery would be new enough.
func (c *Controller) definedFor(o object, unseen []watched) time.Time {
	if defined, ok := c.waits.definedFor(o.uid); ok {
		return defined
	}
	for _, w := range unseen {
		if o.orphan {
			c.definitionChanged(w.resource, "") // it may have
		}
	}
	defined := c.discoveries.changed()
	c.waits.defineFor(o.uid, defined)
	return defined
}

// awaitDiscovery waits until the server was asked what is served since a definition changed.
func (c *Controller) awaitDiscovery(ctx context.Context, defined time.Time) gap {
	missing := c.discoveries.missing(defined)
	if missing.answered {
		return missing
	}
	leave, ok := c.enter()
	if !ok {
		return missing
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, graphTimeout)
	defer cancel()
	for !missing.answered {
		select {
		case <-missing.ended:
			missing = c.discoveries.missing(defined)
		case <-ctx.Done():
			return missing
		}
	}
	return missing
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
