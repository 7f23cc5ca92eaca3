package registry

import (
	"context"
	"errors"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/storage"
)

// state is one state of an object that a write is decided on. object is nil if
// it does not exist.
type state struct {
	json     []byte // cached form of the stored resource, shared
	revision storage.Revision
	object   resource.Object // in the endpoint's shape
	// fresh: the store itself said so during this request. A state from the
	// cache may have been replaced already; what was decided on it holds only
	// once the store has compared its revision.
	fresh bool
}

// read returns the state of an object: what the cache holds, or, if it must be
// fresh or the cache knows nothing, what the store holds.
func (r Registry) read(ctx context.Context, namespace, name string, fresh bool) (*state, error) {
	key := r.stored.Key(namespace, name)
	if !fresh {
		if st, err := r.cached(ctx, key); st != nil || err != nil {
			return st, err
		}
	}
	kv, err := r.set.config.Store.Get(ctx, r.stored.StorePrefix+key, 0)
	if errors.Is(err, storage.ErrNotFound) {
		return &state{fresh: true}, nil
	}
	if err != nil {
		return nil, r.storeError(name, err)
	}
	return r.fromStore(ctx, &kv)
}

// cached returns nil if the cache is not ready or does not have the object:
// absence is never taken from the cache.
func (r Registry) cached(ctx context.Context, key string) (*state, error) {
	cache := r.set.config.Cache(r.stored)
	if cache == nil {
		return nil, nil
	}
	select {
	case <-cache.Ready():
	default:
		return nil, nil
	}
	obj, ok := cache.Current().Get(key)
	if !ok {
		return nil, nil
	}
	return r.decode(ctx, obj.JSON, obj.Revision, false)
}

// fromStore takes what a read or a conflict returned; nil means that the key
// does not exist.
func (r Registry) fromStore(ctx context.Context, kv *storage.KeyValue) (*state, error) {
	if kv == nil {
		return &state{fresh: true}, nil
	}
	json, err := r.stored.WithRevision(kv.Value, int64(kv.Modified))
	if err != nil {
		return nil, r.storeError(kv.Key, err)
	}
	return r.decode(ctx, json, kv.Modified, true)
}

func (r Registry) decode(ctx context.Context, json []byte, rev storage.Revision, fresh bool) (*state, error) {
	obj, err := r.res.Decode(ctx, json)
	if err != nil {
		return nil, r.storeError("", err)
	}
	return &state{json: json, revision: rev, object: obj, fresh: fresh}, nil
}

// result describes a state that is in the store. json is its cached form as
// the stored resource.
func (r Registry) result(obj resource.Object, json []byte, rev storage.Revision) (*Result, error) {
	obj.SetResourceVersion(formatRevision(rev))
	if r.res != r.stored {
		var err error
		if json, err = r.res.Marshal(obj); err != nil {
			return nil, r.storeError(obj.GetName(), err)
		}
	}
	obj.GetObjectKind().SetGroupVersionKind(r.res.GroupVersionKind())
	return &Result{Object: obj, JSON: json, Revision: rev}, nil
}

// tried describes what a dry run would have written.
func (r Registry) tried(obj resource.Object, rev storage.Revision) (*Result, error) {
	obj.SetResourceVersion("")
	if rev > 0 {
		obj.SetResourceVersion(formatRevision(rev))
	}
	obj.GetObjectKind().SetGroupVersionKind(r.res.GroupVersionKind())
	json, err := r.res.Marshal(obj)
	if err != nil {
		return nil, r.storeError(obj.GetName(), err)
	}
	return &Result{Object: obj, JSON: json, Revision: rev}, nil
}
