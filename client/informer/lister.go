package informer

import (
	"k8s.io/apimachinery/pkg/labels"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/cache"
)

// Lister reads an informer's cache. Objects are shared: they must not be
// changed. It is safe for concurrent use.
type Lister[T client.Object] struct{ indexer *cache.Indexer[T] }

// Get returns an object by name; the namespace of a cluster-scoped one is "".
func (l Lister[T]) Get(namespace, name string) (T, bool) {
	return l.indexer.Get(cache.ObjectKey(namespace, name))
}

// List returns the objects of a namespace ("" for all) that the selector
// matches (nil for all), in no particular order. The slice is the caller's.
func (l Lister[T]) List(namespace string, selector labels.Selector) []T {
	var found []T
	if namespace == "" {
		found = l.indexer.List()
	} else {
		// The index exists in every informer.
		found, _ = l.indexer.ByIndex(cache.NamespaceIndex, namespace)
	}
	if selector == nil || selector.Empty() {
		return found
	}
	kept := found[:0]
	for _, obj := range found {
		if selector.Matches(labels.Set(obj.GetLabels())) {
			kept = append(kept, obj)
		}
	}
	clear(found[len(kept):])
	return kept
}

// ByIndex returns the objects that an index function gave this value.
func (l Lister[T]) ByIndex(name, value string) ([]T, error) {
	return l.indexer.ByIndex(name, value)
}

// Index returns the objects that share a value with obj in an index.
func (l Lister[T]) Index(name string, obj T) ([]T, error) { return l.indexer.Index(name, obj) }

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
func (l Lister[T]) ByKey(key string) (T, bool) { return l.indexer.Get(key) }

// Len is the number of objects.
func (l Lister[T]) Len() int { return l.indexer.Len() }
