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

// Table is where resources are served from.
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

// Options is what a Lifecycle works with. All members but those with a default
// are required.
type Options struct {
	Registry *registry.Set
	Table    Table
	Caches   Caches
	// Definitions is the resource customresourcedefinitions, DefinitionCache
	// its cache.
	Definitions     *resource.Resource
	DefinitionCache *watchcache.Cache
	// Store tells the revision that a consistent read must reach.
	Store storage.Reader
	// Webhooks makes the connections to conversion webhooks. Default: services
	// are found by DNS.
	Webhooks Webhooks
	// SettleTime is how long after a change of a schema writes by the one
	// before may still arrive, from this server or another one that has not
	// heard of the change. Default one minute, which is longer than a request
	// may take.
	SettleTime time.Duration
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Logger receives what operators should see. Default: discard.
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
		o.Logger = slog.New(slog.DiscardHandler)
	}
}

// Lifecycle keeps what is served as the definitions in the store want it. It
// acts on what the cache of definitions holds and on nothing else, so that
// several servers on one store agree, and a restarted one is where it was.
type Lifecycle struct {
	opts     Options
	restored chan struct{}
	kick     chan struct{}       // wakes the loop
	handled  watchcache.Progress // definitions up to here are installed

	// What follows belongs to the loop.
	entries map[string]*entry
	dirty   map[string]bool // to be looked at now
	broken  map[string]bool // to be looked at again at retry
	group   *errgroup.Group
	ctx     context.Context // of group
	retry   time.Time       // zero: nothing is broken
	delay   time.Duration
	settles time.Time // when changed schemas have settled; zero: none has changed

	mu          sync.Mutex // guards terminating
	terminating map[*resource.Resource]bool
}

// entry is a definition that is in the store.
type entry struct {
	head      *head
	accepted  apiextensionsv1.CustomResourceDefinitionNames // told or about to be
	installed *definition                                   // nil while it is not served
	finalize  context.CancelFunc
}

// New returns a Lifecycle. It does nothing before Run.
func New(opts Options) *Lifecycle {
	opts.setDefaults()
	return &Lifecycle{
		opts: opts, restored: make(chan struct{}), kick: make(chan struct{}, 1),
		entries: map[string]*entry{}, dirty: map[string]bool{}, broken: map[string]bool{}, terminating: map[*resource.Resource]bool{},
	}
}

// Restored is closed when everything is served that was defined when Run
// began, with its caches filled.
func (l *Lifecycle) Restored() <-chan struct{} { return l.restored }

// Run serves what is defined until ctx ends, and returns nil then. It fails
// only if the cache of definitions is closed.
func (l *Lifecycle) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	l.group, l.ctx = group, ctx
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

// follow installs what there is, and then every change.
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
		// It was so slow that changes were forgotten: begin with what there is.
	}
}

// begin takes in all definitions that there are now, and returns the watch of
// what changes then.
func (l *Lifecycle) begin(ctx context.Context) (*watchcache.Watcher, error) {
	snapshot := l.opts.DefinitionCache.Current()
	watcher, err := l.opts.DefinitionCache.Watch(watchcache.WatchOptions{After: snapshot.Revision()})
	if err != nil {
		return nil, err
	}
	for name, e := range l.entries {
		if _, ok := snapshot.Get(name); !ok {
			l.gone(name, e)
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
		case <-l.kick:
		case <-timer.C:
			l.due()
		case <-ctx.Done():
			return nil
		}
	}
}

// read takes in what has changed.
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
				l.gone(event.Object.Key, e)
			}
		}
	}
}

// gone takes in that a definition is no more.
func (l *Lifecycle) gone(name string, e *entry) {
	l.uninstall(name, e)
	l.reconsider(e.head.Spec.Group)
}

// observe notes one state of a definition.
func (l *Lifecycle) observe(object *watchcache.Object) {
	name := object.Key
	e := l.entries[name]
	h, err := readHead(object)
	if err != nil {
		l.opts.Logger.Error("a CustomResourceDefinition is not served: repair or delete it in the store", "name", name, "error", err)
		return
	}
	if e != nil && e.head.UID != h.UID {
		l.uninstall(name, e)
		e = nil
	}
	if e == nil {
		e = &entry{}
		l.entries[name] = e
	} else if !sameNames(e.head.Status.AcceptedNames, h.Status.AcceptedNames) {
		l.reconsider(h.Spec.Group)
	}
	e.head = h
	if h.Status.AcceptedNames.Plural != "" {
		e.accepted = h.Status.AcceptedNames
	}
	l.dirty[name] = true
}

// reconsider looks at the group's definitions again that did not get their
// names: some may be free now.
func (l *Lifecycle) reconsider(group string) {
	for name, e := range l.entries {
		if e.head.Spec.Group == group && !sameNames(e.head.Spec.Names, e.accepted) {
			l.dirty[name] = true
		}
	}
}

// untilDue is how long the loop may sleep.
func (l *Lifecycle) untilDue() time.Duration {
	wait := time.Hour
	for _, at := range []time.Time{l.retry, l.settles} {
		if !at.IsZero() {
			wait = min(wait, max(0, at.Sub(l.opts.Now())))
		}
	}
	return wait
}

// due does what the time has come for.
func (l *Lifecycle) due() {
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

// failed has changes tried again after a while.
func (l *Lifecycle) failed(changes []*change) {
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
