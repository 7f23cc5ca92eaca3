package cache

import (
	"context"
	"errors"
	"sync"

	"github.com/levelwire/levelwire/internal/ring"
)

// ErrClosed is returned by a DeltaFIFO that has been closed.
var ErrClosed = errors.New("the queue is closed")

// Known is what a DeltaFIFO asks about objects that have left it: usually the
// Indexer that its items go into.
type Known[T any] interface {
	Get(key string) (T, bool)
	Keys() []string
}

// DeltaFIFO collects what happens to objects until it is popped, object by
// object. Objects leave in the order in which they got their first delta, and
// the deltas of one object in the order in which they came. What it holds is
// bounded by the number of distinct objects, see [DeltaFIFO.Update].
//
// All methods may be called concurrently, but Pop by one consumer only, as
// otherwise states of one object could overtake each other.
type DeltaFIFO[T any] struct {
	keyOf KeyFunc[T]
	known Known[T]

	// processing is held while an item is popped and processed: in between it
	// is neither queued nor known, and who looks for it there must wait. It is
	// taken before mu.
	processing sync.Mutex

	mu     sync.Mutex
	items  map[string]*pending[T]
	queue  ring.Ring[*pending[T]]
	free   []*pending[T] // emptied, to be used again
	closed bool
	wake   chan struct{} // holds a token while there may be something to pop

	// replaced is set by the first Replace; initial counts its objects that
	// have not been popped yet.
	replaced bool
	initial  int
	synced   chan struct{}
}

// pending is one object's place in the queue.
type pending[T any] struct {
	key     string
	deltas  Deltas[T]
	initial bool
}

// freeMost bounds the emptied places that are kept.
const freeMost = 1024

// NewDeltaFIFO returns an empty queue. A nil keyOf means MetaNamespaceKey;
// known may be nil, and then Replace finds only objects that are queued to be
// missing.
func NewDeltaFIFO[T any](keyOf KeyFunc[T], known Known[T]) *DeltaFIFO[T] {
	if keyOf == nil {
		keyOf = MetaNamespaceKey[T]
	}
	return &DeltaFIFO[T]{
		keyOf: keyOf, known: known,
		items: map[string]*pending[T]{}, wake: make(chan struct{}, 1), synced: make(chan struct{}),
	}
}

// Add notes that obj appeared.
func (f *DeltaFIFO[T]) Add(obj T) error { return f.note(Added, obj) }

// Update notes a new state of obj. Of very many updates between two pops only
// the newest are kept; a deletion, or a change of the UID, is never merged
// away.
func (f *DeltaFIFO[T]) Update(obj T) error { return f.note(Updated, obj) }

// Delete notes that obj is gone; obj is its last state. Without a word of the
// object in the queue or among the known objects it does nothing.
func (f *DeltaFIFO[T]) Delete(obj T) error {
	key, err := f.keyOf(obj)
	if err != nil {
		return err
	}
	f.processing.Lock()
	defer f.processing.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return ErrClosed
	}
	if _, queued := f.items[key]; !queued && f.known != nil {
		if _, ok := f.known.Get(key); !ok {
			return nil
		}
	}
	f.push(key, Delta[T]{Type: Deleted, Object: obj})
	return nil
}

func (f *DeltaFIFO[T]) note(kind DeltaType, obj T) error {
	key, err := f.keyOf(obj)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return ErrClosed
	}
	f.push(key, Delta[T]{Type: kind, Object: obj})
	return nil
}

// Replace makes list everything there is: its objects get a Replaced delta,
// and objects that are queued or known and not in it get a Deleted whose final
// state is unknown.
func (f *DeltaFIFO[T]) Replace(list []T, _ string) error {
	keys := make([]string, len(list))
	present := make(map[string]struct{}, len(list))
	for i, obj := range list {
		key, err := f.keyOf(obj)
		if err != nil {
			return err
		}
		keys[i] = key
		present[key] = struct{}{}
	}
	f.processing.Lock()
	defer f.processing.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return ErrClosed
	}
	first := !f.replaced
	f.replaced = true
	for i, obj := range list {
		p := f.push(keys[i], Delta[T]{Type: Replaced, Object: obj})
		if first && !p.initial {
			p.initial = true
			f.initial++
		}
	}
	f.deleteMissing(present)
	if first && f.initial == 0 {
		close(f.synced)
	}
	return nil
}

// deleteMissing adds tombstones. The lock is held.
func (f *DeltaFIFO[T]) deleteMissing(present map[string]struct{}) {
	for key, p := range f.items {
		if _, ok := present[key]; ok || p.deltas.Newest().Type == Deleted {
			continue
		}
		f.push(key, Delta[T]{Type: Deleted, Object: p.deltas.Newest().Object, FinalStateUnknown: true})
	}
	if f.known == nil {
		return
	}
	for _, key := range f.known.Keys() {
		if _, ok := present[key]; ok {
			continue
		}
		if _, queued := f.items[key]; queued {
			continue
		}
		if obj, ok := f.known.Get(key); ok {
			f.push(key, Delta[T]{Type: Deleted, Object: obj, FinalStateUnknown: true})
		}
	}
}

// Resync gives every known object that has no delta in the queue a Sync.
func (f *DeltaFIFO[T]) Resync() error {
	f.processing.Lock()
	defer f.processing.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return ErrClosed
	}
	if f.known == nil {
		return nil
	}
	for _, key := range f.known.Keys() {
		if _, queued := f.items[key]; queued {
			continue
		}
		if obj, ok := f.known.Get(key); ok {
			f.push(key, Delta[T]{Type: Sync, Object: obj})
		}
	}
	return nil
}

// push appends a delta to its object's. The lock is held.
func (f *DeltaFIFO[T]) push(key string, d Delta[T]) *pending[T] {
	p := f.items[key]
	if p == nil {
		p = f.place(key)
		f.items[key] = p
		f.queue.Push(p)
		f.signal()
	}
	p.deltas = compress(append(p.deltas, d))
	return p
}

func (f *DeltaFIFO[T]) place(key string) *pending[T] {
	if n := len(f.free); n > 0 {
		p := f.free[n-1]
		f.free = f.free[:n-1]
		p.key = key
		return p
	}
	return &pending[T]{key: key}
}

func (f *DeltaFIFO[T]) signal() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// keepDeltas is how many deltas of one object are kept before updates are
// merged.
const keepDeltas = 16

// compress merges the end of an object's deltas.
func compress[T any](d Deltas[T]) Deltas[T] {
	n := len(d)
	if n < 2 {
		return d
	}
	a, b := d[n-2], d[n-1]
	switch {
	case a.Type == Deleted && b.Type == Deleted:
		// The same end told twice: the one that knows the final state.
		if a.FinalStateUnknown {
			d[n-2] = b
		}
		return drop(d, n-1)
	case n <= keepDeltas:
		return d
	}
	// Too many. An update that another one of the same object follows is the
	// level-triggered reader's to miss; else a whole life that began and
	// ended within the queue.
	for i := n - 2; i > 0; i-- {
		if isState(d[i].Type) && isState(d[i+1].Type) && uidOf(d[i].Object) == uidOf(d[i+1].Object) {
			d[i+1].Type = d[i].Type
			return drop(d, i)
		}
	}
	for i := 1; i+2 < n; i++ {
		if isState(d[i].Type) && d[i+1].Type == Deleted {
			return drop(drop(d, i+1), i)
		}
	}
	// Only states of ever other objects under one key: the first and the last
	// still show that the UID changed.
	return drop(d, 1)
}

func isState(t DeltaType) bool { return t != Deleted }

// drop removes one delta and lets the garbage collector have its object.
func drop[T any](d Deltas[T], i int) Deltas[T] {
	copy(d[i:], d[i+1:])
	d[len(d)-1] = Delta[T]{}
	return d[:len(d)-1]
}

// Pop waits for an object with deltas and calls process with them. It fails
// with ctx's error, with ErrClosed once the queue is closed and empty, and with
// what process returns; the item is gone then, too. While process runs, Add and
// Update go on and the methods that ask what is known wait: process must not
// call those.
func (f *DeltaFIFO[T]) Pop(ctx context.Context, process func(Item[T]) error) error {
	for {
		popped, closed, err := f.tryPop(process)
		switch {
		case popped:
			return err
		case closed:
			return ErrClosed
		}
		select {
		case <-f.wake:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (f *DeltaFIFO[T]) tryPop(process func(Item[T]) error) (popped, closed bool, err error) {
	f.processing.Lock()
	defer f.processing.Unlock()
	p, closed := f.take()
	if p == nil {
		return false, closed, nil
	}
	defer f.recycle(p)
	return true, false, process(Item[T]{Key: p.key, Deltas: p.deltas, Initial: p.initial})
}

func (f *DeltaFIFO[T]) take() (p *pending[T], closed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.queue.Len() == 0 {
		return nil, f.closed
	}
	p = f.queue.Pop()
	delete(f.items, p.key)
	return p, false
}

// recycle counts the item as popped and keeps its memory for another.
func (f *DeltaFIFO[T]) recycle(p *pending[T]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p.initial {
		f.initial--
		if f.initial == 0 {
			close(f.synced)
		}
	}
	clear(p.deltas)
	p.key, p.initial, p.deltas = "", false, p.deltas[:0]
	if len(f.free) < freeMost && cap(p.deltas) <= keepDeltas+1 {
		f.free = append(f.free, p)
	}
}

// HasSynced tells whether the objects of the first Replace have been popped
// and processed.
func (f *DeltaFIFO[T]) HasSynced() bool {
	select {
	case <-f.synced:
		return true
	default:
		return false
	}
}

// Synced is closed when HasSynced becomes true.
func (f *DeltaFIFO[T]) Synced() <-chan struct{} { return f.synced }

// List returns the newest state of each queued object, those that are deleted
// left out, in no particular order.
func (f *DeltaFIFO[T]) List() []T {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := make([]T, 0, len(f.items))
	for _, p := range f.items {
		if d := p.deltas.Newest(); d.Type != Deleted {
			list = append(list, d.Object)
		}
	}
	return list
}

// Len is the number of queued objects.
func (f *DeltaFIFO[T]) Len() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.queue.Len()
}

// Close makes all further writes fail with ErrClosed, and Pop too once the
// queue is empty.
func (f *DeltaFIFO[T]) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	f.signal()
}
