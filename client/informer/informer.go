package informer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/cache"
	"github.com/levelwire/levelwire/client/internal/deepequal"
	"github.com/levelwire/levelwire/client/reflector"
	"github.com/levelwire/levelwire/client/scheme"
)

// SharedInformer keeps a cache of the objects of one resource and calls its
// handlers for each change. It is made by a [Factory], or by [New] around any
// source. All methods may be called concurrently.
type SharedInformer[T client.Object] struct {
	name             string
	log              *slog.Logger
	namespaceWatches []*namespaceWatch[T] // one, or one for each namespace of several; constant
	scheme           *scheme.Scheme       // nil: the default; constant
	opts             reflector.Options
	indexer          store[T] // constant after the start
	fifo             *cache.DeltaFIFO[T]
	made             madeBy // constant
	noInterning      bool   // see Options.NoInterning; constant

	// mu keeps the state of the Indexer and what was pushed to the listeners
	// consistent: the loop holds it while it applies the deltas of an object. It
	// is never held while a handler runs. Lock order: mu, then a listener's, then
	// the Indexer's and the DeltaFIFO's.
	mu                 sync.Mutex
	phase              phase
	transform          func(T) (T, error)
	transformIsSafe    bool // it cannot fail: no copy is needed
	listeners          []*listener[T]
	failedListeners    []*listener[T]         // those that MaxUnmergedEvents ended, for Stats; at most maxFailedHandlers
	resyncEvery        time.Duration          // of handlers that do not say; constant
	handlers           sync.WaitGroup         // goroutines that call handlers
	disk               *disk[T]               // nil: nothing is kept on disk; constant after the start
	consistencyChecker *consistencyChecker[T] // nil: nothing is compared; constant after the start
	mutations          *mutationDetector[T]   // nil: nothing is compared; constant after the start
	failed             error                  // what Err says

	// restoredAsOf is when the state that was read from disk was current; zero if
	// none was. confirmed: a list is complete, or a watch from the restored
	// state has shown that the server has its version; resuming: neither yet.
	restoredAsOf        time.Time
	confirmed, resuming bool

	// asking has an element while the server is asked for progress, see CatchUp; it
	// guards askAgain, before which it is not asked.
	asking   chan struct{}
	askAgain time.Time

	waits    waits
	moments  moments
	progress progress

	synced, done chan struct{}

	events, unindexed, untransformed, failedHandlers, mutated atomic.Int64
	failures                                                  failures // of the transform and of index functions
}

type phase int

const (
	idle phase = iota
	running
	stopped
)

// New returns an informer that has not started, around any source of objects.
// Most programs use [For] with a [Factory] instead. opts.Name is replaced by name;
// ResumeFrom is not possible. What is wrong with opts is what Err says.
func New[T client.Object](name string, source reflector.ListerWatcher[T], opts reflector.Options) *SharedInformer[T] {
	return newInformer(name, []origin[T]{{source: source}}, opts, 0)
}

// origin is where the objects of a namespace come from; "": all objects.
type origin[T client.Object] struct {
	namespace string
	source    reflector.ListerWatcher[T]
	// plainSource is the same without client.Resource.Interning, for a transform
	// that changes objects in place and for Options.NoInterning; nil: source does not intern.
	plainSource reflector.ListerWatcher[T]
}

func newInformer[T client.Object](name string, origins []origin[T], opts reflector.Options, resync time.Duration) *SharedInformer[T] {
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	opts.Name = name
	indexer := cache.NewNamespaceIndexer[T]()
	i := &SharedInformer[T]{
		name: name, log: opts.Logger.With("informer", name), opts: opts,
		indexer: indexer, resyncEvery: resync,
		synced: make(chan struct{}), done: make(chan struct{}), asking: make(chan struct{}, 1),
		moments: moments{begun: time.Now()},
	}
	i.invalidBecause(validateReflector(opts))
	var namespaces []string
	for _, from := range origins {
		if from.source == nil {
			i.invalidBecause(errors.New("there is no source of objects"))
		}
		i.namespaceWatches = append(i.namespaceWatches, &namespaceWatch[T]{informer: i, namespace: from.namespace, source: from.source, plainSource: from.plainSource})
		if from.namespace != "" {
			namespaces = append(namespaces, from.namespace)
		}
	}
	i.detectMutations(MutationDetection{Interval: mutationsByTag})
	i.fifo = cache.NewDeltaFIFO(cache.FIFOOptions[T]{
		Known: known[T]{i}, Namespaces: namespaces, OnSynced: i.declareSynced, OnIdle: i.settled, OnDropped: i.dropped,
	})
	return i
}

// Name says which resource and selection the informer watches.
func (i *SharedInformer[T]) Name() string { return i.name }

// AddIndexers adds indexes, before or after the start. It fails if a name is
// taken, and then adds none.
func (i *SharedInformer[T]) AddIndexers(indexers cache.Indexers[T]) error {
	return i.indexer.AddIndexers(indexers)
}

// SetTransform has each object changed, or replaced, before it is stored and
// handlers see it: to drop fields that the program does not read, for instance.
// It must be called before the start. An object that cannot be transformed, because
// the transform returns an error, nil or an object of another name or without one, or
// panics, is stored as it came from the server, whatever the transform had written to it
// before: it gets a copy. Stats.Untransformed counts them; the log has the first failure of an
// object, the tenth, and so on.
//
// Objects then are not interned, and take about twice the memory: what drops only
// metadata.managedFields is cheaper as Options.Transform: StripManagedFields, for which
// nothing is copied either.
func (i *SharedInformer[T]) SetTransform(transform func(T) (T, error)) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.phase != idle {
		return fmt.Errorf("informer %s: a transform must be set before the start", i.name)
	}
	if transform == nil {
		return fmt.Errorf("informer %s: the transform is nil", i.name)
	}
	i.transform, i.transformIsSafe = transform, false
	i.disableInterning()
	return nil
}

// disableInterning has the sources decode objects that share no parts. It needs mu, before
// the start.
func (i *SharedInformer[T]) disableInterning() {
	for _, p := range i.namespaceWatches {
		if p.plainSource != nil {
			p.source = p.plainSource
		}
	}
}

// Lister reads the cache.
func (i *SharedInformer[T]) Lister() Lister[T] { return Lister[T]{indexer: i.indexer} }

// Synced is closed when the cache has held a complete list for the first time.
// Handlers may not have been called for all of it yet: see Registration.Synced.
// It stays open if the informer is not started, or stops before: Done is closed
// then, and Factory.WaitForSync waits for both.
func (i *SharedInformer[T]) Synced() <-chan struct{} { return i.synced }

// HasSynced reports whether Synced is closed.
func (i *SharedInformer[T]) HasSynced() bool {
	select {
	case <-i.synced:
		return true
	default:
		return false
	}
}

// Done is closed when the informer has stopped and no handler call runs.
func (i *SharedInformer[T]) Done() <-chan struct{} { return i.done }

// LastSyncResourceVersion is the version up to which the cache surely
// shows every change; "" before the first list. Bookmarks move it too.
func (i *SharedInformer[T]) LastSyncResourceVersion() string { return i.fifo.Processed() }

// NewestResourceVersion is the newest version of a change that the cache shows, or is about to; "" if
// there was none. It may be newer than LastSyncResourceVersion, because earlier changes of other objects are on their way, or
// older, after a bookmark. The cache shows no change that is after both.
func (i *SharedInformer[T]) NewestResourceVersion() string { return i.fifo.Shown() }

// Stats is how an informer stands and what it did so far.
type Stats struct {
	Objects          int   // in the cache
	Queued           int   // objects with changes that the cache does not show yet
	Events           int64 // changes pushed to the handlers' queues
	Unindexed        int64 // states for which an index function failed
	Untransformed    int64 // states for which the transform failed, and that are stored as they came
	Disk             DiskStats
	ConsistencyCheck ConsistencyCheckStats
	Reflector        reflector.Stats
	Indexes          []cache.IndexSize
	// Handlers are those that are called, and after them the last that were
	// ended by MaxUnmergedEvents and not removed since: HandlerStats.Err.
	Handlers []HandlerStats
	// FailedHandlers counts handlers that were ended by MaxUnmergedEvents.
	FailedHandlers int64
	// Mutations counts objects of the cache that were found to be changed by
	// handlers or readers: see MutationDetection.
	Mutations int64
}

// Stats returns the counters and gauges of this moment.
func (i *SharedInformer[T]) Stats() Stats {
	s := Stats{
		Objects: i.indexer.Len(), Indexes: i.indexer.IndexSizes(),
		Events: i.events.Load(), Unindexed: i.unindexed.Load(), Untransformed: i.untransformed.Load(),
		FailedHandlers: i.failedHandlers.Load(), Mutations: i.mutated.Load(),
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, l := range slices.Concat(i.listeners, i.failedListeners) {
		s.Handlers = append(s.Handlers, l.stats())
	}
	s.Reflector = i.reflectorStats()
	s.Queued = i.fifo.Pending() // after them: what a list has brought that they know of is in it
	if i.disk != nil {
		s.Disk = i.disk.stats()
	}
	if i.consistencyChecker != nil {
		s.ConsistencyCheck = i.consistencyChecker.stats()
	}
	return s
}

// Run keeps the cache up to date until ctx ends, and then waits for the handler
// calls that are running. It may be called once; a Factory does it.
func (i *SharedInformer[T]) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := i.start(); err != nil {
		return err
	}
	if err := i.Err(); err != nil {
		i.stop(nil)
		return err
	}
	if err := i.equip(i.restore(ctx)); err != nil {
		i.stop(err)
		return i.Err()
	}
	var background sync.WaitGroup
	background.Go(func() { i.loop(ctx) })
	i.keepSaved(ctx, &background)
	if i.mutations != nil {
		background.Go(func() { i.mutations.run(ctx) })
	}
	if i.consistencyChecker != nil {
		background.Go(func() { i.consistencyChecker.run(ctx) })
	}
	err := i.follow(ctx)
	cancel()
	background.Wait()
	i.saveLast(ctx)
	i.stop(err)
	return i.Err()
}

func (i *SharedInformer[T]) start() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch i.phase {
	case running:
		return fmt.Errorf("informer %s runs already", i.name)
	case stopped:
		return i.stoppedErrLocked()
	}
	i.phase = running
	for _, l := range i.listeners {
		i.compareCalls(l)
		i.scheduleResync(l)
	}
	return nil
}

// hasStarted reports whether Run was called.
func (i *SharedInformer[T]) hasStarted() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.phase != idle
}

// stop ends everything; err is why, if that is not the context.
func (i *SharedInformer[T]) stop(err error) {
	i.fifo.Close()
	i.mu.Lock()
	i.phase = stopped
	i.invalidBecause(err)
	for _, l := range i.listeners {
		l.end()
		if l.timer != nil {
			l.timer.Stop()
		}
	}
	i.mu.Unlock()
	// Nothing is pushed any more, so no goroutine is started any more.
	i.handlers.Wait()
	close(i.done)
}

// loop moves deltas into the Indexer and to the listeners.
func (i *SharedInformer[T]) loop(ctx context.Context) {
	for i.applyNext(ctx) == nil {
		i.advanced()
	}
}

// applyNext waits for the next object with changes, and applies them.
func (i *SharedInformer[T]) applyNext(ctx context.Context) error {
	return i.fifo.Pop(ctx, func(item cache.Item[T]) error {
		i.apply(item)
		return nil
	})
}

// settled is called when everything queued has been applied.
func (i *SharedInformer[T]) settled() {
	i.moments.settled()
	i.advanced()
	if i.disk != nil {
		i.disk.settled()
	}
}

// declareSynced closes Synced and pushes the listeners the marker that ends the
// first list. It is called when that list has been applied.
func (i *SharedInformer[T]) declareSynced() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.declareSyncedLocked()
}

// declareSyncedLocked needs mu.
func (i *SharedInformer[T]) declareSyncedLocked() {
	i.confirmed = true
	if i.HasSynced() {
		return // the first list after a watch has resumed from a restored state
	}
	close(i.synced)
	i.log.Info("synced", "objects", i.indexer.Len(), "resourceVersion", i.fifo.Processed())
	i.notify("", notification[T]{kind: marker})
}

// apply moves one object's deltas.
func (i *SharedInformer[T]) apply(item cache.Item[T]) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if item.Compressed {
		i.failUnmergedHandlers()
	}
	for n := range item.Deltas {
		d := &item.Deltas[n]
		if d.Type != cache.Deleted {
			i.store(item, d)
		} else if _, existed := i.indexer.Remove(item.Key); existed {
			i.mutations.removed(item.Key, d.Object)
			i.failures.forget(item.Key)
			i.distribute(item.Key, notification[T]{kind: deleted, obj: d.Object, finalStateUnknown: d.FinalStateUnknown})
		}
	}
}

func (i *SharedInformer[T]) store(item cache.Item[T], d *cache.Delta[T]) {
	i.mutations.stored(item.Key, d.Object)
	old, existed, err := i.indexer.Swap(item.Key, d.Object)
	if err != nil {
		i.unindexed.Add(1)
		i.failures.warn(i.log, "object is not in all indexes", item.Key, err)
	}
	switch {
	case !existed:
		i.distribute(item.Key, notification[T]{kind: added, obj: d.Object, initial: item.Initial && !i.HasSynced()})
	case old.GetUID() != d.Object.GetUID():
		// The deletion of the old object was missed.
		i.distribute(item.Key, notification[T]{kind: deleted, obj: old, finalStateUnknown: true})
		i.distribute(item.Key, notification[T]{kind: added, obj: d.Object})
	case unchanged(old, d.Object):
		// A list, or an event once more, that shows what was known: nothing has happened.
	default:
		i.distribute(item.Key, notification[T]{kind: updated, old: old, obj: d.Object})
	}
}

// unchanged reports whether two states of an object are one. Those of servers without
// resourceVersions are compared as a whole.
func unchanged[T client.Object](old, obj T) bool {
	if version := obj.GetResourceVersion(); version != "" {
		return version == old.GetResourceVersion()
	}
	return old.GetResourceVersion() == "" && deepequal.Semantic(old, obj)
}

func (i *SharedInformer[T]) distribute(key string, n notification[T]) {
	i.events.Add(1)
	i.notify(key, n)
}

// notify pushes to all listeners and removes those that have ended.
func (i *SharedInformer[T]) notify(key string, n notification[T]) {
	for at := 0; at < len(i.listeners); {
		if l := i.listeners[at]; !l.push(key, n) {
			i.dropFailed(l)
			continue
		}
		at++
	}
}

// failUnmergedHandlers fails the handlers with MaxUnmergedEvents. The loop was
// so far behind that the DeltaFIFO merged states before they reached a
// listener.
func (i *SharedInformer[T]) failUnmergedHandlers() {
	for _, l := range slices.Clone(i.listeners) {
		if l.opts.MaxUnmergedEvents > 0 {
			l.fail(ErrOverflow)
			i.dropFailed(l)
		}
	}
}

// ReflectorStats says how the cache was kept up to date: lists by cause,
// resumes by reason.
func (i *SharedInformer[T]) ReflectorStats() reflector.Stats { return i.Stats().Reflector }
