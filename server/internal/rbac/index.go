package rbac

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/registry/follower"
	"github.com/levelwire/levelwire/server/internal/watchcache"
)

// retryAfter is when what the caches show is read again after an error.
const retryAfter = time.Second

// readyWait bounds how long a decision waits for caches that are being filled for the
// first time.
const readyWait = 10 * time.Second

// Index decides by the roles and bindings in the caches of a Set. It is safe for
// concurrent use.
//
// It keeps each subject's roles, and follows the events of the four caches: a decision
// that finds a cache ahead of the index reads its events first, so that no decision is
// older than the caches. Run does that ahead of decisions.
type Index struct {
	sources  []*source
	follower *follower.Follower // of the sources; holds its lock when it calls them, before mu
	prepared *preparer          // by this server's writes; locked after mu
	opened   atomic.Bool        // the caches have been applied
	log      *slog.Logger
	changes  auth.Changes

	mu     sync.RWMutex // guards policy
	policy *policy
}

// source is one of the four kinds.
type source struct {
	registry registry.Registry
	binding  bool

	keys map[objectKey]struct{} // only the Follower's calls use it
}

// NewIndex returns an Index of the kinds of a Set. It reads nothing yet. log receives
// what operators should see.
func NewIndex(set *registry.Set, log *slog.Logger) (*Index, error) {
	room := newCompiledRoom(maxCompiledBytes)
	x := &Index{policy: newPolicy(room), log: log}
	x.prepared = newPreparer(x.isBound, room)
	var kinds []follower.Kind
	for i, plural := range [...]string{"clusterroles", "roles", "clusterrolebindings", "rolebindings"} {
		r, ok := set.Lookup(rbacv1.GroupName, "v1", plural)
		if !ok || r.Cache() == nil {
			return nil, fmt.Errorf("rbac: %s are not served", plural)
		}
		s := &source{registry: r, binding: i >= 2, keys: map[objectKey]struct{}{}}
		x.sources = append(x.sources, s)
		set.BeforeStore(r.Resource(), func(ctx context.Context, namespace, name string, stored []byte) func(registry.Outcome) {
			return x.prepared.prepare(ctx, s, objectKey{namespace, name}, stored)
		})
		kinds = append(kinds, follower.Kind{
			Registry: r,
			Replace:  func(ctx context.Context, objects watchcache.Snapshot) { x.replace(ctx, s, objects) },
			Apply:    func(ctx context.Context, events []watchcache.Event) { x.apply(ctx, s, events) },
		})
	}
	x.follower = follower.New(log, kinds...)
	return x, nil
}

// Run keeps the index in step with the caches until ctx ends, so that decisions seldom
// have to.
func (x *Index) Run(ctx context.Context) {
	x.prepared.follow(indexReader)
	x.follower.Run(ctx)
}

// Collectors returns the metrics.
func (x *Index) Collectors() []prometheus.Collector {
	return []prometheus.Collector{x.prepared.unprepared}
}

// isBound reports whether a role is bound to anyone.
func (x *Index) isBound(key objectKey) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	r := x.policy.roles[key]
	return r != nil && r.bindings > 0
}

// catchUp applies what the caches show and the index does not, after it has waited for
// the caches to show this server's own writes. The first time it waits for the caches.
func (x *Index) catchUp(ctx context.Context) error {
	if !x.opened.Load() {
		wait, cancel := context.WithTimeout(ctx, readyWait)
		defer cancel()
		for _, s := range x.sources {
			if err := s.registry.Cache().WaitReady(wait); err != nil {
				return errors.Join(auth.ErrNotReady, ctx.Err())
			}
		}
	}
	if err := x.follower.CatchUp(ctx); err != nil {
		return fmt.Errorf("RBAC: %w", err)
	}
	x.opened.Store(true)
	return nil
}

// eventBatch is how many objects are applied at a time while decisions wait, and eventBytes how many bytes of them.
const (
	eventBatch = 64
	eventBytes = 1 << 20
)

// replace applies all objects of a source.
func (x *Index) replace(ctx context.Context, s *source, objects watchcache.Snapshot) {
	gone := s.keys
	s.keys = make(map[objectKey]struct{}, len(gone))
	batch := make([]watchcache.Event, 0, eventBatch)
	for o := range objects.Range("", "") {
		delete(gone, keyOfObject(o))
		if batch = append(batch, watchcache.Event{Type: watchcache.Added, Object: o}); len(batch) == eventBatch {
			x.apply(ctx, s, batch)
			batch = batch[:0]
		}
	}
	x.apply(ctx, s, batch)
	defer x.changes.Notify() // after Unlock
	x.mu.Lock()
	defer x.mu.Unlock()
	for key := range gone {
		x.policy.set(s.binding, key, nil)
	}
}

// apply changes the policy. Decisions wait meanwhile, and less than a millisecond for a batch of usual objects. Of large
// ones, what decoding takes has mostly been prepared; between them, decisions go on that do not need those to come.
// They see a state that there was: not one with a later change of another object, and without an earlier one that was
// left out because the object changes again.
func (x *Index) apply(ctx context.Context, s *source, events []watchcache.Event) {
	defer x.changes.Notify() // after Unlock
	x.mu.Lock()
	defer x.mu.Unlock()
	bytes, complete := 0, 0 // what was left out before is made up for by this position
	for i, event := range events {
		if bytes >= eventBytes && i >= complete {
			bytes = 0
			x.mu.Unlock()
			x.mu.Lock()
		}
		if last := lastOf(event.Object, events); last > i {
			x.prepared.take(indexReader, s.registry.Resource(), event.Object)
			complete = max(complete, last+1)
			continue
		}
		bytes += event.Object.Size()
		key := cloneKey(keyOfObject(event.Object)) // which others may keep for longer than the object
		if event.Type == watchcache.Deleted {
			delete(s.keys, key)
			x.policy.set(s.binding, key, nil)
			continue
		}
		s.keys[key] = struct{}{}
		d, err := x.prepared.define(ctx, indexReader, s.registry, event.Object)
		if err != nil {
			// What cannot be read allows nothing.
			x.log.Error("a role or binding cannot be read and allows nothing", "resource", s.registry.Resource().Plural, "object", event.Object.Key, "error", err)
			d = nil
		}
		x.policy.set(s.binding, key, d)
	}
}

// lastOf returns the position of the last event about an object.
func lastOf(o *watchcache.Object, events []watchcache.Event) int {
	for i := len(events) - 1; i >= 0; i-- {
		if events[i].Object.Key == o.Key {
			return i
		}
	}
	return -1
}

func keyOfObject(o *watchcache.Object) objectKey {
	return objectKey{o.Attributes.Namespace, o.Attributes.Name}
}
