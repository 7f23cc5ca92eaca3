package cached

import (
	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/cache"
)

// FieldIndexers returns the index that field selectors of a path need, to be
// given to AddIndexers of the informer. Value returns what an object has in the
// field. The path is only a name, but should be one that servers know, so that a
// program may list from them, too. Fields with several values, or none, need an
// index function of one's own under the path.
func FieldIndexers[T client.Object](path string, value func(obj T) string) cache.Indexers[T] {
	return cache.Indexers[T]{path: func(obj T) ([]string, error) { return []string{value(obj)}, nil }}
}

// LabelIndexers returns indexes of labels, to be given to AddIndexers of the
// informer. Lists whose label selectors say key=value or key in (...) look only
// at the objects with these values.
func LabelIndexers[T client.Object](keys ...string) cache.Indexers[T] {
	indexers := cache.Indexers[T]{}
	for _, key := range keys {
		indexers[labelIndex(key)] = func(obj T) ([]string, error) {
			if value, ok := obj.GetLabels()[key]; ok {
				return []string{value}, nil
			}
			return nil, nil
		}
	}
	return indexers
}

func labelIndex(key string) string { return "metadata.labels." + key }
