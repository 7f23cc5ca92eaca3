package informer

import (
	"iter"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/cache"
	"github.com/levelwire/levelwire/client/internal/deepcopy"
	"github.com/levelwire/levelwire/client/scheme"
)

// Lister reads an informer's cache. Objects are shared, the cache's own, and equal parts
// of different objects are kept once: they must not be changed. Copies returns a Lister
// whose objects may be. It is safe for concurrent use.
type Lister[T client.Object] struct {
	indexer store[T]
	copies  bool
}

// Copies returns the same Lister whose objects are deep copies, which belong to the
// caller. A copy of a pod takes some 8 KiB and 10 µs, so copy late: select with a
// Lister that shares, and copy what is to be changed.
func (l Lister[T]) Copies() Lister[T] {
	l.copies = true
	return l
}

// Get returns an object by name; the namespace of a cluster-scoped one is "".
func (l Lister[T]) Get(namespace, name string) (T, bool) {
	return l.ByKey(cache.ObjectKey(namespace, name))
}

// List returns the objects of a namespace ("" for all) that the selector
// matches (nil for all), in no particular order. The slice is the caller's.
func (l Lister[T]) List(namespace string, selector labels.Selector) []T {
	found := l.in(namespace)
	if selector != nil && !selector.Empty() {
		kept := found[:0]
		for _, obj := range found {
			if selector.Matches(labels.Set(obj.GetLabels())) {
				kept = append(kept, obj)
			}
		}
		clear(found[len(kept):])
		found = kept
	}
	return l.owned(found)
}

// in returns the objects of a namespace, or all.
func (l Lister[T]) in(namespace string) []T {
	if namespace == "" {
		return l.indexer.List()
	}
	// The index exists in every informer.
	found, _ := l.indexer.ByIndex(cache.NamespaceIndex, namespace)
	return found
}

// Count returns how many objects List would, without a slice of them.
func (l Lister[T]) Count(namespace string, selector labels.Selector) int {
	everything := selector == nil || selector.Empty()
	switch {
	case everything && namespace == "":
		return l.indexer.Len()
	case everything:
		n, _ := l.indexer.CountByIndex(cache.NamespaceIndex, namespace)
		return n
	}
	count := 0
	visit := func(_ string, obj T) bool {
		if selector.Matches(labels.Set(obj.GetLabels())) {
			count++
		}
		return true
	}
	if namespace == "" {
		l.indexer.Range(visit)
	} else {
		_ = l.indexer.RangeIndex(cache.NamespaceIndex, namespace, visit)
	}
	return count
}

// CountByIndex returns how many objects an index function gave this value.
func (l Lister[T]) CountByIndex(name, value string) (int, error) {
	return l.indexer.CountByIndex(name, value)
}

// All returns an iterator over the objects of a namespace ("" for all) that the
// selector matches (nil for all), as they were when it began.
func (l Lister[T]) All(namespace string, selector labels.Selector) iter.Seq[T] {
	return func(yield func(T) bool) {
		for _, obj := range l.in(namespace) {
			if selector != nil && !selector.Matches(labels.Set(obj.GetLabels())) {
				continue
			}
			if !yield(l.own(obj)) {
				return
			}
		}
	}
}

// ByIndex returns the objects that an index function gave this value.
func (l Lister[T]) ByIndex(name, value string) ([]T, error) {
	found, err := l.indexer.ByIndex(name, value)
	return l.owned(found), err
}

// ByIndexAny returns the objects that an index function gave any of these values, each
// once, as they are at one moment. A ByIndex for each value would miss an object, or
// return it twice, that changes from one of the values to another meanwhile.
func (l Lister[T]) ByIndexAny(name string, values ...string) ([]T, error) {
	found, err := l.indexer.ByIndexAny(name, values...)
	return l.owned(found), err
}

// Index returns the objects that share a value with obj in an index.
func (l Lister[T]) Index(name string, obj T) ([]T, error) {
	found, err := l.indexer.Index(name, obj)
	return l.owned(found), err
}

// IndexKeys returns the keys of the objects that an index function gave this
// value: "namespace/name", or the name of a cluster-scoped object.
func (l Lister[T]) IndexKeys(name, value string) ([]string, error) {
	return l.indexer.IndexKeys(name, value)
}

// IndexValues returns every value that an index has objects under.
func (l Lister[T]) IndexValues(name string) ([]string, error) { return l.indexer.IndexValues(name) }

// Indexers returns the index functions by name, those that every informer has
// included. The map is the caller's.
func (l Lister[T]) Indexers() cache.Indexers[T] { return l.indexer.Indexers() }

// Keys returns the keys of all objects, in no particular order.
func (l Lister[T]) Keys() []string { return l.indexer.Keys() }

// ByKey is Get with a key.
func (l Lister[T]) ByKey(key string) (obj T, ok bool) {
	if obj, ok = l.indexer.Get(key); ok {
		obj = l.own(obj)
	}
	return obj, ok
}

// Scope returns whether the objects are in namespaces, as those in the cache show; "" if
// there are none. It is for resources whose scope the scheme does not know.
func (l Lister[T]) Scope() scheme.Scope {
	outside, err := l.CountByIndex(cache.NamespaceIndex, "")
	switch {
	case err != nil || l.Len() == 0:
		return ""
	case outside > 0:
		return scheme.Cluster
	default:
		return scheme.Namespaced
	}
}

// Len is the number of objects.
func (l Lister[T]) Len() int { return l.indexer.Len() }

// own returns what the caller gets in an object's place.
func (l Lister[T]) own(obj T) T {
	if l.copies {
		return deepcopy.Of(obj)
	}
	return obj
}

// owned is own for a slice, which is changed.
func (l Lister[T]) owned(objs []T) []T {
	if l.copies {
		for n := range objs {
			objs[n] = deepcopy.Of(objs[n])
		}
	}
	return objs
}
