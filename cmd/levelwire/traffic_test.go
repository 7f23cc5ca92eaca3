package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"

	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/client"
)

// traffic counts the answers that all writers together got.
type traffic struct {
	mu      sync.Mutex
	acked   int           // acknowledged writes
	failed  int           // requests whose outcome stayed unknown
	highest int64         // acknowledged version
	changed chan struct{} // closed and replaced with every change
}

func newTraffic() *traffic { return &traffic{changed: make(chan struct{})} }

func (t *traffic) change(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f()
	close(t.changed)
	t.changed = make(chan struct{})
}

// floor is the highest version that was acknowledged to any writer. Writes that
// begin now must get a higher one.
func (t *traffic) floor() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.highest
}

func (t *traffic) counts() (acked, failed int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.acked, t.failed
}

// reach waits until that many writes were acknowledged and failed, all in all.
func (t *traffic) reach(ctx context.Context, acked, failed int) error {
	for {
		t.mu.Lock()
		reached, changed := t.acked >= acked && t.failed >= failed, t.changed
		t.mu.Unlock()
		if reached {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("the writers have come to a halt: %w", context.Cause(ctx))
		}
	}
}

// subject is a kind of object with one number in it that writers change.
type subject[T client.Object] struct {
	resource client.Resource[T]
	make     func(name string, value int) T
	patch    string // a merge patch with %d for the value
	value    func(T) int
	values   int // they are 0 to values-1
	// sole says that no other client writes to these objects, not even their
	// status: versions are then exactly those that were acknowledged.
	sole bool
}

// state is what the writer of an object knows of it, by acknowledgements.
type state struct {
	present bool
	value   int
	version int64 // of the last acknowledged write, or of the read that settled a doubt
}

// writer writes to objects that no other client writes to, one request at a time.
type writer[T client.Object] struct {
	subject[T]
	known   map[string]*state
	names   []string
	random  *rand.Rand
	pace    *rate.Limiter
	traffic *traffic
}

func newWriter[T client.Object](s subject[T], prefix string, names int, seed uint64, perSecond rate.Limit, t *traffic) *writer[T] {
	w := &writer[T]{
		subject: s, known: map[string]*state{}, random: rand.New(rand.NewPCG(seed, 1)),
		pace: rate.NewLimiter(perSecond, 1), traffic: t,
	}
	for i := range names {
		name := prefix + strconv.Itoa(i)
		w.names = append(w.names, name)
		w.known[name] = &state{}
	}
	return w
}

// run writes until stop is closed. Requests go on until ctx ends, so that the
// outcome of the last one is known, too.
func (w *writer[T]) run(ctx context.Context, stop <-chan struct{}) error {
	for {
		select {
		case <-stop:
			return nil
		default:
		}
		if err := w.pace.Wait(ctx); err != nil {
			return err
		}
		name := w.names[w.random.IntN(len(w.names))]
		if err := w.step(ctx, name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
}

// step makes one request.
func (w *writer[T]) step(ctx context.Context, name string) error {
	known := w.known[name]
	switch chance := w.random.IntN(10); {
	case !known.present:
		return w.create(ctx, name)
	case chance == 0:
		return w.delete(ctx, name)
	case chance <= 2:
		return w.read(ctx, name, *known)
	default:
		return w.modify(ctx, name)
	}
}

func (w *writer[T]) create(ctx context.Context, name string) error {
	floor, value := w.traffic.floor(), w.random.IntN(w.values)
	obj, err := w.resource.Create(ctx, w.make(name, value), metav1.CreateOptions{})
	if err == nil {
		return w.acknowledged(name, floor, value, obj)
	}
	if apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("its acknowledged deletion is lost: %w", err)
	}
	return w.settle(ctx, name, err, state{}, state{present: true, value: value})
}

func (w *writer[T]) modify(ctx context.Context, name string) error {
	floor, known := w.traffic.floor(), *w.known[name]
	value := (known.value + 1 + w.random.IntN(w.values-1)) % w.values // another one
	obj, err := w.resource.Patch(ctx, name, types.MergePatchType, fmt.Appendf(nil, w.patch, value), metav1.PatchOptions{})
	if err == nil {
		return w.acknowledged(name, floor, value, obj)
	}
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("its acknowledged creation is lost: %w", err)
	}
	return w.settle(ctx, name, err, known, state{present: true, value: value})
}

func (w *writer[T]) delete(ctx context.Context, name string) error {
	known := *w.known[name]
	err := w.resource.Delete(ctx, name, metav1.DeleteOptions{})
	if err == nil {
		*w.known[name] = state{}
		w.traffic.change(func() { w.traffic.acked++ })
		return nil
	}
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("its acknowledged creation is lost: %w", err)
	}
	return w.settle(ctx, name, err, known, state{})
}

// acknowledged notes a write that has been answered.
func (w *writer[T]) acknowledged(name string, floor int64, value int, obj T) error {
	version, err := versionOf(obj)
	if err != nil {
		return err
	}
	if version <= floor {
		return fmt.Errorf("version %d was given to a write that began after %d had been acknowledged", version, floor)
	}
	if w.value(obj) != value {
		return fmt.Errorf("%d was written, and %d answered", value, w.value(obj))
	}
	*w.known[name] = state{present: true, value: value, version: version}
	w.traffic.change(func() {
		w.traffic.acked++
		w.traffic.highest = max(w.traffic.highest, version)
	})
	return nil
}

// settle finds out whether a write that failed has taken effect: the object
// must be as it was before or as the write would leave it.
func (w *writer[T]) settle(ctx context.Context, name string, cause error, before, after state) error {
	w.traffic.change(func() { w.traffic.failed++ })
	for {
		found, err := w.get(ctx, name)
		switch {
		case err == nil && (w.agrees(found, before) || found.same(after) && found.version > before.version || found == state{} && after == state{}):
			*w.known[name] = found
			return nil
		case err == nil:
			return fmt.Errorf("it is %+v, neither %+v as acknowledged nor %+v as attempted (%v)", found, before, after, cause)
		}
		if err := w.pace.Wait(ctx); err != nil {
			return errors.Join(err, cause)
		}
	}
}

// read checks that a read shows what has been acknowledged.
func (w *writer[T]) read(ctx context.Context, name string, known state) error {
	found, err := w.get(ctx, name)
	if err != nil {
		return nil // the server is away
	}
	if !w.agrees(found, known) {
		return fmt.Errorf("it is read as %+v after %+v had been acknowledged", found, known)
	}
	return nil
}

func (s state) same(other state) bool { return s.present == other.present && s.value == other.value }

// agrees reports whether an object is as it should be.
func (w *writer[T]) agrees(found, known state) bool {
	return found.same(known) && found.version >= known.version && (found.version == known.version || !w.sole)
}

// get reads an object consistently; one that does not exist is no error.
func (w *writer[T]) get(ctx context.Context, name string) (state, error) {
	obj, err := w.resource.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return state{}, nil
	}
	if err != nil {
		return state{}, err
	}
	version, err := versionOf(obj)
	return state{present: true, value: w.value(obj), version: version}, err
}

func versionOf(obj metav1.Object) (int64, error) {
	return strconv.ParseInt(obj.GetResourceVersion(), 10, 64)
}

// verify compares everything the writer knows with a list.
func (w *writer[T]) verify(items []T) error {
	listed := map[string]state{}
	for _, obj := range items {
		version, err := versionOf(obj)
		if err != nil {
			return err
		}
		if w.known[obj.GetName()] != nil {
			listed[obj.GetName()] = state{present: true, value: w.value(obj), version: version}
		}
	}
	for name, known := range w.known {
		if found := listed[name]; !w.agrees(found, *known) {
			return fmt.Errorf("%s is %+v, and %+v was acknowledged", name, found, *known)
		}
	}
	return nil
}
