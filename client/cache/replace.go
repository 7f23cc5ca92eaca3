package cache

import "strings"

// Replace makes objs everything there is: it queues each as Replaced, and a
// tombstone (Deleted with FinalStateUnknown) for every object that is queued
// or known and missing from objs. version is that of the list; see Reached.
//
// The slice belongs to the DeltaFIFO afterwards. On an error, which is that of
// the KeyFunc, nothing has changed.
func (f *DeltaFIFO[T]) Replace(objs []T, version string) error {
	return f.replace(part{}, objs, func() { f.reached = version })
}

// ReplaceNamespace is Replace for the objects of one of FIFOOptions.Namespaces,
// and for objects whose keys are those of MetaNamespaceKey. The version that
// all namespaces have reached is left to Reached.
func (f *DeltaFIFO[T]) ReplaceNamespace(namespace string, objs []T) error {
	return f.replace(part{namespace: namespace, prefix: ObjectKey(namespace, "")}, objs, func() {})
}

// part is what a list is a list of: everything, or a namespace.
type part struct{ namespace, prefix string }

func (p part) has(key string) bool { return strings.HasPrefix(key, p.prefix) }

// replace calls done under the lock.
func (f *DeltaFIFO[T]) replace(of part, objs []T, done func()) error {
	keys, err := f.keysOf(objs)
	if err != nil {
		return err
	}
	f.mu.Lock()
	if f.ended {
		f.mu.Unlock()
		return ErrClosed
	}
	_, first := f.unlisted[of.namespace]
	delete(f.unlisted, of.namespace)
	if len(f.items) == 0 {
		f.items = make(map[string]*pending[T], len(objs))
	}
	present := make(map[string]struct{}, len(keys))
	for i, key := range keys {
		present[key] = struct{}{}
		f.markInitial(f.push(key, Delta[T]{Type: Replaced, Object: objs[i]}), first)
	}
	f.bury(of, present, first)
	done()
	justSynced := first && f.checkSynced()
	f.mu.Unlock()
	if justSynced && f.onSynced != nil {
		f.onSynced()
	}
	return nil
}

// bury queues tombstones for what is of a part and not present. It needs f.mu.
func (f *DeltaFIFO[T]) bury(of part, present map[string]struct{}, first bool) {
	gone := func(key string, last T) {
		f.markInitial(f.push(key, Delta[T]{Type: Deleted, Object: last, FinalStateUnknown: true}), first)
	}
	missing := func(key string) bool {
		_, ok := present[key]
		return !ok && of.has(key)
	}
	for p := f.head; p != nil; p = p.next {
		if last := p.deltas.Newest(); missing(p.key) {
			if last.Type == Deleted {
				f.markInitial(p, first)
				continue
			}
			gone(p.key, last.Object)
		}
	}
	if c := f.current; c != nil && missing(c.key) && f.items[c.key] == nil {
		// The consumer has it in hand and will have put it into known.
		if last := c.deltas.Newest(); last.Type != Deleted {
			gone(c.key, last.Object)
		}
	}
	if f.known == nil {
		return
	}
	f.known.Range(func(key string, last T) bool {
		if !missing(key) || f.items[key] != nil || f.current != nil && f.current.key == key {
			return true
		}
		gone(key, last)
		return true
	})
}

// markInitial makes p an object that HasSynced waits for. It needs f.mu.
func (f *DeltaFIFO[T]) markInitial(p *pending[T], first bool) {
	if first && !p.initial {
		p.initial = true
		f.initial++
	}
}

// checkSynced reports whether it has just made HasSynced true. It needs f.mu.
func (f *DeltaFIFO[T]) checkSynced() bool {
	if len(f.unlisted) > 0 || f.initial > 0 || f.HasSynced() {
		return false
	}
	close(f.synced)
	return true
}

// HasSynced reports whether everything that the first Replace queued, or that
// of each namespace, was popped and processed.
func (f *DeltaFIFO[T]) HasSynced() bool {
	select {
	case <-f.synced:
		return true
	default:
		return false
	}
}

// Synced returns a channel that is closed when HasSynced becomes true.
func (f *DeltaFIFO[T]) Synced() <-chan struct{} { return f.synced }

// Resync queues every known object as Sync, except those with changes in the
// queue, which will be seen anyway.
func (f *DeltaFIFO[T]) Resync() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return ErrClosed
	}
	if f.known == nil {
		return nil
	}
	f.known.Range(func(key string, obj T) bool {
		if f.items[key] == nil && (f.current == nil || f.current.key != key) {
			f.push(key, Delta[T]{Type: Sync, Object: obj})
		}
		return true
	})
	return nil
}

// List returns the newest state of every object in the queue, deleted ones
// included, oldest change first.
func (f *DeltaFIFO[T]) List() []T {
	f.mu.Lock()
	defer f.mu.Unlock()
	objs := make([]T, 0, len(f.items))
	for p := f.head; p != nil; p = p.next {
		objs = append(objs, p.deltas.Newest().Object)
	}
	return objs
}

// Len returns the number of objects in the queue.
func (f *DeltaFIFO[T]) Len() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.items)
}

// Reached says that every change up to version was queued. The producer calls
// it after changes and for bookmarks, with versions that only grow.
func (f *DeltaFIFO[T]) Reached(version string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reached = version
}

// Processed returns the version up to which every change was surely popped and
// processed; "" before anything was.
func (f *DeltaFIFO[T]) Processed() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.current != nil:
		return f.current.before
	case f.head != nil:
		return f.head.before
	default:
		return f.reached
	}
}

// Settled returns the version that everything queued so far leads to, if all
// of it was popped and processed: Known then shows exactly that version.
func (f *DeltaFIFO[T]) Settled() (version string, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reached, f.current == nil && f.head == nil
}

// Bury queues a tombstone for the object with this key, as Replace does for
// those that are missing, unless nothing is known of it or changes of it are
// queued. It reports whether it did.
func (f *DeltaFIFO[T]) Bury(key string) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return false, ErrClosed
	}
	if f.known == nil || f.items[key] != nil || f.current != nil && f.current.key == key {
		return false, nil
	}
	last, known := f.known.Get(key)
	if known {
		f.push(key, Delta[T]{Type: Deleted, Object: last, FinalStateUnknown: true})
	}
	return known, nil
}
