package garbage

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
	// brokenPatience is how long an owner waits for a resource that cannot be watched or whose server sends no bookmarks, or
	// for kinds that could not be discovered, from when this collector began to wait. After it, what is known of
	// that resource counts for an owner that waits for its dependents: one API server or conversion webhook that is away must
	// not keep everything else from being deleted, and a mistake costs the order only. For an owner whose
	// dependents are to stay, the server lists the resource.
	brokenPatience = time.Minute
	// foreignFor and silentFor are for how long it is remembered that the versions of a resource's
	// server are not those of an owner's, and that it sends no bookmarks: to find that out takes
	// seconds, and owners may be many. maxForeign is for how many resources of owners.
	foreignFor = 10 * time.Minute
	silentFor  = time.Minute
	maxForeign = 1000
)

// errGraphBehind says that the graph does not show yet what an owner may have.
var errGraphBehind = errors.New("the dependents of an owner are not known yet")

var errOthersWatched = fmt.Errorf("%w: other resources are watched now", errGraphBehind)

// moment is a state of the graph in which it shows what could depend on an owner.
type moment struct {
	watches uint64 // the number of changes of what is watched
	// unseen are resources of which the graph may lack objects all the same: nothing tells. Of the groups that unknown
	// names it may lack all.
	unseen  []watched
	unknown error
}

// awaitGraph waits until the graph shows all that could depend on an owner when it had its version, which is that of its mark
// for deletion, or later. Each resource has a watch of its own, and any of them may be behind: that no dependent
// is in the graph means nothing until each has come to that version, or later. All
// versions come from one counter, and resources in which nothing changes are asked for. The error
// is errGraphBehind if that takes longer than a worker has time for.
//
// Of a resource whose API server counts otherwise, or has no versions that are numbers, as an aggregated one with a
// storage of its own may, nothing compares the versions with the owner's: it is one of the unseen.
func (c *Controller) awaitGraph(ctx context.Context, o object) (moment, error) {
	since := c.waits.begin(o.uid)
	resources, watches, err := c.dependentsOf(o)
	if err != nil {
		return moment{}, err
	}
	var behind []watched
	for _, w := range resources {
		if !w.hasReached(o.version) && !w.countsOtherwise(o) && !w.givenUp(since) {
			behind = append(behind, w)
		}
	}
	if len(behind) > 0 {
		if err := c.awaitVersions(ctx, behind, o, since); err != nil {
			return moment{}, err
		}
	}
	m := moment{watches: watches}
	for _, w := range resources {
		if !w.hasReached(o.version) {
			m.unseen = append(m.unseen, w)
		}
		if err := w.handler.Flush(ctx); err != nil {
			return moment{}, fmt.Errorf("%w: %w", errGraphBehind, err) // it is given up: the resources are others now
		}
	}
	if m.unknown, err = c.awaitKinds(ctx, o, since, m.unseen); err != nil {
		return moment{}, err
	}
	return m, c.holds(m)
}

// holds fails if other resources are watched than at a moment. What a reader has found in the graph means something only
// if that is asked afterwards: the graph forgets the objects of a resource that is watched no more, or in another version.
func (c *Controller) holds(m moment) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.replacing || c.watches != m.watches {
		return errOthersWatched
	}
	return nil
}

// awaitVersions waits until resources have reached the version of an owner, unless too many workers wait.
func (c *Controller) awaitVersions(ctx context.Context, resources []watched, o object, since time.Time) error {
	leave, ok := c.enter()
	if !ok {
		return errGraphBehind
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, graphTimeout)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	for _, w := range resources {
		group.Go(func() error {
			err := w.informer.CatchUp(ctx, o.version)
			if err == nil {
				return nil
			}
			if w.learn(err, o); w.countsOtherwise(o) || w.givenUp(since) || o.orphan && isOver(since) {
				return nil // the server lists the resource for those whose dependents are to stay
			}
			return fmt.Errorf("%w: %w", errGraphBehind, err)
		})
	}
	return group.Wait()
}

// later turns the wait for the graph into another look at the owner.
func (c *Controller) later(o object, err error) (controller.Result, error) {
	if !errors.Is(err, errGraphBehind) {
		if err == nil {
			c.waits.end(o.uid)
		}
		return controller.Result{}, err
	}
	log := c.log.With("resource", o.resource.Resource, "namespace", o.namespace, "name", o.name, "reason", err)
	if waited, owners, say := c.waits.overdue(o.uid); say {
		log.Warn("an owner that is deleted waits until it is known what depends on it", "for", waited.Round(time.Second), "waiting", owners)
	} else {
		log.Debug("an owner waits")
	}
	return controller.After(graphRetry), nil
}

// dependentsOf returns the resources whose objects an object may own, and the number of changes of what is watched.
func (c *Controller) dependentsOf(o object) (resources []watched, watches uint64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.replacing {
		return nil, 0, errOthersWatched
	}
	for _, w := range c.watching {
		if w.namespaced || o.namespace == "" {
			resources = append(resources, w)
		}
	}
	return resources, c.watches, nil
}

// resourceInformer says how far the watch of a resource is. It is a SharedInformer.
type resourceInformer interface {
	LastSyncResourceVersion() string
	HasSynced() bool
	Stats() informer.Stats
	CatchUp(ctx context.Context, version string) error
}

func (w watched) hasReached(version string) bool {
	order, err := resourceversion.CompareResourceVersion(w.informer.LastSyncResourceVersion(), version)
	return err == nil && order >= 0
}

// answers is what a server has said that was asked how far a resource is. It is safe for
// concurrent use.
type answers struct {
	mu sync.Mutex
	// foreign has until when versions of the resource are not compared with those of owners of
	// another one: both may be of one server, and others not. It has maxForeign at most.
	foreign map[schema.GroupVersionResource]time.Time
	silent  time.Time // until when the server is one that sends no bookmarks
}

// learn notes what an error of CatchUp for an owner says of the server. That the server could not
// be asked, or was too slow, says nothing.
func (w watched) learn(err error, o object) {
	a, now := w.answers, time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case errors.Is(err, informer.ErrOtherVersions):
		a.addForeign(o.resource, now)
	case errors.Is(err, informer.ErrChangesPending):
		a.silent = time.Time{}
	case errors.Is(err, informer.ErrNoBookmarks):
		a.silent = now.Add(silentFor)
	}
}

// addForeign needs mu. If there are too many resources, what is known of the others is found out again.
func (a *answers) addForeign(owner schema.GroupVersionResource, now time.Time) {
	maps.DeleteFunc(a.foreign, func(_ schema.GroupVersionResource, until time.Time) bool { return !now.Before(until) })
	if a.foreign == nil || len(a.foreign) >= maxForeign {
		a.foreign = map[schema.GroupVersionResource]time.Time{}
	}
	a.foreign[owner] = now.Add(foreignFor)
}

func (a *answers) isForeign(owner schema.GroupVersionResource) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return time.Now().Before(a.foreign[owner])
}

func (a *answers) isSilent() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return time.Now().Before(a.silent)
}

// countsOtherwise reports whether nothing compares the versions of the resource with an owner's.
func (w watched) countsOtherwise(o object) bool {
	return w.answers.isForeign(o.resource) || w.hasNoNumbers()
}

// hasNoNumbers reports whether the resource is listed and its versions are none, or no numbers. A
// resource that was gone has none, either, until it is listed again and the graph has the list.
func (w watched) hasNoNumbers() bool {
	if isNumber(w.informer.LastSyncResourceVersion()) || !w.informer.HasSynced() {
		return false
	}
	stats := w.informer.Stats()
	return stats.Reflector.GoneSince.IsZero() && stats.Queued == 0 && !isNumber(w.informer.LastSyncResourceVersion())
}

func isNumber(version string) bool {
	_, err := resourceversion.CompareResourceVersion(version, version)
	return err == nil
}

// givenUp reports whether an owner, which waits since then, waits for the watch of the resource no longer.
func (w watched) givenUp(since time.Time) bool {
	return isOver(since) && (w.informer.Stats().Reflector.LastError != nil || w.answers.isSilent())
}

// isOver reports whether an owner waits no longer for what may be broken.
func isOver(since time.Time) bool { return time.Since(since) > brokenPatience }
