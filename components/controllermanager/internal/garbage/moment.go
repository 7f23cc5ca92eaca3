package garbage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/client/informer"
)

const (
	// graphTimeout is how long a worker waits for the graph, and graphWaiters how many do at
	// the same time: the others collect. graphRetry is after what time an owner is looked at
	// again.
	graphTimeout = 5 * time.Second
	graphWaiters = workers / 4
	graphRetry   = time.Second
	// brokenPatience is how long after its mark an owner waits for a resource that cannot be
	// watched, or for kinds that were never discovered. After it, what is known of that resource counts: one API server or conversion
	// webhook that is away must not keep everything else from being deleted.
	brokenPatience = time.Minute
)

// errGraphBehind says that the graph does not show yet what an owner may have.
var errGraphBehind = errors.New("the dependents of an owner are not known yet")

// awaitGraph waits until the graph shows all that could depend on an owner when it was marked for
// deletion. Each resource has a watch of its own, and any of them may be behind: that no dependent
// is in the graph means nothing until each has come to the version of the mark, or later. All
// versions come from one counter, and resources in which nothing changes are asked for. The error
// is errGraphBehind if that takes longer than a worker has time for.
//
// Of a resource whose API server counts otherwise, as an aggregated one with a storage of its own
// may, what is known counts: nothing compares its versions with the mark's.
func (c *Controller) awaitGraph(ctx context.Context, o object) error {
	if err := c.unknownKinds(); err != nil && time.Since(o.marked) <= brokenPatience {
		return fmt.Errorf("%w: %w", errGraphBehind, err)
	}
	resources := c.dependentsOf(o)
	var behind []watched
	for _, w := range resources {
		if !w.hasReached(o.version) && !w.givenUp(o) {
			behind = append(behind, w)
		}
	}
	if len(behind) > 0 {
		if err := c.awaitVersions(ctx, behind, o.version); err != nil {
			return err
		}
	}
	for _, w := range resources {
		if err := w.handler.Flush(ctx); err != nil {
			return fmt.Errorf("%w: %w", errGraphBehind, err) // it is given up: the resources are others now
		}
	}
	return nil
}

// awaitVersions waits until resources have reached a version, unless too many workers wait.
func (c *Controller) awaitVersions(ctx context.Context, resources []watched, version string) error {
	select {
	case c.waiting <- struct{}{}:
		defer func() { <-c.waiting }()
	default:
		return errGraphBehind
	}
	ctx, cancel := context.WithTimeout(ctx, graphTimeout)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	for _, w := range resources {
		group.Go(func() error {
			err := w.informer.CatchUp(ctx, version)
			if err == nil || errors.Is(err, informer.ErrOtherVersions) {
				return nil
			}
			return fmt.Errorf("%w: %w", errGraphBehind, err)
		})
	}
	return group.Wait()
}

// later turns the wait for the graph into another look at the owner.
func (c *Controller) later(o object, err error) (controller.Result, error) {
	if !errors.Is(err, errGraphBehind) {
		return controller.Result{}, err
	}
	c.log.Debug("an owner waits", "resource", o.resource.Resource, "namespace", o.namespace, "name", o.name, "reason", err)
	return controller.After(graphRetry), nil
}

// dependentsOf returns the resources whose objects an object may own.
func (c *Controller) dependentsOf(o object) (resources []watched) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.watching {
		if w.namespaced || o.namespace == "" {
			resources = append(resources, w)
		}
	}
	return resources
}

// unknownKinds returns why objects of kinds that the collector has never known may be
// dependents; nil: it has known all.
func (c *Controller) unknownKinds() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.undiscovered
}

func (w watched) hasReached(version string) bool {
	order, err := resourceversion.CompareResourceVersion(w.informer.LastSyncResourceVersion(), version)
	return err == nil && order >= 0
}

// givenUp reports whether an owner waits for the resource no longer.
func (w watched) givenUp(o object) bool {
	return time.Since(o.marked) > brokenPatience && w.informer.Stats().Reflector.LastError != nil
}
