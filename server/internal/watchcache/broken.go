package watchcache

import (
	"context"
	"errors"

	"github.com/levelwire/levelwire/storage"
)

// mostBroken is how many values of a key that cannot be decoded are passed over
// in search of one that can.
const mostBroken = 32

// errUntold: what a key was when it could last be decoded has been forgotten.
var errUntold = errors.New("the last good state is unknown")

// lastGood reads what a key was before a revision when it could last be decoded:
// what caches go on showing while it cannot be. It is nil if there was nothing.
// It fails with errUntold if the store's history does not reach back that far, and
// with storage.ErrCompacted if that does not even reach to the revision.
func (c *Cache) lastGood(ctx context.Context, store storage.Reader, prefix, key string, before storage.Revision) (*Object, error) {
	for n := range mostBroken {
		if before <= 1 {
			return nil, nil
		}
		item, err := store.Get(ctx, prefix+key, before-1)
		switch {
		case errors.Is(err, storage.ErrNotFound):
			return nil, nil
		case n > 0 && errors.Is(err, storage.ErrCompacted):
			return nil, errUntold
		case err != nil:
			return nil, err
		}
		if o, err := c.Decode(key, item.Value, item.Modified); err == nil {
			o.created, o.steady = item.Created, item.Modified
			return o, nil
		}
		before = item.Modified
	}
	return nil, errUntold
}
