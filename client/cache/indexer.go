package cache

import (
	"fmt"
	"slices"
	"sync"
)

// IndexFunc returns the values under which an object is found in an index:
// none, one or many. It is called with locks held and must not call back. An
// object whose IndexFunc fails or panics is stored, and missing from that index only.
type IndexFunc[T any] func(obj T) ([]string, error)

// Indexers are index functions by the name of their index.
type Indexers[T any] map[string]IndexFunc[T]

// NamespaceIndex is the conventional name of an index made with
// MetaNamespaceIndex.
const NamespaceIndex = "namespace"

// MetaNamespaceIndex indexes API objects by their namespace.
func MetaNamespaceIndex[T any](obj T) ([]string, error) {
	n, ok := any(obj).(named)
	if !ok {
		return nil, fmt.Errorf("%T has no namespace", obj)
	}
	return []string{n.GetNamespace()}, nil
}

// Indexer is a set of objects by key, with indexes. All methods may be called
// concurrently; readers never wait for each other. Objects are shared, see the
// package comment; slices that methods return belong to the caller. Order is
// unspecified.
//
// A lookup costs what it returns: objects lie side by side in the slice of all
// objects and in the slice of every index value, so reading is one copy of
// pointers, and a change touches only the index values it concerns.
type Indexer[T any] struct {
	keyOf KeyFunc[T]

	mu    sync.RWMutex
	slots map[string]uint32 // key to its place in objs and items
	objs  []T               // dense
	items []item[T]         // beside objs
	index map[string]*index[T]
	order []*index[T] // the indexes in the order in which they were added
}

// item is what the Indexer knows of an object beside the object.
type item[T any] struct {
	key string
	// in lists every place the object has in an index, by the order of the
	// indexes and then of the values their functions returned.
	in []membership[T]
}

// NewIndexer returns an empty Indexer. A nil keyOf means MetaNamespaceKey.
func NewIndexer[T any](keyOf KeyFunc[T], indexers Indexers[T]) *Indexer[T] {
	if keyOf == nil {
		keyOf = MetaNamespaceKey[T]
	}
	x := &Indexer[T]{keyOf: keyOf, slots: make(map[string]uint32), index: make(map[string]*index[T])}
	_ = x.AddIndexers(indexers) // cannot fail: no name is taken and no object is there
	return x
}

// NewNamespaceIndexer returns an empty Indexer of API objects, by MetaNamespaceKey and with the index
// NamespaceIndex. A change leaves an object in its namespace, which is part of its key: for this index
// it costs less than for one that is made with MetaNamespaceIndex.
func NewNamespaceIndexer[T any]() *Indexer[T] {
	x := NewIndexer[T](nil, nil)
	x.add(&index[T]{name: NamespaceIndex, valuesOf: MetaNamespaceIndex[T], ofKey: true})
	return x
}

// KeyOf returns the key of obj, whether or not it is stored.
func (x *Indexer[T]) KeyOf(obj T) (string, error) { return x.keyOf(obj) }

// Add stores obj in place of the object with its key, if there is one. An
// error that matches *IndexError means that obj is stored but not in every
// index; any other that nothing was done.
func (x *Indexer[T]) Add(obj T) error { return x.Update(obj) }

// Update is Add.
func (x *Indexer[T]) Update(obj T) error {
	key, err := x.keyOf(obj)
	if err != nil {
		return err
	}
	_, _, err = x.Swap(key, obj)
	return err
}

// Swap stores obj under key, which must be its key, and returns the object it
// replaced. An error is an *IndexError; obj is stored all the same.
func (x *Indexer[T]) Swap(key string, obj T) (old T, existed bool, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	slot, existed := x.slots[key]
	if existed {
		old = x.objs[slot]
		x.objs[slot] = obj
	} else {
		slot = uint32(len(x.objs))
		x.slots[key] = slot
		x.objs = append(x.objs, obj)
		x.items = append(x.items, item[T]{key: key})
	}
	return old, existed, x.reindex(slot)
}

// Delete removes the object with obj's key. Removing what is not there is not
// an error.
func (x *Indexer[T]) Delete(obj T) error {
	key, err := x.keyOf(obj)
	if err != nil {
		return err
	}
	x.Remove(key)
	return nil
}

// Remove removes and returns the object with this key.
func (x *Indexer[T]) Remove(key string) (old T, existed bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	slot, existed := x.slots[key]
	if !existed {
		return old, false
	}
	old = x.objs[slot]
	x.unindex(slot, 0)
	x.moveLastTo(slot)
	delete(x.slots, key)
	return old, true
}

// moveLastTo closes the gap at slot with the last object.
func (x *Indexer[T]) moveLastTo(slot uint32) {
	last := uint32(len(x.objs) - 1)
	if slot != last {
		moved := x.items[last]
		x.objs[slot], x.items[slot] = x.objs[last], moved
		x.slots[moved.key] = slot
		for _, m := range moved.in {
			m.bucket.slots[m.at] = slot
		}
	}
	var zero T
	x.objs[last], x.items[last] = zero, item[T]{}
	x.objs, x.items = x.objs[:last], x.items[:last]
}

// Replace makes objs the whole content. On an error that does not match
// *IndexError nothing has changed.
func (x *Indexer[T]) Replace(objs []T) error {
	next := &Indexer[T]{
		keyOf: x.keyOf,
		slots: make(map[string]uint32, len(objs)),
		objs:  make([]T, 0, len(objs)),
		items: make([]item[T], 0, len(objs)),
	}
	for _, obj := range objs {
		key, err := x.keyOf(obj)
		if err != nil {
			return err
		}
		if slot, ok := next.slots[key]; ok {
			next.objs[slot] = obj
			continue
		}
		next.slots[key] = uint32(len(next.objs))
		next.objs = append(next.objs, obj)
		next.items = append(next.items, item[T]{key: key})
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.slots, x.objs, x.items = next.slots, next.objs, next.items
	for _, ix := range x.order {
		ix.buckets = make(map[string]*bucket[T])
	}
	return x.reindexAll()
}

// Get returns the object with this key.
func (x *Indexer[T]) Get(key string) (obj T, ok bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if slot, ok := x.slots[key]; ok {
		return x.objs[slot], true
	}
	return obj, false
}

// List returns all objects.
func (x *Indexer[T]) List() []T {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return slices.Clone(x.objs)
}

// Keys returns the keys of all objects.
func (x *Indexer[T]) Keys() []string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	keys := make([]string, len(x.items))
	for i := range x.items {
		keys[i] = x.items[i].key
	}
	return keys
}

// Len returns the number of objects.
func (x *Indexer[T]) Len() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return len(x.objs)
}

// Range calls visit for every object until it returns false. Writers wait
// meanwhile, and visit must not call the Indexer.
func (x *Indexer[T]) Range(visit func(key string, obj T) bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for i := range x.objs {
		if !visit(x.items[i].key, x.objs[i]) {
			return
		}
	}
}
