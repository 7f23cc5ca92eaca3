package cache

import (
	"context"
	"errors"
	"sync"
)

// ErrClosed is returned by a DeltaFIFO after Close.
var ErrClosed = errors.New("delta queue is closed")

// DefaultMaxDeltas is the default of FIFOOptions.MaxDeltas.
const DefaultMaxDeltas = 16

// FIFOOptions configure a DeltaFIFO.
type FIFOOptions[T any] struct {
	// KeyFunc names objects. Default: MetaNamespaceKey.
	KeyFunc KeyFunc[T]
	// Known is where processed objects end up, usually an Indexer: Replace
	// makes tombstones for the objects in it that are gone, Resync deltas for
	// all of them. Default: nothing is known.
	Known Known[T]
	// MaxDeltas is how many deltas of one object the queue keeps before it
	// compresses them. Default: DefaultMaxDeltas; at least 4.
	MaxDeltas int
	// Namespaces, if not empty, are listed one by one: HasSynced then waits for a
	// first ReplaceNamespace of each. Default: one list is everything.
	Namespaces []string
	// OnSynced is called once, when HasSynced becomes true, without locks and by
	// the goroutine that made it so: that of Pop, or that of Replace if the first
	// list was empty. Default: none.
	OnSynced func()
	// OnIdle is called, without locks and by the goroutine of Pop, each time that
	// everything queued has been processed and Pop is about to wait. It must
	// return quickly. Default: none.
	OnIdle func()
	// OnDropped is called for each object that a Replace, ReplaceNamespace or Merge finds gone,
	// before that returns, with the DeltaFIFO's lock held. Default: none.
	OnDropped func(last T)
}

// Known is what a DeltaFIFO asks of the store behind it. Both methods are
// called with the DeltaFIFO's lock held.
type Known[T any] interface {
	Get(key string) (T, bool)
	// Range calls visit for every object until it returns false.
	Range(visit func(key string, obj T) bool)
}

// DeltaFIFO is a queue of objects that have changed, each with the list of its
// changes, in the order in which the objects first changed. Pop returns an
// object with everything that happened to it since it was popped before.
//
// Its size is bounded by the number of distinct objects: beyond MaxDeltas the
// changes of one object are compressed, so that its state before, its last
// state, and the end of an object whose name was taken by another remain
// visible.
//
// Producers never wait for the consumer. All methods may be called
// concurrently; calls of Pop take turns.
type DeltaFIFO[T any] struct {
	keyOf     KeyFunc[T]
	known     Known[T]
	maxDeltas int
	onSynced  func()
	onIdle    func()
	onDropped func(last T)

	// popping is held by the one Pop that is handing out an object. It is
	// taken before mu.
	popping chan struct{}

	mu    sync.Mutex
	items map[string]*pending[T]
	head  *pending[T] // a list through pending.next, oldest first
	tail  *pending[T]
	free  *pending[T] // recycled, through next as well
	nfree int
	// current is the object that Pop hands out at this moment: it is in no
	// list any more and not yet in known. It is only read as long as it is that.
	current *pending[T]
	awaited bool // initial counts current, although it was handed out as not initial

	reached string   // every change up to this version is in the queue or was popped
	shown   string   // no popped change is of a later version, see Shown
	end     Position // of the object that was queued last

	// unlisted are the namespaces whose first list is due; "" is that of
	// everything.
	unlisted map[string]struct{}
	initial  int           // objects of first lists that were not processed
	synced   chan struct{} // closed when nothing is unlisted and initial is 0
	sleeping bool          // Pop waits, or is about to, for a token in wake
	wake     chan struct{}
	ended    bool // Close was called
	closed   chan struct{}
}

// pending is one object in the queue.
type pending[T any] struct {
	key        string
	deltas     Deltas[T]
	before     string // reached when it was queued
	position   Position
	initial    bool
	compressed bool
	next       *pending[T]
}

// NewDeltaFIFO returns an empty queue.
func NewDeltaFIFO[T any](opts FIFOOptions[T]) *DeltaFIFO[T] {
	f := &DeltaFIFO[T]{
		keyOf:     opts.KeyFunc,
		known:     opts.Known,
		maxDeltas: opts.MaxDeltas,
		onSynced:  opts.OnSynced,
		onIdle:    opts.OnIdle,
		onDropped: opts.OnDropped,
		popping:   make(chan struct{}, 1),
		items:     make(map[string]*pending[T]),
		synced:    make(chan struct{}),
		wake:      make(chan struct{}, 1),
		closed:    make(chan struct{}),
		unlisted:  map[string]struct{}{},
	}
	for _, namespace := range opts.Namespaces {
		f.unlisted[namespace] = struct{}{}
	}
	if len(opts.Namespaces) == 0 {
		f.unlisted[""] = struct{}{}
	}
	if f.keyOf == nil {
		f.keyOf = MetaNamespaceKey[T]
	}
	if f.maxDeltas == 0 {
		f.maxDeltas = DefaultMaxDeltas
	}
	f.maxDeltas = max(f.maxDeltas, 4)
	return f
}

// RaiseMaxDeltas raises MaxDeltas to n, if that is more than it is.
func (f *DeltaFIFO[T]) RaiseMaxDeltas(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.maxDeltas = max(f.maxDeltas, n)
}

// Add queues obj as Added.
func (f *DeltaFIFO[T]) Add(obj T) error { return f.queue(Added, obj) }

// Update queues obj as Updated.
func (f *DeltaFIFO[T]) Update(obj T) error { return f.queue(Updated, obj) }

// Delete queues obj, the last state of an object, as Deleted, unless nothing
// is known of the object, or its deletion is queued already.
func (f *DeltaFIFO[T]) Delete(obj T) error { return f.queue(Deleted, obj) }

func (f *DeltaFIFO[T]) queue(kind DeltaType, obj T) error {
	key, err := f.keyOf(obj)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return ErrClosed
	}
	if kind == Deleted && f.unheardOf(key) {
		return nil
	}
	f.push(key, Delta[T]{Type: kind, Object: obj})
	return nil
}

// unheardOf needs f.mu. Without a Known everything may have been heard of.
func (f *DeltaFIFO[T]) unheardOf(key string) bool {
	if f.known == nil || f.items[key] != nil || f.current != nil && f.current.key == key {
		return false
	}
	_, known := f.known.Get(key)
	return !known
}

// push appends d to the deltas of key. It needs f.mu.
func (f *DeltaFIFO[T]) push(key string, d Delta[T]) *pending[T] {
	p := f.items[key]
	if p != nil {
		p.deltas = appendDelta(p.deltas, d)
		if len(p.deltas) > f.maxDeltas {
			p.deltas, p.compressed = compress(p.deltas), true
		}
		return p
	}
	p = f.take()
	f.end++
	p.key, p.before, p.position = key, f.reached, f.end
	p.deltas = append(p.deltas, d)
	f.items[key] = p
	if f.tail == nil {
		f.head = p
	} else {
		f.tail.next = p
	}
	f.tail = p
	f.signal()
	return p
}

// signal leaves a token for a waiting Pop. It needs f.mu.
func (f *DeltaFIFO[T]) signal() {
	if !f.sleeping {
		return
	}
	f.sleeping = false
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// Pop waits for an object and calls process with it, without locks held, so
// producers go on meanwhile. Its error is returned; the object is not queued
// again. Pop returns the cause of ctx when it is done, and ErrClosed after
// Close, without handing out what is left.
func (f *DeltaFIFO[T]) Pop(ctx context.Context, process func(Item[T]) error) error {
	if err := f.takeTurn(ctx); err != nil {
		return err
	}
	defer func() { <-f.popping }()
	for {
		p, err := f.next(ctx)
		if err != nil {
			return err
		}
		if p != nil {
			return f.handOut(p, process)
		}
		if f.onIdle != nil {
			f.onIdle()
		}
		select {
		case <-f.wake:
		case <-ctx.Done():
		case <-f.closed:
		}
	}
}

// takeTurn waits until no other Pop hands out an object.
func (f *DeltaFIFO[T]) takeTurn(ctx context.Context) error {
	select {
	case f.popping <- struct{}{}: // the usual case: there is no other
		return nil
	default:
	}
	select {
	case f.popping <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-f.closed:
		return ErrClosed
	}
}

// handOut calls process, and finish even if it panics.
func (f *DeltaFIFO[T]) handOut(p *pending[T], process func(Item[T]) error) error {
	defer f.finish(p)
	return process(Item[T]{Key: p.key, Deltas: p.deltas, Initial: p.initial, Compressed: p.compressed})
}

// next takes the first object off the queue and makes it the current one; nil
// if there is none.
func (f *DeltaFIFO[T]) next(ctx context.Context) (*pending[T], error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return nil, ErrClosed
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	p := f.head
	if p == nil {
		f.sleeping = true
		return nil, nil
	}
	f.head = p.next
	if f.head == nil {
		f.tail = nil
	}
	p.next = nil
	delete(f.items, p.key)
	f.current = p
	f.show(p.deltas.Newest())
	return p, nil
}

// finish is called when the consumer has processed the current object.
func (f *DeltaFIFO[T]) finish(p *pending[T]) {
	f.mu.Lock()
	f.current = nil
	justSynced := false
	if p.initial || f.awaited {
		f.awaited = false
		f.initial--
		justSynced = f.checkSynced()
	}
	f.recycle(p)
	f.mu.Unlock()
	if justSynced && f.onSynced != nil {
		f.onSynced()
	}
}

// Close makes all further calls fail and wakes those that wait. What is
// queued is dropped.
func (f *DeltaFIFO[T]) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return
	}
	f.ended = true
	close(f.closed)
	f.items, f.head, f.tail, f.free, f.nfree = nil, nil, nil, nil, 0
}

// maxFree bounds the recycled entries: enough for a steady stream, and a burst
// does not pin its memory.
const (
	maxFree       = 1024
	maxFreeDeltas = 32
)

func (f *DeltaFIFO[T]) take() *pending[T] {
	p := f.free
	if p == nil {
		return &pending[T]{}
	}
	f.free, p.next = p.next, nil
	f.nfree--
	return p
}

func (f *DeltaFIFO[T]) recycle(p *pending[T]) {
	if f.nfree >= maxFree || cap(p.deltas) > maxFreeDeltas {
		return
	}
	clear(p.deltas) // let the objects go
	*p = pending[T]{deltas: p.deltas[:0], next: f.free}
	f.free = p
	f.nfree++
}
