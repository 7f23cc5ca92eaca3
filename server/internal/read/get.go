package read

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/levelwire/levelwire/server/internal/watchcache"
)

// Get returns the object that the scope names, as the cache holds it: in its
// stored form, which is shared and must not be modified. An empty resourceVersion
// asks for the most recent state.
func (r *Reader) Get(ctx context.Context, scope Scope, resourceVersion string) (*watchcache.Object, error) {
	cache, err := r.filledCache(scope.Resource)
	if err != nil {
		return nil, err
	}
	snapshot, err := r.snapshotForGet(ctx, cache, resourceVersion)
	if err != nil {
		return nil, err
	}
	object, ok := snapshot.Get(scope.Resource.Key(scope.Namespace, scope.Name))
	if !ok {
		return nil, apierrors.NewNotFound(scope.Resource.GroupResource(), scope.Name)
	}
	return object, nil
}
