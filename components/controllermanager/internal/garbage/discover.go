package garbage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/client/discovery"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/scheme"
)

const (
	// rediscover is how often the server is asked whether it serves other
	// kinds, although nothing says so.
	rediscover = 30 * time.Second
	// settle is when it is asked once more after one of definitions has changed: what
	// is defined is served a little later.
	settle = time.Second
	// firstPatience is for how long the collector waits for all groups before it begins
	// with those that can be asked: while a server starts, some often cannot.
	firstPatience = time.Second
	// syncPatience is for how long it waits for the first lists, as in Kubernetes.
	syncPatience = 30 * time.Second
)

// events are what own nothing, are owned by nothing, and are many.
var events = map[schema.GroupResource]bool{
	{Resource: "events"}:                         true,
	{Group: "events.k8s.io", Resource: "events"}: true,
}

// definitions are what makes a server serve other kinds: custom resources, and aggregated servers, whose status says
// when they begin to answer. The collector watches them like everything else. After each of their events it looks what
// is served.
var definitions = map[schema.GroupResource]bool{
	{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}: true,
	{Group: "apiregistration.k8s.io", Resource: "apiservices"}:             true,
}

// definitionChanged is for each event of a resource. Without a name any definition may have changed.
func (c *Controller) definitionChanged(resource schema.GroupVersionResource, name string) {
	if definitions[resource.GroupResource()] {
		c.discoveries.change(groupOf(name))
		c.discoverSoon()
	}
}

// discoverSoon has the server asked what it serves, at once and after settle. Owners wait for that: see awaitKinds.
func (c *Controller) discoverSoon() {
	select {
	case c.served <- struct{}{}:
	default:
	}
}

// discoverFirst returns when the collector can begin: true, or false if ctx has ended. A
// group that cannot be asked does not keep it from collecting what the others have.
func (c *Controller) discoverFirst(ctx context.Context) bool {
	for begun, wait := time.Now(), 100*time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		err := c.discover(ctx)
		if err == nil {
			return true
		}
		if ctx.Err() == nil && time.Since(begun) > firstPatience && len(c.factories()) > 0 {
			c.log.Warn("some kinds are not known, and their objects not collected; trying again later", "error", err)
			return true
		}
		c.log.Info("the server's kinds are not known yet, trying again", "error", err)
		select {
		case <-ctx.Done():
			return false
		case <-time.After(wait):
		}
	}
}

func (c *Controller) keepDiscovering(ctx context.Context) {
	timer := time.NewTimer(rediscover)
	defer timer.Stop()
	var failing time.Time // since when the kinds cannot be asked for; zero: they can
	for {
		next := rediscover
		select {
		case <-ctx.Done():
			return
		case <-c.served:
			next = settle
		case <-timer.C:
		}
		switch err := c.discover(ctx); {
		case err == nil:
			failing = time.Time{}
		case failing.IsZero():
			// The server of a group may be starting, or ending. That passes, and is no warning.
			failing = time.Now()
			c.log.Info("kinds not discovered, trying again later", "error", err)
		case ctx.Err() == nil && time.Since(failing) >= rediscover:
			c.log.Warn("kinds not discovered, trying again later", "error", err, "failingFor", time.Since(failing).Round(time.Second))
		}
		timer.Reset(next)
	}
}

// discover starts informers for what is served and not watched yet, and gives
// those up whose resource is served no more, or in another version. A group that cannot
// be asked leaves everything else that is watched as it is.
func (c *Controller) discover(ctx context.Context) error {
	begun := time.Now()
	served, err := discovery.Fetch(ctx, c.client)
	resources := discovery.Preferred(served)
	if len(resources) == 0 && err != nil {
		return err
	}
	versions := c.note(resources)
	// The informer of an old version goes first: it must not take out of the graph, or
	// put into it, what that of the new one has put there.
	c.giveUp(func(resource schema.GroupVersionResource) bool {
		version, ok := versions[resource.GroupResource()]
		return ok && version != resource.Version || !ok && err == nil
	})
	if failed := c.watchAll(ctx, resources); failed != nil {
		return failed
	}
	c.discoveries.end(begun, served, discovery.FailedGroups(err))
	return err
}

// note keeps where objects are reached: in the resource that is watched, if a kind has several. It returns
// the version in which each resource is to be watched.
func (c *Controller) note(resources []discovery.Resource) (versions map[schema.GroupResource]string) {
	versions = map[schema.GroupResource]string{}
	followed := map[schema.GroupKind]bool{}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range resources {
		resource := r.GroupVersionResource()
		of := r.Mapping.Kind.GroupKind()
		if !collectable(r) && followed[of] {
			continue
		}
		c.kinds[of] = kind{resource, r.Mapping.Scope == scheme.Namespaced}
		if collectable(r) {
			followed[of] = true
			versions[resource.GroupResource()] = resource.Version
		}
	}
	return versions
}

// watchAll starts informers for resources that are not watched yet. What is watched is complete then.
func (c *Controller) watchAll(ctx context.Context, resources []discovery.Resource) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range resources {
		resource := r.GroupVersionResource()
		if _, watching := c.watching[resource]; watching || !collectable(r) {
			continue
		}
		w, err := c.watch(resource, r.Mapping.Scope == scheme.Namespaced)
		if err != nil {
			return fmt.Errorf("watch %s: %w", resource.Resource, err)
		}
		c.watching[resource] = w
		c.watches++
		w.factory.Start(ctx)
	}
	c.replacing = false
	return nil
}

// giveUp stops watching resources. The graph forgets the objects that were seen there; what
// they own is judged by what the server says then, which may serve them in another version.
func (c *Controller) giveUp(unserved func(schema.GroupVersionResource) bool) {
	var ended []*informer.Factory
	c.mu.Lock()
	for resource, w := range c.watching {
		if unserved(resource) {
			delete(c.watching, resource)
			ended = append(ended, w.factory)
			c.watches++
			c.replacing = true // until watchAll
		}
	}
	c.mu.Unlock()
	for _, factory := range ended {
		factory.Shutdown()
	}
	if len(ended) == 0 {
		return
	}
	c.discoveries.lose() // a server that starts may serve less for a moment
	c.discoverSoon()
	for _, uid := range c.graph.of(unserved) {
		c.forget(uid)
	}
}

func (c *Controller) factories() []*informer.Factory {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := make([]*informer.Factory, 0, len(c.watching))
	for _, w := range c.watching {
		list = append(list, w.factory)
	}
	return list
}

// errNotListed says in the log which resources the collector does not wait for any longer.
var errNotListed = fmt.Errorf("after %v it has no complete list", syncPatience)

// waitForSync waits for the first lists: a graph without the owners would make
// the server answer for each of them. A resource that is given up meanwhile is
// not waited for, nor for long one that cannot be listed: the server behind it, or a
// conversion webhook, may be away for good.
func (c *Controller) waitForSync(ctx context.Context) {
	patient, cancel := context.WithTimeoutCause(ctx, syncPatience, errNotListed)
	defer cancel()
	for _, factory := range c.factories() {
		err := factory.WaitForSync(patient)
		if ctx.Err() == nil && err != nil && !errors.Is(err, informer.ErrStopped) {
			c.log.Warn("objects are collected although some dependents are not known", "error", err)
		}
	}
}

func (c *Controller) stopWatching() {
	for _, factory := range c.factories() {
		factory.Shutdown()
	}
}

// collectable leaves out what cannot be followed and deleted, and events.
func collectable(r discovery.Resource) bool {
	return !events[r.GroupVersionResource().GroupResource()] && r.Supports("list", "watch", "delete")
}
