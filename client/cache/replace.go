package cache

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Replace makes objs everything there is: it queues each as Replaced, and a
// tombstone (Deleted with FinalStateUnknown) for every object that is queued or
// known and missing from objs. version is the resourceVersion of the list; see
// Reached. Of two states of one object in objs, the one with the later resourceVersion counts;
// the last one if they cannot be compared.
//
// The slice belongs to the DeltaFIFO afterwards. An error is that of the
// KeyFunc; then Replace has changed nothing.
func (f *DeltaFIFO[T]) Replace(objs []T, version string) error {
	all := scope{}
	return f.supersede(all, objs, func(present map[string]struct{}) {
		f.queueTombstones(all, present)
		f.listed(version)
	})
}

// ReplaceNamespace is Replace for the objects of one of FIFOOptions.Namespaces,
// and for objects whose keys are those of MetaNamespaceKey. The caller sets the
// resourceVersion that all namespaces have reached with Reached.
func (f *DeltaFIFO[T]) ReplaceNamespace(namespace string, objs []T) error {
	of := scopeOf(namespace)
	return f.supersede(of, objs, func(present map[string]struct{}) { f.queueTombstones(of, present) })
}

// scope is what one list covers: all objects, or those of one namespace.
type scope struct{ namespace, prefix string }

func scopeOf(namespace string) scope {
	if namespace == "" {
		return scope{}
	}
	return scope{namespace: namespace, prefix: ObjectKey(namespace, "")}
}

func (p scope) has(key string) bool { return strings.HasPrefix(key, p.prefix) }

// supersede queues objs as Replaced and calls rest with their keys, which may
// queue more. The objects of the scope are complete then.
func (f *DeltaFIFO[T]) supersede(of scope, objs []T, rest func(present map[string]struct{})) error {
	keys, err := f.keysOf(objs)
	if err != nil {
		return err
	}
	f.mu.Lock()
	if f.ended {
		f.mu.Unlock()
		return ErrClosed
	}
	if len(f.items) == 0 {
		f.items = make(map[string]*pending[T], len(objs))
	}
	present := make(map[string]struct{}, len(keys))
	for i, key := range keys {
		before := len(present)
		if present[key] = struct{}{}; len(present) == before && f.hasLater(key, objs[i]) {
			continue
		}
		f.push(key, Delta[T]{Type: Replaced, Object: objs[i]})
	}
	rest(present)
	justSynced := f.completed(of)
	f.mu.Unlock()
	if justSynced && f.onSynced != nil {
		f.onSynced()
	}
	return nil
}

// hasLater reports whether what was queued last for key is a later state than obj. It needs
// f.mu.
func (f *DeltaFIFO[T]) hasLater(key string, obj T) bool {
	queued, ok := any(f.items[key].deltas.Newest().Object).(versioned)
	if !ok {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(any(obj).(versioned).GetResourceVersion(), queued.GetResourceVersion())
	return err == nil && order < 0
}

func (f *DeltaFIFO[T]) keysOf(objs []T) ([]string, error) {
	keys := make([]string, len(objs))
	for i, obj := range objs {
		key, err := f.keyOf(obj)
		if err != nil {
			return nil, err
		}
		keys[i] = key
	}
	return keys, nil
}

// queueTombstones queues a tombstone for each object of the scope whose key is
// not in present. It needs f.mu.
func (f *DeltaFIFO[T]) queueTombstones(of scope, present map[string]struct{}) {
	missing := func(key string) bool {
		_, ok := present[key]
		return !ok && of.has(key)
	}
	for p := f.head; p != nil; p = p.next {
		if last := p.deltas.Newest(); missing(p.key) && last.Type != Deleted {
			f.drop(p.key, last.Object)
		}
	}
	if c := f.current; c != nil && missing(c.key) && f.items[c.key] == nil {
		// The consumer has it in hand and will have put it into known.
		if last := c.deltas.Newest(); last.Type != Deleted {
			f.drop(c.key, last.Object)
		}
	}
	if f.known == nil {
		return
	}
	f.known.Range(func(key string, last T) bool {
		if missing(key) && f.items[key] == nil && (f.current == nil || f.current.key != key) {
			f.drop(key, last)
		}
		return true
	})
}

// drop queues a tombstone for an object that a list lacks. It needs f.mu.
func (f *DeltaFIFO[T]) drop(key string, last T) {
	f.pushTombstone(key, last)
	if f.onDropped != nil {
		f.onDropped(last)
	}
}

// pushTombstone needs f.mu.
func (f *DeltaFIFO[T]) pushTombstone(key string, last T) {
	f.push(key, Delta[T]{Type: Deleted, Object: last, FinalStateUnknown: true})
}

// completed records that the state of the scope is queued or was processed. The
// first time, HasSynced begins to wait for the objects of the scope that are
// still in the queue. completed reports whether HasSynced has just become true.
// It needs f.mu.
func (f *DeltaFIFO[T]) completed(of scope) bool {
	if _, first := f.unlisted[of.namespace]; !first {
		return false
	}
	delete(f.unlisted, of.namespace)
	for p := f.head; p != nil; p = p.next {
		if of.has(p.key) && !p.initial {
			p.initial = true
			f.initial++
		}
	}
	if c := f.current; c != nil && of.has(c.key) && !c.initial && !f.awaited {
		f.awaited = true
		f.initial++
	}
	return f.checkSynced()
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

// Pending returns the number of objects with changes that were not popped and processed: those in
// the queue, and the one that Pop hands out at this moment.
func (f *DeltaFIFO[T]) Pending() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(f.items)
	if f.current != nil && f.items[f.current.key] == nil {
		n++
	}
	return n
}

// Reached says that every change up to version was queued. The producer calls
// it after changes and for bookmarks, with versions that only grow.
func (f *DeltaFIFO[T]) Reached(version string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reached = version
	if version == "" {
		f.shown = ""
	}
}

// listed notes the version of a complete state. It may be older than what was popped before: the
// server was restored, then. It needs f.mu.
func (f *DeltaFIFO[T]) listed(version string) {
	f.reached = version
	if order, err := resourceversion.CompareResourceVersion(version, f.shown); f.shown != "" && (err != nil || order < 0) {
		f.shown = version
	}
}

// show notes that a change is popped. It needs f.mu.
func (f *DeltaFIFO[T]) show(d Delta[T]) {
	version := f.reached // of the list that a tombstone comes from
	if !d.FinalStateUnknown {
		if obj, ok := any(d.Object).(versioned); ok {
			version = obj.GetResourceVersion()
		}
	}
	if f.shown == "" {
		f.shown = version
	} else if order, err := resourceversion.CompareResourceVersion(f.shown, version); err == nil && order < 0 {
		f.shown = version
	}
}

// Shown returns the newest resourceVersion of a change that was popped, whether it was processed or not; "" if
// none was. Processed is the other bound, and may be older: changes that came before may be
// queued still, and Reached may not have been called. So Known shows everything up to Processed, and nothing after Shown, or
// Processed if that is newer.
func (f *DeltaFIFO[T]) Shown() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.shown
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

// Position is a place in the order in which a DeltaFIFO hands out objects.
type Position uint64

// Position returns the place behind everything that is queued now.
func (f *DeltaFIFO[T]) Position() Position {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.end
}

// Passed reports whether everything that was queued when Position returned at was
// popped and processed.
func (f *DeltaFIFO[T]) Passed(at Position) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.current != nil:
		return f.current.position > at
	case f.head != nil:
		return f.head.position > at
	default:
		return true
	}
}

// Settled returns the version that everything queued so far leads to, if all
// of it was popped and processed: Known then shows exactly that version.
func (f *DeltaFIFO[T]) Settled() (version string, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reached, f.current == nil && f.head == nil
}

// QueueTombstone queues a tombstone for the object with this key, as Replace does for
// those that are missing, unless nothing is known of it or changes of it are
// queued. It reports whether it did.
func (f *DeltaFIFO[T]) QueueTombstone(key string) (bool, error) {
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
		f.pushTombstone(key, last)
	}
	return known, nil
}
