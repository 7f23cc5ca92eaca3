package informer

import (
	"reflect"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/cache"
)

// store holds the objects of an informer: a cache.Indexer, whose methods these
// are, or a compressedStore.
type store[T client.Object] interface {
	KeyOf(obj T) (string, error)
	AddIndexers(indexers cache.Indexers[T]) error
	Swap(key string, obj T) (old T, existed bool, err error)
	Remove(key string) (old T, existed bool)
	Replace(objs []T) error

	Get(key string) (T, bool)
	List() []T
	Keys() []string
	Len() int
	IndexSizes() []cache.IndexSize
	Range(visit func(key string, obj T) bool)
	ByIndex(name, value string) ([]T, error)
	ByIndexAny(name string, values ...string) ([]T, error)
	Index(name string, obj T) ([]T, error)
	IndexKeys(name, value string) ([]string, error)
	IndexValues(name string) ([]string, error)
	CountByIndex(name, value string) (int, error)
	RangeIndex(name, value string, visit func(key string, obj T) bool) error
	Indexers() cache.Indexers[T]
}

// known is what the DeltaFIFO asks of the store, which may still change before the
// start.
type known[T client.Object] struct{ informer *SharedInformer[T] }

func (k known[T]) Get(key string) (T, bool)                 { return k.informer.indexer.Get(key) }
func (k known[T]) Range(visit func(key string, obj T) bool) { k.informer.indexer.Range(visit) }

// StripManagedFields is a transform for Options.Transform: it drops
// metadata.managedFields, which programs other than kubectl seldom read and which
// are a large part of most objects. An update with such an object keeps the
// server's. Objects are interned with it as they are without a transform.
func StripManagedFields(obj client.Object) error {
	obj.SetManagedFields(nil)
	return nil
}

// isStripManagedFields reports whether a transform is StripManagedFields itself, which
// writes to the object's own struct only and so leaves interned parts as they are.
func isStripManagedFields(transform func(client.Object) error) bool {
	return reflect.ValueOf(transform).Pointer() == reflect.ValueOf(StripManagedFields).Pointer()
}
