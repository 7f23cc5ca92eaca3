package customresource

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/storage"
)

const (
	// fillPatience is how long the first fill of a cache may take before the
	// resource is served anyway; those who read it are then asked to wait.
	fillPatience  = 10 * time.Second
	statusWriters = 8
)

func sameNames(a, b apiextensionsv1.CustomResourceDefinitionNames) bool {
	return equality.Semantic.DeepEqual(a, b)
}

// change is what becomes of one definition.
type change struct {
	name  string
	entry *entry
	says  wanted
	next  *definition       // nil: what is served stays as it is
	cache *watchcache.Cache // to be filled first; nil if there was one
}

// reconcile makes everything that is marked dirty as it has to be: first the
// caches, then, in one step, the table, then the status that says so. handled
// is the revision that the definitions were read at.
func (l *Lifecycle) reconcile(ctx context.Context, handled storage.Revision) {
	if len(l.dirty) == 0 {
		l.handled.Publish(handled)
		return
	}
	changes := l.plan()
	clear(l.dirty)
	l.fill(ctx, changes)
	l.failed(l.serve(changes))
	l.handled.Publish(handled)
	l.failed(l.tellAll(ctx, changes))
}

// plan decides about the dirty ones, the oldest first: of two that want a name
// it was there before.
func (l *Lifecycle) plan() []*change {
	names := slices.SortedFunc(maps.Keys(l.dirty), func(a, b string) int {
		x, y := l.entries[a], l.entries[b]
		switch {
		case x == nil || y == nil:
			return 0
		case !x.head.CreationTimestamp.Equal(&y.head.CreationTimestamp):
			return x.head.CreationTimestamp.Compare(y.head.CreationTimestamp.Time)
		}
		return int(x.head.revision - y.head.revision)
	})
	var changes []*change
	for _, name := range names {
		e := l.entries[name]
		if e == nil {
			continue
		}
		c := &change{name: name, entry: e, says: judge(e.head, e.accepted, l.taken(name, e))}
		e.accepted = c.says.names // for the next in line to see
		if c.says.served() && (e.installed == nil || !e.installed.sameAs(e.head, c.says.names)) {
			c.next = define(e.head, c.says.names, e.installed, &l.opts.Webhooks)
		}
		changes = append(changes, c)
	}
	return changes
}

// taken collects the names of a group that are not for the definition to take.
// For one that has all it wants, as after a restart, it need not know.
func (l *Lifecycle) taken(name string, wants *entry) takenNames {
	t := takenNames{resources: sets.New[string](), kinds: sets.New[string]()}
	if sameNames(wants.head.Spec.Names, wants.accepted) {
		return t
	}
	group := wants.head.Spec.Group
	for other, e := range l.entries {
		if other != name && e.head.Spec.Group == group {
			t.take(e.accepted)
		}
	}
	for _, r := range l.opts.Table.All() {
		if r.Group == group && !r.Stored().Mixed {
			t.take(apiextensionsv1.CustomResourceDefinitionNames{
				Plural: r.Plural, Singular: r.Singular, ShortNames: r.ShortNames, Kind: r.Kind, ListKind: r.ListKind,
			})
		}
	}
	t.resources.Delete("")
	t.kinds.Delete("")
	return t
}

// fill gives new definitions their caches and waits until they are filled.
func (l *Lifecycle) fill(ctx context.Context, changes []*change) {
	for _, c := range changes {
		if c.next != nil && c.entry.installed == nil {
			c.cache = l.opts.Caches.Add(c.next.stored)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, fillPatience)
	defer cancel()
	for _, c := range changes {
		if c.cache != nil && c.cache.WaitReady(ctx) != nil {
			l.opts.Logger.Warn("a custom resource is served before its cache is filled", "name", c.name)
		}
	}
}

// serve puts what was planned into the table, all at once, and returns what
// could not be.
func (l *Lifecycle) serve(changes []*change) (failed []*change) {
	if l.publish(changes) == nil {
		return nil
	}
	// One of them is at fault; the others are not to suffer.
	for _, c := range changes {
		if err := l.publish([]*change{c}); err != nil {
			l.opts.Logger.Error("a CustomResourceDefinition cannot be served", "name", c.name, "error", err)
			if c.entry.installed == nil && c.next != nil {
				l.opts.Caches.Remove(c.next.stored)
			}
			failed = append(failed, c)
		}
	}
	return failed
}

// publish changes the table and, if that succeeded, what follows from it.
func (l *Lifecycle) publish(changes []*change) error {
	var remove []schema.GroupVersionResource
	var add []*resource.Resource
	for _, c := range changes {
		if c.next == nil {
			continue
		}
		if c.entry.installed != nil {
			remove = append(remove, endpoints(c.entry.installed)...)
		}
		add = append(add, c.next.resources()...)
	}
	if len(add) > 0 || len(remove) > 0 {
		if err := l.opts.Table.Replace(remove, add...); err != nil {
			return err
		}
	}
	for _, c := range changes {
		l.settleIn(c)
	}
	return nil
}

func endpoints(d *definition) []schema.GroupVersionResource {
	var list []schema.GroupVersionResource
	for _, r := range d.resources() {
		list = append(list, r.GroupVersionResource())
	}
	return list
}

// settleIn makes the change the state of its entry.
func (l *Lifecycle) settleIn(c *change) {
	e := c.entry
	if old := e.installed; c.next != nil {
		e.installed = c.next
		if old != nil {
			if old.convert != c.next.convert {
				old.close()
			}
			if c.next.unsettled() {
				l.settles = l.opts.Now().Add(l.opts.SettleTime)
			}
			l.wake(c.next.stored)
		}
	}
	if e.head.DeletionTimestamp != nil && e.finalize == nil {
		l.startFinalizing(c.name, e)
	}
}

// wake has the watches look at what they show: a version may not be served any
// more.
func (l *Lifecycle) wake(stored *resource.Resource) {
	if cache := l.opts.Caches.Of(stored); cache != nil {
		cache.Wake()
	}
}

// uninstall ends what a definition that is gone has defined.
func (l *Lifecycle) uninstall(name string, e *entry) {
	e.close()
	delete(l.entries, name)
	delete(l.dirty, name)
	delete(l.broken, name)
	if e.installed == nil {
		return
	}
	if err := l.opts.Table.Replace(endpoints(e.installed)); err != nil {
		l.opts.Logger.Error("a custom resource that is not defined any more is still in the table", "name", name, "error", err)
	}
	l.opts.Caches.Remove(e.installed.stored)
	l.setTerminating(e.installed.stored, false)
}

// tellAll writes the statuses that are not right, and returns those that could
// not be written.
func (l *Lifecycle) tellAll(ctx context.Context, changes []*change) (failed []*change) {
	var writers sync.WaitGroup
	var mu sync.Mutex
	slots := make(chan struct{}, statusWriters)
	for _, c := range changes {
		if c.says.saidBy(&c.entry.head.Status) {
			continue
		}
		slots <- struct{}{}
		writers.Go(func() {
			defer func() { <-slots }()
			if !l.tell(ctx, c) {
				mu.Lock()
				defer mu.Unlock()
				failed = append(failed, c)
			}
		})
	}
	writers.Wait()
	return failed
}

// fieldManager owns what the server says in a definition's status.
const fieldManager = "kube-apiserver"

// errOutdated says that the definition is not the one that was judged.
var errOutdated = errors.New("the definition has changed")

// tell writes one status. A definition that was changed or deleted meanwhile
// is looked at again when the cache says so.
func (l *Lifecycle) tell(ctx context.Context, c *change) bool {
	definitions := l.opts.Registry.For(l.opts.Definitions)
	uid := c.entry.head.UID
	_, err := definitions.UpdateStatus(ctx, "", c.name, func(current resource.Object) (resource.Object, error) {
		crd := current.DeepCopyObject().(*apiextensionsv1.CustomResourceDefinition)
		if crd.UID != uid || crd.Generation != c.entry.head.Generation {
			return nil, errOutdated
		}
		c.says.tell(crd, metav1.NewTime(l.opts.Now()))
		return crd, nil
	}, registry.UpdateOptions{Unconditional: true, WriteOptions: registry.WriteOptions{FieldManager: fieldManager}})
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) || errors.Is(err, errOutdated) || ctx.Err() != nil {
		return true
	}
	l.opts.Logger.Warn("the status of a CustomResourceDefinition cannot be written: trying again", "name", c.name, "error", err)
	return false
}
