package customresource

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
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
	// fillTimeout is how long the first fill of a cache may take before the
	// resource is served anyway; reads of it then answer that clients must wait.
	fillTimeout   = 10 * time.Second
	statusWriters = 8
)

func sameNames(a, b apiextensionsv1.CustomResourceDefinitionNames) bool {
	return equality.Semantic.DeepEqual(a, b)
}

// plannedChange is what the loop is about to do with one definition.
type plannedChange struct {
	name   string
	entry  *entry
	status desiredStatus
	next   *definition       // nil: the definition is served as it should be
	cache  *watchcache.Cache // to be filled first; nil if there was one
}

// reconcile serves the dirty definitions as they are now: first it adds caches,
// then it changes the table in one step, then it updates statuses. handled is
// the revision at which the definitions were read.
func (l *Lifecycle) reconcile(ctx context.Context, handled storage.Revision) {
	if len(l.dirty) == 0 {
		l.handled.Publish(handled)
		return
	}
	changes := l.plan()
	clear(l.dirty)
	l.fill(ctx, changes)
	l.retryLater(l.serve(ctx, changes))
	l.handled.Publish(handled)
	l.retryLater(l.updateStatuses(ctx, changes))
}

// plan decides about the dirty definitions, the oldest first: of two that want the
// same name, the older one gets it.
func (l *Lifecycle) plan() []*plannedChange {
	names := slices.SortedFunc(maps.Keys(l.dirty), func(a, b string) int {
		x, y := l.entries[a], l.entries[b]
		switch {
		case x == nil || y == nil:
			return 0
		case !x.crd.CreationTimestamp.Equal(&y.crd.CreationTimestamp):
			return x.crd.CreationTimestamp.Compare(y.crd.CreationTimestamp.Time)
		}
		return int(x.crd.revision - y.crd.revision)
	})
	var changes []*plannedChange
	for _, name := range names {
		e := l.entries[name]
		if e == nil {
			continue
		}
		c := &plannedChange{name: name, entry: e, status: decideStatus(e.crd, e.accepted, l.taken(name, e))}
		e.accepted = c.status.names // the next definitions see them as taken
		if c.status.served() && (e.installed == nil || !e.installed.serves(e.crd, c.status.names)) {
			c.next = define(e.crd, c.status.names, e.installed, &l.opts.Webhooks)
		}
		changes = append(changes, c)
	}
	return changes
}

// taken returns the names of a group that the definition cannot get. It returns
// none for a definition that has all its names, as after a restart.
func (l *Lifecycle) taken(name string, wants *entry) takenNames {
	t := takenNames{resources: sets.New[string](), kinds: sets.New[string]()}
	if sameNames(wants.crd.Spec.Names, wants.accepted) {
		return t
	}
	group := wants.crd.Spec.Group
	for other, e := range l.entries {
		if other != name && e.crd.Spec.Group == group {
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
func (l *Lifecycle) fill(ctx context.Context, changes []*plannedChange) {
	for _, c := range changes {
		if c.next != nil && c.entry.installed == nil {
			c.cache = l.opts.Caches.Add(c.next.stored)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, fillTimeout)
	defer cancel()
	for _, c := range changes {
		if c.cache != nil && c.cache.WaitReady(ctx) != nil {
			l.opts.Logger.Warn("a custom resource is served before its cache is filled", "name", c.name)
		}
	}
}

// serve makes the planned changes to the table, all at once, and returns those
// that could not be made.
func (l *Lifecycle) serve(ctx context.Context, changes []*plannedChange) (failed []*plannedChange) {
	if l.publish(ctx, changes) == nil {
		return nil
	}
	// One of them is at fault: make the others one by one.
	for _, c := range changes {
		if err := l.publish(ctx, []*plannedChange{c}); err != nil {
			l.opts.Logger.Error("a CustomResourceDefinition cannot be served", "name", c.name, "error", err)
			if c.entry.installed == nil && c.next != nil {
				l.opts.Caches.Remove(c.next.stored)
			}
			failed = append(failed, c)
		}
	}
	return failed
}

// publish changes the table and, if that succeeded, activates the changes.
func (l *Lifecycle) publish(ctx context.Context, changes []*plannedChange) error {
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
		l.activate(ctx, c)
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

// activate makes the change the state of its entry. ctx is the loop's.
func (l *Lifecycle) activate(ctx context.Context, c *plannedChange) {
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
	if e.crd.DeletionTimestamp != nil && e.finalize == nil {
		l.startFinalizing(ctx, c.name, e)
	}
}

// wake wakes the watches of a resource, so that they follow the new definition or
// end if their version is not served any more.
func (l *Lifecycle) wake(stored *resource.Resource) {
	if cache := l.opts.Caches.Of(stored); cache != nil {
		cache.Wake()
	}
}

// uninstall stops serving the resources of a deleted definition.
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
	l.opts.Registry.Forget(e.installed.stored)
	l.setTerminating(e.installed.stored, false)
}

// updateStatuses writes the statuses that are not right, and returns the changes
// whose status could not be written.
func (l *Lifecycle) updateStatuses(ctx context.Context, changes []*plannedChange) (failed []*plannedChange) {
	var writers sync.WaitGroup
	var mu sync.Mutex
	slots := make(chan struct{}, statusWriters)
	for _, c := range changes {
		if c.status.isWrittenIn(&c.entry.crd.Status) {
			continue
		}
		slots <- struct{}{}
		writers.Go(func() {
			defer func() { <-slots }()
			if !l.updateStatus(ctx, c) {
				mu.Lock()
				defer mu.Unlock()
				failed = append(failed, c)
			}
		})
	}
	writers.Wait()
	return failed
}

// fieldManager owns the status of definitions.
const fieldManager = "kube-apiserver"

// errOutdated says that the definition has changed since its status was decided.
var errOutdated = errors.New("the definition has changed")

// updateStatus writes one status, into the very state that it was decided for: annotations and the
// status, which are parts of that, have no generation. A definition that was changed or deleted
// meanwhile is reconciled again when the cache has the change.
func (l *Lifecycle) updateStatus(ctx context.Context, c *plannedChange) bool {
	definitions := l.opts.Registry.For(l.opts.Definitions)
	version := strconv.FormatInt(int64(c.entry.crd.revision), 10)
	_, err := definitions.UpdateStatus(ctx, "", c.name, func(current resource.Object) (resource.Object, error) {
		crd := current.DeepCopyObject().(*apiextensionsv1.CustomResourceDefinition)
		if crd.ResourceVersion != version {
			return nil, errOutdated
		}
		c.status.writeTo(crd, metav1.NewTime(l.opts.Now()))
		return crd, nil
	}, registry.UpdateOptions{Unconditional: true, WriteOptions: registry.WriteOptions{FieldManager: fieldManager}})
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) || errors.Is(err, errOutdated) || ctx.Err() != nil {
		return true
	}
	l.opts.Logger.Warn("the status of a CustomResourceDefinition cannot be written: trying again", "name", c.name, "error", err)
	return false
}
