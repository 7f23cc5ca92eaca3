package cache

import (
	"errors"
	"fmt"
	"slices"

	"github.com/levelwire/levelwire/client/internal/contain"
)

// IndexError is an index function that failed, by an error or a panic. The object it names is stored,
// but missing from this index until it changes.
type IndexError struct {
	Index string
	Key   string
	Err   error
}

func (e *IndexError) Error() string {
	return fmt.Sprintf("object %q is not in index %q: %v", e.Key, e.Index, e.Err)
}

func (e *IndexError) Unwrap() error { return e.Err }

// ErrNoIndex is matched by errors about an index that was never added.
var ErrNoIndex = errors.New("no such index")

type index[T any] struct {
	name     string
	valuesOf IndexFunc[T]
	// ofKey: the values follow from the key, so that a new state of an object has those of the one before.
	ofKey   bool
	buckets map[string]*bucket[T]
}

// bucket holds the objects under one value of one index, side by side.
type bucket[T any] struct {
	of    *index[T]
	value string
	objs  []T
	slots []uint32 // beside objs: where the object lies in the Indexer
}

// membership is one place where an object lies in a bucket.
type membership[T any] struct {
	bucket *bucket[T]
	at     uint32
}

// IndexSize is how large an index is.
type IndexSize struct {
	Name   string
	Values int // under each of which there are objects
}

// IndexSizes returns the sizes of all indexes, in the order in which they were added. It takes as
// long as there are indexes, whatever is in them.
func (x *Indexer[T]) IndexSizes() []IndexSize {
	x.mu.RLock()
	defer x.mu.RUnlock()
	sizes := make([]IndexSize, 0, len(x.order))
	for _, ix := range x.order {
		sizes = append(sizes, IndexSize{ix.name, len(ix.buckets)})
	}
	return sizes
}

// AddIndexers adds indexes, over the objects that are there too. It fails
// without doing anything if a name is taken. An *IndexError means that the
// indexes were added and some object is missing from one.
func (x *Indexer[T]) AddIndexers(indexers Indexers[T]) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	for name, fn := range indexers {
		if fn == nil {
			return fmt.Errorf("index %q has no function", name)
		}
		if _, taken := x.index[name]; taken {
			return fmt.Errorf("there is an index %q already", name)
		}
	}
	for name, fn := range indexers {
		x.add(&index[T]{name: name, valuesOf: fn})
	}
	return x.reindexAll()
}

// add adds an index without the objects that are there. It needs the write lock.
func (x *Indexer[T]) add(ix *index[T]) {
	ix.buckets = make(map[string]*bucket[T])
	x.index[ix.name] = ix
	x.order = append(x.order, ix)
}

// reindexAll returns one of the errors, if there are any.
func (x *Indexer[T]) reindexAll() (failed error) {
	for slot := range x.objs {
		if err := x.reindex(uint32(slot)); err != nil {
			failed = err
		}
	}
	return failed
}

// reindex brings the indexes up to date with the object at slot. An object
// whose values have not changed keeps its places: one comparison and one store
// for each. It needs the write lock.
func (x *Indexer[T]) reindex(slot uint32) (failed error) {
	obj, it := x.objs[slot], &x.items[slot]
	kept := 0 // it.in[:kept] is up to date
	for _, ix := range x.order {
		if ix.ofKey && kept < len(it.in) && it.in[kept].bucket.of == ix {
			it.in[kept].bucket.objs[it.in[kept].at] = obj
			kept++
			continue
		}
		values, err := ix.call(obj)
		if err != nil {
			failed, values = &IndexError{Index: ix.name, Key: it.key, Err: err}, nil
		}
		n := ix.sameValues(it.in[kept:], values)
		if n < 0 {
			x.unindex(slot, kept)
			for _, value := range values {
				ix.insert(value, slot, obj, it)
			}
			kept = len(it.in)
			continue
		}
		for _, m := range it.in[kept : kept+n] {
			m.bucket.objs[m.at] = obj
		}
		kept += n
	}
	return failed
}

// call makes a panic of the index function an error: what it cannot index must not end
// the process.
func (ix *index[T]) call(obj T) (values []string, err error) {
	defer func() {
		if r := recover(); r != nil {
			values, err = nil, contain.Recovered("the index function", r)
		}
	}()
	return ix.valuesOf(obj)
}

// sameValues returns how many of the first places are this index's, or -1 if
// they are not exactly for these values.
func (ix *index[T]) sameValues(in []membership[T], values []string) int {
	n := 0
	for n < len(in) && in[n].bucket.of == ix {
		n++
	}
	if n != len(values) {
		return -1
	}
	for i, value := range values {
		if in[i].bucket.value != value {
			return -1
		}
	}
	return n
}

// insert puts obj under value unless it is there.
func (ix *index[T]) insert(value string, slot uint32, obj T, it *item[T]) {
	b := ix.buckets[value]
	if b == nil {
		b = &bucket[T]{of: ix, value: value}
		ix.buckets[value] = b
	}
	at := len(b.objs)
	if at > 0 && b.slots[at-1] == slot {
		return // the function returned the value twice
	}
	b.objs = append(b.objs, obj)
	b.slots = append(b.slots, slot)
	it.in = append(it.in, membership[T]{b, uint32(at)})
}

// unindex takes the object at slot out of all places but the first keep.
func (x *Indexer[T]) unindex(slot uint32, keep int) {
	it := &x.items[slot]
	for _, m := range it.in[keep:] {
		x.vacate(m)
	}
	clear(it.in[keep:])
	it.in = it.in[:keep]
}

// vacate closes the gap at a place with the last object of its bucket.
func (x *Indexer[T]) vacate(m membership[T]) {
	b := m.bucket
	last := uint32(len(b.objs) - 1)
	if m.at != last {
		b.objs[m.at], b.slots[m.at] = b.objs[last], b.slots[last]
		moved := x.items[b.slots[last]].in
		for i := range moved {
			if moved[i].bucket == b {
				moved[i].at = m.at
				break
			}
		}
	}
	var zero T
	b.objs[last] = zero
	b.objs, b.slots = b.objs[:last], b.slots[:last]
	if last == 0 {
		delete(b.of.buckets, b.value)
	}
}

// bucket returns nil if nothing is under value. It needs the lock.
func (x *Indexer[T]) bucket(name, value string) (*bucket[T], error) {
	ix := x.index[name]
	if ix == nil {
		return nil, fmt.Errorf("%w: %q; add it with AddIndexers", ErrNoIndex, name)
	}
	return ix.buckets[value], nil
}

// ByIndex returns the objects under value in the index called name.
func (x *Indexer[T]) ByIndex(name, value string) ([]T, error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	b, err := x.bucket(name, value)
	if b == nil {
		return nil, err
	}
	return slices.Clone(b.objs), nil
}

// ByIndexAny returns the objects under any of the values, each once, as they are at
// one moment: an object that goes from one of the values to another is there.
func (x *Indexer[T]) ByIndexAny(name string, values ...string) ([]T, error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	ix := x.index[name]
	if ix == nil {
		return nil, fmt.Errorf("%w: %q; add it with AddIndexers", ErrNoIndex, name)
	}
	return ix.under(values), nil
}

// under returns the objects under any of the values, each once. It needs the lock.
func (ix *index[T]) under(values []string) []T {
	if len(values) == 1 {
		if b := ix.buckets[values[0]]; b != nil {
			return slices.Clone(b.objs)
		}
		return nil
	}
	var found []T
	seen := make(map[uint32]bool)
	for _, value := range values {
		b := ix.buckets[value]
		for i := 0; b != nil && i < len(b.objs); i++ {
			if !seen[b.slots[i]] {
				seen[b.slots[i]] = true
				found = append(found, b.objs[i])
			}
		}
	}
	return found
}

// CountByIndex returns how many objects are under value.
func (x *Indexer[T]) CountByIndex(name, value string) (int, error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	b, err := x.bucket(name, value)
	if b == nil {
		return 0, err
	}
	return len(b.objs), nil
}

// RangeIndex calls visit for every object under value until it returns false.
// Writers wait meanwhile, and visit must not call the Indexer.
func (x *Indexer[T]) RangeIndex(name, value string, visit func(key string, obj T) bool) error {
	x.mu.RLock()
	defer x.mu.RUnlock()
	b, err := x.bucket(name, value)
	if b == nil {
		return err
	}
	for i, obj := range b.objs {
		if !visit(x.items[b.slots[i]].key, obj) {
			break
		}
	}
	return nil
}

// IndexKeys returns the keys of the objects under value.
func (x *Indexer[T]) IndexKeys(name, value string) ([]string, error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	b, err := x.bucket(name, value)
	if b == nil {
		return nil, err
	}
	keys := make([]string, len(b.slots))
	for i, slot := range b.slots {
		keys[i] = x.items[slot].key
	}
	return keys, nil
}

// IndexValues returns every value that the index called name has objects
// under.
func (x *Indexer[T]) IndexValues(name string) ([]string, error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	ix := x.index[name]
	if ix == nil {
		return nil, fmt.Errorf("%w: %q; add it with AddIndexers", ErrNoIndex, name)
	}
	values := make([]string, 0, len(ix.buckets))
	for value := range ix.buckets {
		values = append(values, value)
	}
	return values, nil
}

// Index returns the stored objects that share a value with obj in the index
// called name, each once. obj itself need not be stored.
func (x *Indexer[T]) Index(name string, obj T) ([]T, error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	ix := x.index[name]
	if ix == nil {
		return nil, fmt.Errorf("%w: %q; add it with AddIndexers", ErrNoIndex, name)
	}
	values, err := ix.call(obj)
	if err != nil {
		return nil, fmt.Errorf("index %q: %w", name, err)
	}
	return ix.under(values), nil
}

// HasIndex reports whether there is an index called name.
func (x *Indexer[T]) HasIndex(name string) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.index[name] != nil
}

// Indexers returns the index functions by the name of their index. The map is
// the caller's.
func (x *Indexer[T]) Indexers() Indexers[T] {
	x.mu.RLock()
	defer x.mu.RUnlock()
	functions := make(Indexers[T], len(x.order))
	for _, ix := range x.order {
		functions[ix.name] = ix.valuesOf
	}
	return functions
}
