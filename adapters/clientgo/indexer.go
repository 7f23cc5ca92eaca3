package clientgo

import (
	"fmt"

	clientgocache "k8s.io/client-go/tools/cache"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/cache"
	"github.com/levelwire/levelwire/client/informer"
)

// Indexer makes an informer's cache a cache.Indexer of client-go, and so a
// cache.Store: what typed listers, such as those of k8s.io/client-go/listers,
// are made of. It is read-only: what would write returns ErrNotSupported.
func Indexer[T client.Object](i *informer.SharedInformer[T]) clientgocache.Indexer {
	return indexer[T]{i, i.Lister()}
}

type indexer[T client.Object] struct {
	informer *informer.SharedInformer[T]
	lister   informer.Lister[T]
}

func untyped[T any](objs []T) []any {
	all := make([]any, len(objs))
	for n, obj := range objs {
		all[n] = obj
	}
	return all
}

func (x indexer[T]) readOnly(method string) error {
	return fmt.Errorf("%w: %s; the cache of informer %s is read-only: write to the API server", ErrNotSupported, method, x.informer.Name())
}

func (x indexer[T]) Add(any) error               { return x.readOnly("Add") }
func (x indexer[T]) Update(any) error            { return x.readOnly("Update") }
func (x indexer[T]) Delete(any) error            { return x.readOnly("Delete") }
func (x indexer[T]) Replace([]any, string) error { return x.readOnly("Replace") }

// Resync does nothing, as that of client-go's stores: resyncs are handlers'.
func (x indexer[T]) Resync() error { return nil }

// Bookmark does nothing: the informer itself notes bookmarks.
func (x indexer[T]) Bookmark(string) {}

func (x indexer[T]) LastStoreSyncResourceVersion() string {
	return x.informer.LastSyncResourceVersion()
}

func (x indexer[T]) List() []any        { return untyped(x.lister.List("", nil)) }
func (x indexer[T]) ListKeys() []string { return x.lister.Keys() }

// Get accepts an object of the informer's type, a tombstone, or an
// ExplicitKey.
func (x indexer[T]) Get(obj any) (item any, exists bool, err error) {
	key, err := clientgocache.DeletionHandlingMetaNamespaceKeyFunc(obj)
	if err != nil {
		return nil, false, err
	}
	return x.GetByKey(key)
}

func (x indexer[T]) GetByKey(key string) (item any, exists bool, err error) {
	obj, ok := x.lister.ByKey(key)
	if !ok {
		return nil, false, nil // not a nil T in an interface
	}
	return obj, true, nil
}

func (x indexer[T]) Index(name string, obj any) ([]any, error) {
	typed, ok := obj.(T)
	if !ok {
		return nil, fmt.Errorf("informer %s has no objects of type %T", x.informer.Name(), obj)
	}
	found, err := x.lister.Index(name, typed)
	return untyped(found), err
}

func (x indexer[T]) IndexKeys(name, value string) ([]string, error) {
	return x.lister.IndexKeys(name, value)
}

// ListIndexFuncValues returns nil for an index that does not exist.
func (x indexer[T]) ListIndexFuncValues(name string) []string {
	values, err := x.lister.IndexValues(name)
	if err != nil {
		return nil
	}
	return values
}

func (x indexer[T]) ByIndex(name, value string) ([]any, error) {
	found, err := x.lister.ByIndex(name, value)
	return untyped(found), err
}

func (x indexer[T]) GetIndexers() clientgocache.Indexers {
	functions := clientgocache.Indexers{}
	for name, function := range x.lister.Indexers() {
		functions[name] = func(obj any) ([]string, error) {
			typed, ok := obj.(T)
			if !ok {
				return nil, fmt.Errorf("informer %s has no objects of type %T", x.informer.Name(), obj)
			}
			return function(typed)
		}
	}
	return functions
}

// AddIndexers may be called at any time. It fails if a name is taken; the
// index clientgocache.NamespaceIndex exists in every informer.
func (x indexer[T]) AddIndexers(indexers clientgocache.Indexers) error {
	typed := cache.Indexers[T]{}
	for name, function := range indexers {
		if function == nil {
			return fmt.Errorf("index %q has no function", name)
		}
		typed[name] = func(obj T) ([]string, error) { return function(obj) }
	}
	return x.informer.AddIndexers(typed)
}
