package informer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/levelwire/levelwire/client/cache"
	"github.com/levelwire/levelwire/client/reflector"
	"github.com/levelwire/levelwire/client/rest"
)

// SharedInformer keeps a copy of the objects of one resource and tells its
// handlers what changes. It is made by a [Factory], or by [New] around any
// source. All methods may be called concurrently.
type SharedInformer[T rest.Object] struct {
	name    string
	log     *slog.Logger
	source  reflector.ListerWatcher[T]
	opts    reflector.Options
	indexer *cache.Indexer[T]
	fifo    *cache.DeltaFIFO[T]

	// mu makes a state of the Indexer and what the listeners have been told
	// belong together: the loop holds it while it applies the deltas of an
	// object. It is never held while a handler runs. Lock order: mu, then a
	// listener's, then the Indexer's and the DeltaFIFO's.
	mu        sync.Mutex
	phase     phase
	transform func(T) (T, error)
	listeners []*listener[T]
	reflector *reflector.Reflector[T]
	ctx       context.Context // of run; nil before
	handlers  sync.WaitGroup

	synced chan struct{}
}

type phase int

const (
	idle phase = iota
	running
	stopped
)

// New returns an informer that has not started, around any source of objects.
// Most programs use [For] with a [Factory] instead.
func New[T rest.Object](name string, source reflector.ListerWatcher[T], opts reflector.Options) *SharedInformer[T] {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	opts.Name = name
	indexer := cache.NewIndexer(nil, cache.Indexers[T]{cache.NamespaceIndex: cache.MetaNamespaceIndex[T]})
	i := &SharedInformer[T]{
		name: name, log: opts.Logger.With("informer", name), source: source, opts: opts,
		indexer: indexer,
		synced:  make(chan struct{}),
	}
	i.fifo = cache.NewDeltaFIFO(cache.FIFOOptions[T]{Known: indexer, OnSynced: i.declareSynced})
	return i
}

// Name says what is looked at.
func (i *SharedInformer[T]) Name() string { return i.name }

// AddIndexers adds indexes, before or after the start. It fails if a name is
// taken, and then adds none.
func (i *SharedInformer[T]) AddIndexers(indexers cache.Indexers[T]) error {
	return i.indexer.AddIndexers(indexers)
}

// SetTransform has each object changed, or replaced, before it is stored and
// handlers see it: to drop fields that nobody reads, for instance. It must be
// called before the start. An object that cannot be transformed is stored as
// it is, and logged.
func (i *SharedInformer[T]) SetTransform(transform func(T) (T, error)) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.phase != idle {
		return fmt.Errorf("informer %s: a transform must be set before the start", i.name)
	}
	i.transform = transform
	return nil
}

// Lister reads the local copy.
func (i *SharedInformer[T]) Lister() Lister[T] { return Lister[T]{indexer: i.indexer} }

// Synced is closed when the local copy has held a complete list for the first
// time. Handlers may still be being told of it: they have their own.
func (i *SharedInformer[T]) Synced() <-chan struct{} { return i.synced }

// HasSynced tells whether Synced is closed.
func (i *SharedInformer[T]) HasSynced() bool {
	select {
	case <-i.synced:
		return true
	default:
		return false
	}
}

// LastSyncResourceVersion is the version that has surely reached the queue in
// front of the local copy; "" before the first list.
func (i *SharedInformer[T]) LastSyncResourceVersion() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.reflector == nil {
		return ""
	}
	return i.reflector.LastSyncResourceVersion()
}

// ReflectorStats tells how the copy was kept in step: lists by cause, resumes
// by reason.
func (i *SharedInformer[T]) ReflectorStats() reflector.Stats {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.reflector == nil {
		return reflector.Stats{}
	}
	return i.reflector.Stats()
}

// Run keeps the copy in step until ctx ends, and then waits for the handler
// calls that are running. It may be called once; a Factory does it.
func (i *SharedInformer[T]) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := i.start(ctx); err != nil {
		return err
	}
	var loop sync.WaitGroup
	loop.Go(func() { i.loop(ctx) })
	err := i.reflector.Run(ctx)
	cancel()
	loop.Wait()
	i.stop()
	return err
}

func (i *SharedInformer[T]) start(ctx context.Context) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.phase != idle {
		return fmt.Errorf("informer %s: %w, or runs already", i.name, ErrStopped)
	}
	r, err := reflector.New(i.source, reflector.Store[T](sink[T]{i.fifo, i.transform, i.log}), i.opts)
	if err != nil {
		return fmt.Errorf("informer %s: %w", i.name, err)
	}
	i.phase, i.ctx, i.reflector = running, ctx, r
	for _, l := range i.listeners {
		i.launch(l)
	}
	return nil
}

// launch starts a listener's goroutine and its resyncs. The lock is held.
func (i *SharedInformer[T]) launch(l *listener[T]) {
	if l.stopped() {
		return
	}
	l.started.Store(true)
	ctx := i.ctx
	i.handlers.Go(func() { l.run(ctx) })
	i.scheduleResync(l)
}

func (i *SharedInformer[T]) stop() {
	i.mu.Lock()
	i.phase = stopped
	for _, l := range i.listeners {
		if l.timer != nil {
			l.timer.Stop()
		}
	}
	i.mu.Unlock()
	i.fifo.Close()
	i.handlers.Wait()
}

// loop moves deltas into the Indexer and to the listeners.
func (i *SharedInformer[T]) loop(ctx context.Context) {
	for {
		err := i.fifo.Pop(ctx, func(item cache.Item[T]) error {
			i.apply(item)
			return nil
		})
		if err != nil {
			return
		}
	}
}

// declareSynced closes Synced and tells the listeners where the first list
// ends, once that has been applied.
func (i *SharedInformer[T]) declareSynced() {
	i.mu.Lock()
	defer i.mu.Unlock()
	close(i.synced)
	for _, l := range i.listeners {
		l.push("", notification[T]{kind: mark})
	}
}

// apply moves one object's deltas.
func (i *SharedInformer[T]) apply(item cache.Item[T]) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for n := range item.Deltas {
		d := &item.Deltas[n]
		if d.Type == cache.Deleted {
			if _, existed := i.indexer.Remove(item.Key); existed {
				i.distribute(item.Key, notification[T]{kind: deleted, obj: d.Object, unknown: d.FinalStateUnknown})
			}
			continue
		}
		i.store(item, d)
	}
}

func (i *SharedInformer[T]) store(item cache.Item[T], d *cache.Delta[T]) {
	old, existed, err := i.indexer.Swap(item.Key, d.Object)
	if err != nil {
		i.log.Warn("object is not in all indexes", "key", item.Key, "error", err)
	}
	switch {
	case !existed:
		i.distribute(item.Key, notification[T]{kind: added, obj: d.Object, initial: item.Initial})
	case d.Type == cache.Replaced && sameState(old, d.Object):
		// A new list that shows what was known: nothing has happened.
	default:
		i.distribute(item.Key, notification[T]{kind: updated, old: old, obj: d.Object})
	}
}

func sameState[T rest.Object](a, b T) bool {
	return a.GetUID() == b.GetUID() && a.GetResourceVersion() == b.GetResourceVersion()
}

func (i *SharedInformer[T]) distribute(key string, n notification[T]) {
	for _, l := range i.listeners {
		l.push(key, n)
	}
}

// sink is where the reflector writes: the DeltaFIFO, behind the transform.
type sink[T rest.Object] struct {
	fifo      *cache.DeltaFIFO[T]
	transform func(T) (T, error)
	log       *slog.Logger
}

func (s sink[T]) transformed(obj T) T {
	if s.transform == nil {
		return obj
	}
	changed, err := s.transform(obj)
	if err != nil {
		s.log.Warn("object is stored as it came", "namespace", obj.GetNamespace(), "name", obj.GetName(), "error", err)
		return obj
	}
	return changed
}

func (s sink[T]) Add(obj T) error    { return ended(s.fifo.Add(s.transformed(obj))) }
func (s sink[T]) Update(obj T) error { return ended(s.fifo.Update(s.transformed(obj))) }
func (s sink[T]) Delete(obj T) error { return ended(s.fifo.Delete(s.transformed(obj))) }

func (s sink[T]) Replace(list []T, version string) error {
	for n := range list {
		list[n] = s.transformed(list[n])
	}
	return ended(s.fifo.Replace(list, version))
}

// ended forgives a write after the end: nobody is left to miss it.
func ended(err error) error {
	if errors.Is(err, cache.ErrClosed) {
		return nil
	}
	return err
}
