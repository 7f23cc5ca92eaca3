package registry

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/levelwire/levelwire/server/internal/registry/ownwrites"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/runqueue"
	"github.com/levelwire/levelwire/server/internal/status"
	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/storage"
)

// Get returns an object, for hooks that decide about other objects: from the cache,
// or from the store if the cache does not have the object (yet). As with Snapshot, it
// shows every write of the kind that this server has acknowledged; the writes of
// other servers may be missing for an instant. The result is the caller's.
func (r Registry) Get(ctx context.Context, namespace, name string) (resource.Object, error) {
	if err := r.waitForOwnWrites(ctx); err != nil {
		return nil, r.StoreError(name, err)
	}
	return r.GetRecent(ctx, namespace, name)
}

// GetRecent is Get for decisions that an instant's delay of the cache does not change. It
// does not wait for the cache.
func (r Registry) GetRecent(ctx context.Context, namespace, name string) (resource.Object, error) {
	cur, err := r.read(ctx, namespace, name, false)
	if err != nil {
		return nil, err
	}
	if cur.object == nil {
		return nil, r.notFound(name)
	}
	return cur.object, nil
}

// GetFromStore is Get from the store alone, for decisions that an old state must
// not lead to.
func (r Registry) GetFromStore(ctx context.Context, namespace, name string) (resource.Object, error) {
	cur, err := r.read(ctx, namespace, name, true)
	if err != nil {
		return nil, err
	}
	if cur.object == nil {
		return nil, r.notFound(name)
	}
	return cur.object, nil
}

// DecodeStored returns the object in a value of the store. The result is the
// caller's.
func (r Registry) DecodeStored(ctx context.Context, kv *storage.KeyValue) (resource.Object, error) {
	cur, err := r.fromStore(ctx, kv)
	if err != nil {
		return nil, err
	}
	return cur.object, nil
}

// Cache returns the cache of the kind, or nil if it has none (yet).
func (r Registry) Cache() *watchcache.Cache { return r.set.config.Cache(r.stored) }

// GetAs is Get for a known Go type. It fails if the object has another one.
func GetAs[T resource.Object](ctx context.Context, r Registry, namespace, name string) (T, error) {
	obj, err := r.Get(ctx, namespace, name)
	if err != nil {
		var none T
		return none, err
	}
	return As[T](r, obj)
}

// As returns an object of the registry in its Go type. It fails if the object has another
// one.
func As[T resource.Object](r Registry, obj resource.Object) (T, error) {
	typed, ok := obj.(T)
	if !ok {
		return typed, apierrors.NewInternalError(status.BadRequest("%s are kept as %T", r.res.GroupResource(), obj))
	}
	return typed, nil
}

// Snapshot returns the cached objects of the kind, in their stored form; none if the
// kind has no cache. It waits for a cache that is being filled.
//
// A snapshot shows every write of the kind that this server has acknowledged: a
// client that creates a LimitRange and then a pod finds the limits applied. If the
// cache does not reach such a write within ownwrites.MaxWait (the store's stream is
// broken, or the store was restored and has gone back), the snapshot is what the
// cache holds, as for every other reader of a cache, and later calls do not wait for
// that write again.
func (r Registry) Snapshot(ctx context.Context) (watchcache.Snapshot, error) {
	cache := r.Cache()
	if cache == nil {
		return watchcache.Snapshot{}, nil
	}
	if err := cache.WaitReady(ctx); err != nil {
		return watchcache.Snapshot{}, r.StoreError("", err)
	}
	if err := r.waitForOwnWrites(ctx); err != nil {
		return watchcache.Snapshot{}, r.StoreError("", err)
	}
	return cache.Current(), nil
}

// waitForOwnWrites does not wait for a cache that is being filled: a reader that finds
// none asks the store.
func (r Registry) waitForOwnWrites(ctx context.Context) error {
	cache := r.Cache()
	if cache == nil {
		return nil
	}
	select {
	case <-cache.Ready():
	default:
		return nil
	}
	writes := ownwrites.Comparison{Marks: r.marks(), Cache: cache}
	if writes.Shown() {
		return nil
	}
	task := runqueue.FromContext(ctx)
	task.Block()
	defer task.Unblock()
	return writes.Wait(ctx)
}

// DecodeAs decodes a cached object. The result is the caller's.
func DecodeAs[T resource.Object](ctx context.Context, r Registry, o *watchcache.Object) (T, error) {
	st, err := r.decode(ctx, o.JSON(), o.Revision, false)
	if err != nil {
		var none T
		return none, err
	}
	return As[T](r, st.object)
}

// WatchObject is Watch of one object. The namespace is "" for kinds without.
func (r Registry) WatchObject(ctx context.Context, namespace, name string) (*watchcache.Watcher, error) {
	selection, err := watchcache.NewSelection(r.res, namespace, name, nil, nil)
	if err != nil {
		return nil, err
	}
	return r.Watch(ctx, selection)
}

// Watch opens a cursor in the cache of the kind that begins with the current
// objects. selection may be nil. Watch waits for a cache that is being filled.
func (r Registry) Watch(ctx context.Context, selection *watchcache.Selection) (*watchcache.Watcher, error) {
	cache := r.set.config.Cache(r.stored)
	if cache == nil {
		return nil, apierrors.NewInternalError(status.BadRequest("%s have no cache", r.res.GroupResource()))
	}
	if err := cache.WaitReady(ctx); err != nil {
		return nil, err
	}
	current := cache.Current()
	return cache.Watch(watchcache.WatchOptions{Initial: &current, Selection: selection})
}
