package informer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/cache"
	"github.com/levelwire/levelwire/client/reflector"
)

// namespaceWatch is one list and watch that feeds the cache: of all objects, or
// of one namespace of several.
type namespaceWatch[T client.Object] struct {
	informer    *SharedInformer[T]
	namespace   string // "": everything
	source      reflector.ListerWatcher[T]
	plainSource reflector.ListerWatcher[T] // see origin
	reflector   *reflector.Reflector[T]    // set before the start ends, under mu
	version     string                     // resourceVersion that it has reached; guarded by progress.mu
	dropped     func(T)                    // tells the reflector what its list lacks; set when that is made
	// frozen is when the server had last spoken before the list that is now
	// under way; nil: there is none. Zero: it never had.
	frozen atomic.Pointer[time.Time]
	// refused is the last failure, if the server has refused the list; see WaitForFirstList.
	refused atomic.Pointer[refusal]
}

// listBegins is called when a list begins: until it is complete, answers of the
// server do not make the view newer.
func (p *namespaceWatch[T]) listBegins() {
	contact := p.reflector.Stats().LastContact
	p.frozen.CompareAndSwap(nil, &contact)
}

// listing reports whether a list is under way, and when the server had last spoken
// before it.
func (p *namespaceWatch[T]) listing() (before time.Time, yes bool) {
	if at := p.frozen.Load(); at != nil {
		return *at, true
	}
	return time.Time{}, false
}

// progress joins the resourceVersions that the namespaceWatches have reached.
// Its mu is taken before the DeltaFIFO's.
type progress struct{ mu sync.Mutex }

// reached notes what a namespaceWatch has reached, and that the informer has reached the
// least of all. It is called from the namespaceWatch's goroutine.
func (p *namespaceWatch[T]) reached(version string) {
	if len(p.informer.namespaceWatches) == 1 {
		p.informer.fifo.Reached(version)
	} else {
		version = p.joined(version)
	}
	p.informer.advanced()
	if onProgress := p.informer.opts.OnProgress; onProgress != nil {
		onProgress(version)
	}
}

// resourceVersion returns what the namespaceWatch of one of several namespaces has
// reached: changes up to it are queued.
func (p *namespaceWatch[T]) resourceVersion() string {
	p.informer.progress.mu.Lock()
	defer p.informer.progress.mu.Unlock()
	return p.version
}

func (p *namespaceWatch[T]) joined(version string) string {
	p.informer.progress.mu.Lock()
	defer p.informer.progress.mu.Unlock()
	p.version = version
	for _, other := range p.informer.namespaceWatches {
		version = least(version, other.version)
	}
	p.informer.fifo.Reached(version)
	return version
}

// restored notes that the cache shows a version that was read from disk.
func (p *namespaceWatch[T]) restored(version string) {
	p.informer.progress.mu.Lock()
	defer p.informer.progress.mu.Unlock()
	p.version = version
}

// least is the earlier of two versions; "" if one is none, or they cannot be
// compared.
func least(a, b string) string {
	order, err := resourceversion.CompareResourceVersion(a, b)
	switch {
	case err != nil:
		return ""
	case order < 0:
		return a
	default:
		return b
	}
}

// latest is the later of two versions; b if they cannot be compared.
func latest(a, b string) string {
	if order, err := resourceversion.CompareResourceVersion(a, b); err == nil && order > 0 {
		return a
	}
	return b
}

// equip makes the reflectors. They resume from a resourceVersion that the cache
// shows already; "": they list.
func (i *SharedInformer[T]) equip(version string) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, p := range i.namespaceWatches {
		opts := i.opts
		if version != "" {
			opts.ResumeFrom = version
			p.restored(version)
		}
		opts.OnProgress, opts.OnError = p.reached, p.noteFailure
		if p.namespace != "" {
			opts.Name += " in " + p.namespace
		}
		r, err := reflector.New(reflector.ListerWatcher[T](observedSource[T]{p}), reflector.Store[T](sink[T]{p}), opts)
		if err != nil {
			return err
		}
		p.reflector = r
	}
	i.resuming = version != ""
	return nil
}

// follow runs the reflectors until ctx ends, or one of them fails.
func (i *SharedInformer[T]) follow(ctx context.Context) error {
	if len(i.namespaceWatches) == 1 {
		return i.namespaceWatches[0].reflector.Run(ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all sync.WaitGroup
	failed := make([]error, len(i.namespaceWatches))
	for n, p := range i.namespaceWatches {
		all.Go(func() {
			defer cancel()
			failed[n] = p.reflector.Run(ctx)
		})
	}
	all.Wait()
	return errors.Join(failed...)
}

// reflectorStats needs mu.
func (i *SharedInformer[T]) reflectorStats() (s reflector.Stats) {
	for n, p := range i.namespaceWatches {
		switch {
		case p.reflector == nil:
			return reflector.Stats{}
		case n == 0:
			s = p.reflector.Stats()
		default:
			s = s.Plus(p.reflector.Stats())
		}
	}
	return s
}

// listing is that of the namespaceWatch whose list began first.
func (i *SharedInformer[T]) listing() (before time.Time, yes bool) {
	for _, p := range i.namespaceWatches {
		if at, listing := p.listing(); listing {
			if !yes || at.Before(before) {
				before = at
			}
			yes = true
		}
	}
	return before, yes
}

// sink is where a namespaceWatch's reflector writes: the DeltaFIFO, behind the transform.
type sink[T client.Object] struct{ namespaceWatch *namespaceWatch[T] }

func (s sink[T]) Add(obj T) error    { return s.write(obj, s.namespaceWatch.informer.fifo.Add) }
func (s sink[T]) Update(obj T) error { return s.write(obj, s.namespaceWatch.informer.fifo.Update) }
func (s sink[T]) Delete(obj T) error { return s.write(obj, s.namespaceWatch.informer.fifo.Delete) }

// Get implements reflector.Getter.
func (s sink[T]) Get(obj T) (T, bool) { return s.namespaceWatch.informer.fifo.Get(obj) }

// WriteIf implements reflector.ConditionalWriter: a consistency check corrects what the cache holds.
func (s sink[T]) WriteIf(ev client.WatchEvent[T], may func(held T, exists bool) bool) error {
	i := s.namespaceWatch.informer
	queue := i.fifo.Update
	switch ev.Type {
	case apiwatch.Added:
		queue = i.fifo.Add
	case apiwatch.Deleted:
		queue = i.fifo.Delete
	}
	obj := i.transformed(ev.Object) // not while a lock is held
	return ended(i.consistencyChecker.notingIf(func() bool { return may(i.fifo.Get(obj)) }, obj, queue))
}

// OnDrop implements reflector.Dropper.
func (s sink[T]) OnDrop(dropped func(T)) { s.namespaceWatch.dropped = dropped }

// dropped is called by the namespaceWatch whose list lacks an object.
func (i *SharedInformer[T]) dropped(last T) {
	for _, p := range i.namespaceWatches {
		if p.namespace == "" || p.namespace == last.GetNamespace() {
			p.dropped(last)
		}
	}
}

// absent is called by the consistency check before it has the cache drop an object that the server
// lacks, as of a version that the cache has reached.
func (i *SharedInformer[T]) absent(last T, version string) {
	for _, p := range i.namespaceWatches {
		if p.namespace == "" || p.namespace == last.GetNamespace() {
			p.reflector.NoteAbsent(last, version)
		}
	}
}

func (s sink[T]) write(obj T, queue func(T) error) error {
	i := s.namespaceWatch.informer
	return ended(i.consistencyChecker.noting(i.transformed(obj), queue))
}

func (s sink[T]) Replace(list []T, version string) error {
	i := s.namespaceWatch.informer
	for n := range list {
		list[n] = i.transformed(list[n])
	}
	i.replacing()
	i.consistencyChecker.notingList()
	defer s.namespaceWatch.frozen.Store(nil)
	if s.namespaceWatch.namespace != "" {
		return ended(i.fifo.ReplaceNamespace(s.namespaceWatch.namespace, list))
	}
	return ended(i.fifo.Replace(list, version))
}

// Held returns what the cache has, or will have when what is queued has
// been applied. A difference is about that and nothing else: until it, or a list,
// has come, no consistency check corrects anything.
func (s sink[T]) Held() []T {
	s.namespaceWatch.listBegins()
	s.namespaceWatch.informer.consistencyChecker.notingList()
	return s.namespaceWatch.informer.fifo.State(s.namespaceWatch.namespace)
}

// Merge is Replace by what is different.
func (s sink[T]) Merge(dropped, received []T, version string) error {
	i := s.namespaceWatch.informer
	for n := range received {
		received[n] = i.transformed(received[n])
	}
	i.replacing()
	i.consistencyChecker.notingList()
	defer s.namespaceWatch.frozen.Store(nil)
	return ended(i.fifo.Merge(s.namespaceWatch.namespace, dropped, received, version))
}

// ended ignores the error of a write after the end: nothing reads the DeltaFIFO
// any more.
func ended(err error) error {
	if errors.Is(err, cache.ErrClosed) {
		return nil
	}
	return err
}

// invalidBecause keeps the first reason for which the informer cannot run.
func (i *SharedInformer[T]) invalidBecause(err error) {
	if err != nil && i.failed == nil {
		i.failed = fmt.Errorf("informer %s: %w", i.name, err)
	}
}

// Err says why the informer cannot run, from its construction on, or why it
// ended; nil if it can, or has ended with its context.
func (i *SharedInformer[T]) Err() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.failed
}
