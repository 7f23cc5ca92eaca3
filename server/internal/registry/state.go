package registry

import (
	"context"
	"errors"
	"fmt"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/storage"
)

// state is a state of an object that a write is decided on. object is nil if
// the object does not exist.
type state struct {
	json     []byte // cached form of the stored resource; shared, never changes
	revision storage.Revision
	object   resource.Object // in the endpoint's shape
	// fresh: the store has returned it during this request. A state from the
	// cache may have been replaced already; what is decided on it is valid only
	// once the store has compared its revision.
	fresh bool
	// stale: the store would keep the same object in another form (storage.KeyValue).
	// It is known of fresh states only.
	stale bool
}

// missing is the state of an object that does not exist. Shared, not to be modified.
var missing = &state{fresh: true}

// read returns the state of an object that the cache holds. If it must be fresh,
// or the cache does not have the object, it returns the one that the store holds.
func (r Registry) read(ctx context.Context, namespace, name string, fresh bool) (*state, error) {
	key := r.stored.Key(namespace, name)
	if !fresh {
		if st, err := r.cached(ctx, key); st != nil || err != nil {
			return st, err
		}
	}
	kv, err := r.set.config.Store.Get(ctx, r.stored.StorePrefix+key, 0)
	if errors.Is(err, storage.ErrNotFound) {
		return missing, nil
	}
	if err != nil {
		return nil, r.StoreError(name, err)
	}
	return r.fromStore(ctx, &kv)
}

// cached returns nil if the cache is not ready or does not have the object: that
// an object does not exist is never taken from the cache.
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
	return r.decode(ctx, obj.JSON(), obj.Revision, false)
}

// fromStore returns the state in a value that a read or a conflict returned. kv
// nil means that the key does not exist.
func (r Registry) fromStore(ctx context.Context, kv *storage.KeyValue) (*state, error) {
	if kv == nil {
		return missing, nil
	}
	json, err := r.stored.WithRevision(kv.Value, int64(kv.Modified))
	var st *state
	if err == nil {
		st, err = r.decode(ctx, json, kv.Modified, true)
	}
	if err != nil {
		if unreadable := storage.CheckReadable(kv.Value); unreadable != nil {
			err = fmt.Errorf("%s: %w", kv.Key, unreadable)
		}
		return nil, r.StoreError(kv.Key, err)
	}
	st.stale = kv.Stale
	return st, nil
}

func (r Registry) decode(ctx context.Context, json []byte, rev storage.Revision, fresh bool) (*state, error) {
	obj, err := r.res.DecodeInPlace(ctx, json)
	if err != nil {
		return nil, r.StoreError("", err)
	}
	return &state{json: json, revision: rev, object: obj, fresh: fresh}, nil
}
