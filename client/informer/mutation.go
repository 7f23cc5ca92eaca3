package informer

import (
	"context"
	"fmt"
	"time"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/internal/contain"
	"github.com/levelwire/levelwire/client/internal/deepcopy"
	"github.com/levelwire/levelwire/client/internal/mutation"
)

// MutationDetection finds code that writes to objects of the cache, which are
// shared: with the cache, all handlers, and in part with other objects. It is for
// tests and for staging: a deep copy of each object is kept and compared, which
// takes several times the memory and time of the informer without it. Objects that
// were replaced or deleted are compared for another two minutes, the last 10,000 of
// them: what read them may write to them later.
//
// Programs that are built with the tag levelwire_detect_mutations have it in all
// informers, with an Interval of a second.
type MutationDetection struct {
	// Interval is the time between comparisons of all objects, of which the last
	// is when the informer stops. What a handler was called with is compared after
	// each of its calls, too. Default: nothing is
	// compared. At least a millisecond.
	Interval time.Duration
	// OnMutation is called for each object that was changed, once for each change
	// that is found, from several goroutines. A panic of it is logged. Default: it
	// is logged as an error, and counted in Stats.Mutations, as always.
	OnMutation func(Mutation)
}

// Mutation is an object of a cache that was written to.
type Mutation struct {
	Informer string // its name
	// Handler is the name of the handler after whose call it was found; "" if
	// that was not after a call. Other code that ran meanwhile may have done it.
	Handler string
	Key     string // of the object: "namespace/name"
	Path    string // of a field that differs: "spec.containers[0].image"
}

// String says what was found.
func (m Mutation) String() string {
	return fmt.Sprintf("informer %s: a handler or a caller of the lister has changed the cached object %s at %q: call DeepCopy first, or read with Lister().Copies()", m.Informer, m.Key, m.Path)
}

func (o MutationDetection) validate() error {
	switch {
	case o.Interval != 0 && o.Interval < time.Millisecond:
		return fmt.Errorf("MutationDetection.Interval %v is below a millisecond", o.Interval)
	case o.Interval == 0 && o.OnMutation != nil:
		return fmt.Errorf("MutationDetection.OnMutation needs MutationDetection.Interval")
	}
	return nil
}

// SetMutationDetection has the informer look for code that writes to its objects; a
// Factory with Options.MutationDetection does it. It must be called before the
// start.
func (i *SharedInformer[T]) SetMutationDetection(opts MutationDetection) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.phase != idle {
		return fmt.Errorf("informer %s: mutation detection must be set before the start", i.name)
	}
	if err := opts.validate(); err != nil {
		return fmt.Errorf("informer %s: %w", i.name, err)
	}
	i.detectMutations(opts)
	return nil
}

func (i *SharedInformer[T]) detectMutations(opts MutationDetection) {
	i.mutations = nil
	if opts.Interval > 0 {
		i.mutations = &mutationDetector[T]{informer: i, opts: opts, objects: mutation.Detector[T]{Copy: deepcopy.Of[T]}}
	}
}

// mutationDetector is nil if nothing is compared; stored and removed then do nothing.
type mutationDetector[T client.Object] struct {
	informer *SharedInformer[T]
	opts     MutationDetection
	objects  mutation.Detector[T]
	panics   contain.Counter // of OnMutation, and of the objects' DeepCopyObject
}

// stored is called before an object can be read.
func (d *mutationDetector[T]) stored(key string, obj T) {
	if d != nil { // an object that cannot be copied is not compared
		d.panics.Call(d.informer.log, "DeepCopyObject", func() { d.objects.Track(key, obj) })
	}
}

// removed is called before handlers get the last state of a deleted object.
func (d *mutationDetector[T]) removed(key string, last T) {
	if d != nil {
		d.panics.Call(d.informer.log, "DeepCopyObject", func() { d.objects.Forget(key, last) })
	}
}

// calling compares states that could be read for a while before a handler gets them: what
// is found then was not the handler.
func (d *mutationDetector[T]) calling(n notification[T]) {
	if n.kind == added {
		return
	}
	obj := n.obj
	if n.kind == updated {
		obj = n.old
	}
	if key, path, mutated := d.objects.Check(obj); mutated {
		d.report("", key, path)
	}
}

// called compares what a handler was called with.
func (d *mutationDetector[T]) called(handler string, n notification[T]) {
	key, path, mutated := d.objects.Check(n.obj)
	if mutated {
		d.report(handler, key, path)
	}
	if n.kind != updated {
		return
	}
	if key, oldPath, mutatedOld := d.objects.Check(n.old); mutatedOld && !(mutated && oldPath == path) { // they may share what was changed
		d.report(handler, key, oldPath)
	}
}

// run compares all objects until ctx ends, and then once more: most tests take less
// than an interval. The handler calls that still run are compared by called.
func (d *mutationDetector[T]) run(ctx context.Context) {
	ticker := time.NewTicker(d.opts.Interval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			d.checkAll()
		case <-ctx.Done():
			d.checkAll()
			return
		}
	}
}

func (d *mutationDetector[T]) checkAll() {
	d.objects.CheckAll(func(key, path string) { d.report("", key, path) })
}

func (d *mutationDetector[T]) report(handler, key, path string) {
	m := Mutation{Informer: d.informer.name, Handler: handler, Key: key, Path: path}
	d.informer.mutated.Add(1)
	d.informer.log.Error("a cached object was changed", "handler", handler, "key", key, "path", path, "error", m.String())
	if d.opts.OnMutation != nil {
		d.panics.Call(d.informer.log, "OnMutation", func() { d.opts.OnMutation(m) })
	}
}
