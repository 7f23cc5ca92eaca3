package customresource

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/storage"
)

// Table holds the resources that are served.
type Table interface {
	// Replace removes and adds in one step, or fails and changes nothing.
	Replace(remove []schema.GroupVersionResource, add ...*resource.Resource) error
	// All returns every resource that is served.
	All() []*resource.Resource
}

// Caches gives stored resources their watch caches.
type Caches interface {
	// Add makes a cache and has it filled.
	Add(stored *resource.Resource) *watchcache.Cache
	// Of returns the cache of a stored resource, or nil.
	Of(stored *resource.Resource) *watchcache.Cache
	// Remove forgets a cache and ends its watches when they have read it all.
	Remove(stored *resource.Resource)
}

// Options are the parts that a Lifecycle works with. All fields without a default
// are required.
type Options struct {
	Registry *registry.Set
	Table    Table
	Caches   Caches
	// Definitions is the resource customresourcedefinitions, DefinitionCache
	// its cache.
	Definitions     *resource.Resource
	DefinitionCache *watchcache.Cache
	// Store returns the revision that a consistent read must reach.
	Store storage.Reader
	// Webhooks makes the connections to conversion webhooks. Default: services
	// are found by DNS.
	Webhooks Webhooks
	// SettleTime is how long after a change of a schema a server (this one, or
	// another that has not seen the change) may still write by the schema before.
	// Default one minute, which is longer than a request may take.
	SettleTime time.Duration
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Logger gets what operators should see. Default: slog.Default().
	Logger *slog.Logger
}

func (o *Options) setDefaults() {
	if o.SettleTime <= 0 {
		o.SettleTime = time.Minute
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
}

// Lifecycle serves what the definitions in the store define. It acts on the cache
// of definitions alone, so that several servers on one store agree, and a
// restarted one serves what it has served before.
type Lifecycle struct {
	opts     Options
	restored chan struct{}
	wakeup   chan struct{}       // wakes the loop
	handled  watchcache.Progress // definitions up to here are installed

	// Only the loop (follow) uses the fields below, up to mu.
	entries map[string]*entry
	dirty   map[string]bool // definitions to reconcile now
	broken  map[string]bool // definitions to reconcile again at retry
	group   *errgroup.Group
	retry   time.Time // zero: nothing is broken
	delay   time.Duration
	settles time.Time // when changed schemas have settled; zero: none has changed

	mu          sync.Mutex // guards terminating
	terminating map[*resource.Resource]bool
}

// entry is a definition that is in the store.
type entry struct {
	crd       *crdMeta
	accepted  apiextensionsv1.CustomResourceDefinitionNames // written to the status, or about to be
	installed *definition                                   // nil while it is not served
	finalize  context.CancelFunc
}

// New returns a Lifecycle. It does nothing before Run.
func New(opts Options) *Lifecycle {
	opts.setDefaults()
	return &Lifecycle{
		opts: opts, restored: make(chan struct{}), wakeup: make(chan struct{}, 1),
		entries: map[string]*entry{}, dirty: map[string]bool{}, broken: map[string]bool{}, terminating: map[*resource.Resource]bool{},
	}
}

// Restored is closed once every definition that existed when Run began is served
// and its cache is filled.
func (l *Lifecycle) Restored() <-chan struct{} { return l.restored }

// Run serves custom resources until ctx ends, and returns nil then. It fails only
// if the cache of definitions is closed.
func (l *Lifecycle) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	l.group = group
	group.Go(func() error {
		err := l.follow(ctx)
		if ctx.Err() != nil {
			return nil
		}
		return err
	})
	err := group.Wait()
	for _, e := range l.entries {
		e.close()
	}
	return err
}

// follow installs every definition that exists, and then every change.
func (l *Lifecycle) follow(ctx context.Context) error {
	if err := l.opts.DefinitionCache.WaitReady(ctx); err != nil {
		return err
	}
	for restored := false; ; {
		watcher, err := l.begin(ctx)
		if err == nil {
			if !restored {
				close(l.restored)
				restored = true
			}
			err = l.followWatch(ctx, watcher)
			watcher.Close()
		}
		if !errors.Is(err, watchcache.ErrExpired) {
			return err
		}
		// The loop was so slow that the cache has evicted changes: list again.
	}
}

// begin takes in all current definitions, and returns a watch of later changes.
func (l *Lifecycle) begin(ctx context.Context) (*watchcache.Watcher, error) {
	snapshot := l.opts.DefinitionCache.Current()
	watcher, err := l.opts.DefinitionCache.Watch(watchcache.WatchOptions{After: snapshot.Revision()})
	if err != nil {
		return nil, err
	}
	for name, e := range l.entries {
		if _, ok := snapshot.Get(name); !ok {
			l.removed(name, e)
		}
	}
	for object := range snapshot.Range("", "") {
		l.observe(object)
	}
	l.reconcile(ctx, snapshot.Revision())
	return watcher, nil
}

// followWatch installs every change until the watch or ctx ends.
func (l *Lifecycle) followWatch(ctx context.Context, watcher *watchcache.Watcher) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		if err := l.read(watcher); err != nil {
			return err
		}
		l.reconcile(ctx, watcher.Reached())
		timer.Reset(l.untilDue())
		select {
		case <-watcher.Ready():
		case <-l.wakeup:
		case <-timer.C:
			l.runDue()
		case <-ctx.Done():
			return nil
		}
	}
}

// read takes in the changes that the watch has.
func (l *Lifecycle) read(watcher *watchcache.Watcher) error {
	var events [64]watchcache.Event
	for {
		n, err := watcher.Read(events[:])
		if err != nil || n == 0 {
			return err
		}
		for _, event := range events[:n] {
			if event.Type != watchcache.Deleted {
				l.observe(event.Object)
			} else if e := l.entries[event.Object.Key]; e != nil {
				l.removed(event.Object.Key, e)
			}
		}
	}
}

// removed takes in that a definition has been deleted.
func (l *Lifecycle) removed(name string, e *entry) {
	l.uninstall(name, e)
	l.requeueGroup(e.crd.Spec.Group)
}

// observe takes in a new state of a definition.
func (l *Lifecycle) observe(object *watchcache.Object) {
	name := object.Key
	e := l.entries[name]
	crd, err := readCRDMeta(object)
	if err != nil {
		l.opts.Logger.Error("a CustomResourceDefinition is not served: repair or delete it in the store", "name", name, "error", err)
		return
	}
	if e != nil && e.crd.UID != crd.UID {
		l.uninstall(name, e)
		e = nil
	}
	if e == nil {
		e = &entry{}
		l.entries[name] = e
	} else if !sameNames(e.crd.Status.AcceptedNames, crd.Status.AcceptedNames) {
		l.requeueGroup(crd.Spec.Group)
	}
	e.crd = crd
	if crd.Status.AcceptedNames.Plural != "" {
		e.accepted = crd.Status.AcceptedNames
	}
	l.dirty[name] = true
}

// requeueGroup has those definitions of the group reconciled that did not get
// their names: some names may be free now.
func (l *Lifecycle) requeueGroup(group string) {
	for name, e := range l.entries {
		if e.crd.Spec.Group == group && !sameNames(e.crd.Spec.Names, e.accepted) {
			l.dirty[name] = true
		}
	}
}

// untilDue returns how long the loop may sleep.
func (l *Lifecycle) untilDue() time.Duration {
	wait := time.Hour
	for _, at := range []time.Time{l.retry, l.settles} {
		if !at.IsZero() {
			wait = min(wait, max(0, at.Sub(l.opts.Now())))
		}
	}
	return wait
}

// runDue retries broken definitions and trusts settled schemas, if it is time.
func (l *Lifecycle) runDue() {
	now := l.opts.Now()
	if !l.retry.IsZero() && !now.Before(l.retry) {
		l.retry = time.Time{}
		maps.Copy(l.dirty, l.broken)
		clear(l.broken)
	}
	if !l.settles.IsZero() && !now.Before(l.settles) {
		l.settles = time.Time{}
		reached := l.opts.DefinitionCache.Current().Revision()
		for _, e := range l.entries {
			if e.installed != nil {
				e.installed.settle(reached)
			}
		}
	}
}

const (
	retryFirst = 100 * time.Millisecond
	retryLast  = 10 * time.Second
)

// retryLater has failed changes tried again after a delay that grows.
func (l *Lifecycle) retryLater(changes []*plannedChange) {
	if len(changes) == 0 {
		if len(l.broken) == 0 {
			l.delay = 0
		}
		return
	}
	for _, c := range changes {
		l.broken[c.name] = true
	}
	l.delay = min(max(2*l.delay, retryFirst), retryLast)
	l.retry = l.opts.Now().Add(l.delay)
}

func (e *entry) close() {
	if e.finalize != nil {
		e.finalize()
		e.finalize = nil
	}
	if e.installed != nil {
		e.installed.close()
	}
}
