package flowcontrol

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"

	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/flowcontrol/defaults"
	"github.com/levelwire/levelwire/server/internal/flowcontrol/fairqueue"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/watchcache"
)

// Controller classifies requests by the FlowSchemas and PriorityLevelConfigurations in
// the caches, and keeps these objects in order. It is safe for concurrent use.
type Controller struct {
	seats           *fairqueue.Seats
	schemas, levels registry.Registry
	set             *registry.Set
	table           atomic.Pointer[table]
	log             *slog.Logger
}

// Options configure a Controller.
type Options struct {
	// Seats is how many requests the server works on at the same time, if each is of one
	// seat.
	Seats int
	// QueueWait is how long a request waits in a queue at most.
	QueueWait time.Duration
	// Logger receives what operators should see. Required.
	Logger *slog.Logger
}

// New returns a Controller over the objects of a Set. Until Run has read them it goes by
// the default ones.
func New(set *registry.Set, opts Options) (*Controller, error) {
	c := &Controller{seats: fairqueue.New(opts.Seats, opts.QueueWait), set: set, log: opts.Logger}
	for plural, r := range map[string]*registry.Registry{"flowschemas": &c.schemas, "prioritylevelconfigurations": &c.levels} {
		found, ok := set.Lookup(flowcontrolv1.GroupName, "v1", plural)
		if !ok || found.Cache() == nil {
			return nil, fmt.Errorf("priority and fairness: %s are not served", plural)
		}
		*r = found
	}
	c.configure(defaultObjects())
	return c, nil
}

func (c *Controller) configure(o objects) {
	compiled := compile(o, c.seats)
	c.table.Store(&compiled)
}

// Classify returns what a request is. It does not allocate.
func (c *Controller) Classify(a *auth.Attributes) Match { return c.table.Load().classify(a) }

// Ensure creates the objects that every cluster has, and brings those of them up to date
// that are kept so.
func (c *Controller) Ensure(ctx context.Context) error { return defaults.Ensure(ctx, c.set) }

const (
	// retryAfter is when Run tries again to read or to write objects.
	retryAfter = time.Second
	// maintainEvery is how often the default objects are brought up to date.
	maintainEvery = time.Minute
)

// Run follows the objects until ctx ends: it goes by each change of them, writes the
// conditions of FlowSchemas, and restores the default objects.
func (c *Controller) Run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := c.follow(ctx); err != nil && ctx.Err() == nil {
			c.log.Warn("FlowSchemas and PriorityLevelConfigurations cannot be followed", "error", err)
			select {
			case <-time.After(retryAfter):
			case <-ctx.Done():
			}
		}
	}
}

// follow is Run until something fails.
func (c *Controller) follow(ctx context.Context) error {
	schemas, err := c.schemas.Watch(ctx, nil)
	if err != nil {
		return err
	}
	defer schemas.Close()
	levels, err := c.levels.Watch(ctx, nil)
	if err != nil {
		return err
	}
	defer levels.Close()
	maintain := time.NewTicker(maintainEvery)
	defer maintain.Stop()
	for {
		changed, err := drain(schemas)
		if err != nil {
			return err
		}
		more, err := drain(levels)
		if err != nil {
			return err
		}
		if changed || more {
			if err := c.update(ctx); err != nil {
				return err
			}
		}
		select {
		case <-schemas.Ready():
		case <-levels.Ready():
		case <-maintain.C:
			if err := c.Ensure(ctx); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// drain reads all events of a watcher, and reports whether there was one.
func drain(w *watchcache.Watcher) (bool, error) {
	var events [64]watchcache.Event
	for changed := false; ; changed = true {
		n, err := w.Read(events[:])
		if err != nil || n == 0 {
			return changed, err
		}
	}
}

// update reads all objects and goes by them.
func (c *Controller) update(ctx context.Context) error {
	schemas, err := readAll[*flowcontrolv1.FlowSchema](ctx, c.schemas, c.log)
	if err != nil {
		return err
	}
	levels, err := readAll[*flowcontrolv1.PriorityLevelConfiguration](ctx, c.levels, c.log)
	if err != nil {
		return err
	}
	o := objects{schemas, levels}
	c.configure(o)
	return c.writeConditions(ctx, o)
}

// readAll decodes all objects of a kind. One that cannot be read is left out.
func readAll[T resource.Object](ctx context.Context, r registry.Registry, log *slog.Logger) (map[string]T, error) {
	snapshot, err := r.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	all := map[string]T{}
	for o := range snapshot.Range("", "") {
		obj, err := registry.DecodeAs[T](ctx, r, o)
		if err != nil {
			log.Error("an object of priority and fairness cannot be read and is ignored", "object", o.Key, "error", err)
			continue
		}
		all[obj.GetName()] = obj
	}
	return all, nil
}
