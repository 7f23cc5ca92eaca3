package informer

import (
	"k8s.io/apimachinery/pkg/labels"

	"github.com/levelwire/levelwire/client/cache"
	"github.com/levelwire/levelwire/client/rest"
)

// Lister reads an informer's local copy. Objects are shared: they must not be
// changed. It is safe for concurrent use.
type Lister[T rest.Object] struct{ indexer *cache.Indexer[T] }

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

// Len is the number of objects.
func (l Lister[T]) Len() int { return l.indexer.Len() }
