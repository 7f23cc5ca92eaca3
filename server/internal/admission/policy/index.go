package policy

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/server/internal/admission/rules"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/watchcache"
)

// index finds the policies that a request may match.
type index struct {
	mu       sync.Mutex // guards what follows, and making a table
	policies map[string]*policy
	bindings map[string]*binding

	// table is made of the two at the first request after a change; nil: it has to be.
	table atomic.Pointer[table]
}

func newIndex() *index {
	return &index{policies: map[string]*policy{}, bindings: map[string]*binding{}}
}

// table is an immutable state of an index.
type table struct {
	hooks []*hook // in the order of the policies' names
	// candidates are the hooks that a request for an endpoint may match, by endpointKey. It
	// has one entry for each operation and resource that has been asked for.
	candidates sync.Map
}

// hook is a policy with its bindings, in the order of their names.
type hook struct {
	policy   *policy
	bindings []*binding
}

type endpointKey struct {
	operation   admissionv1.OperationType
	resource    schema.GroupVersionResource
	subresource string
}

// current returns the table. It is empty while no policy is bound.
func (x *index) current() *table {
	if t := x.table.Load(); t != nil {
		return t
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if t := x.table.Load(); t != nil {
		return t
	}
	bound := map[string]*hook{}
	for _, b := range x.bindings {
		p := x.policies[b.policy]
		if p == nil {
			continue
		}
		if bound[p.name] == nil {
			bound[p.name] = &hook{policy: p}
		}
		bound[p.name].bindings = append(bound[p.name].bindings, b)
	}
	t := &table{}
	for _, name := range slices.Sorted(maps.Keys(bound)) {
		h := bound[name]
		slices.SortFunc(h.bindings, func(a, b *binding) int { return strings.Compare(a.name, b.name) })
		t.hooks = append(t.hooks, h)
	}
	x.table.Store(t)
	return t
}

// candidatesFor returns the hooks that a request may match.
func (t *table) candidatesFor(q *rules.Request) []*hook {
	key := endpointKey{q.Operation, q.Endpoint.Resource, q.Subresource}
	if list, ok := t.candidates.Load(key); ok {
		return list.([]*hook)
	}
	var list []*hook
	for _, h := range t.hooks {
		if h.policy.matcher == nil || h.policy.matcher.MayMatch(q) {
			list = append(list, h)
		}
	}
	t.candidates.Store(key, list)
	return list
}

// policyOrBinding is one of the two.
type policyOrBinding interface {
	setIn(x *index)
}

func (p *policy) setIn(x *index)  { x.policies[p.name] = p }
func (b *binding) setIn(x *index) { x.bindings[b.name] = b }

// source is one of the four kinds.
type source struct {
	index    *index
	registry registry.Registry
	decode   func(context.Context, registry.Registry, *watchcache.Object) (policyOrBinding, error)
	log      *slog.Logger
	// changed is called with the name of each object that is new or another; may be nil.
	changed func(name string)
	// gone is called with the names of objects that are gone, and how many are left.
	gone    func(names []string, left int)
	applied chan<- struct{} // see Policies.applied

	names map[string]struct{} // only the follower's calls use it
}

func decodeAs[T resource.Object, K policyOrBinding](make func(T) K) func(context.Context, registry.Registry, *watchcache.Object) (policyOrBinding, error) {
	return func(ctx context.Context, r registry.Registry, o *watchcache.Object) (policyOrBinding, error) {
		obj, err := registry.DecodeAs[T](ctx, r, o)
		if err != nil {
			return nil, err
		}
		return make(obj), nil
	}
}

// replace applies all objects of the kind.
func (s *source) replace(ctx context.Context, objects watchcache.Snapshot) {
	events := make([]watchcache.Event, 0, objects.Len())
	gone := s.names
	s.names = map[string]struct{}{}
	for o := range objects.Range("", "") {
		delete(gone, o.Key)
		events = append(events, watchcache.Event{Type: watchcache.Added, Object: o})
	}
	for name := range gone {
		events = append(events, watchcache.Event{Type: watchcache.Deleted, Object: &watchcache.Object{Key: name}})
	}
	s.apply(ctx, events)
}

// apply changes the index.
func (s *source) apply(ctx context.Context, events []watchcache.Event) {
	if len(events) == 0 {
		return
	}
	s.index.mu.Lock()
	defer s.index.mu.Unlock()
	s.index.table.Store(nil)
	select {
	case s.applied <- struct{}{}:
	default:
	}
	var gone []string
	for i := range events {
		o := events[i].Object
		if events[i].Type == watchcache.Deleted {
			delete(s.names, o.Key)
			s.remove(o.Key)
			gone = append(gone, o.Key)
			continue
		}
		decoded, err := s.decode(ctx, s.registry, o)
		if err != nil {
			// What was in force before stays so.
			s.log.Error("an admission policy or its binding cannot be read; what was in force before stays", "resource", s.registry.Resource().Plural, "name", o.Key, "error", err)
			continue
		}
		if s.names == nil {
			s.names = map[string]struct{}{}
		}
		s.names[strings.Clone(o.Key)] = struct{}{}
		decoded.setIn(s.index)
		if s.changed != nil {
			s.changed(o.Key)
		}
	}
	s.gone(gone, len(s.names))
}

func (s *source) remove(name string) {
	if strings.HasSuffix(s.registry.Resource().Plural, "bindings") {
		delete(s.index.bindings, name)
	} else {
		delete(s.index.policies, name)
	}
}
