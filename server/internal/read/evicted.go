package read

import (
	"context"
	"errors"
	"slices"

	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/storage"
)

// storeBatch is how many keys are read from the store at a time. Objects that are
// not selected are dropped after each batch.
const storeBatch = 500

// storeReader reads from the store what a collection held at a revision that the
// cache has evicted, or never had: the server may have been started after it. Each
// object is decoded again, which costs what a list costs a server without a cache.
// It fails only if the store has compacted the revision.
type storeReader struct {
	store     storage.Reader
	cache     *watchcache.Cache
	revision  storage.Revision
	selection *watchcache.Selection
}

// page reads the page that begins at the source's start. How many objects remain
// after it is not said: the store would have to be read to the end.
func (r *storeReader) page(ctx context.Context, source readSource, prefix string) (Page, error) {
	// One object more than is wanted says whether there is a next page.
	objects, err := r.read(ctx, prefix, prefix+source.start, source.limit+1)
	if errors.Is(err, storage.ErrCompacted) {
		r.cache.Refused(source.start != "")
		return Page{}, source.expired
	}
	if err != nil {
		return Page{}, err
	}
	var page Page
	if source.limit > 0 && int64(len(objects)) > source.limit {
		objects = objects[:source.limit]
		if page.Meta.Continue, err = encodeContinue(r.revision, prefix, objects[source.limit-1].Key); err != nil {
			return Page{}, err
		}
	}
	page.Items = slices.Values(objects)
	return page, nil
}

// read returns the selected objects whose keys have the prefix, from the given key
// on: as many as wanted, or all if wanted is 1 or less.
func (r *storeReader) read(ctx context.Context, prefix, from string, wanted int64) ([]*watchcache.Object, error) {
	root := r.cache.Resource().StorePrefix
	var found []*watchcache.Object
	for {
		batch, err := r.store.List(ctx, root+prefix, storage.ListOptions{At: r.revision, From: root + from, Limit: storeBatch})
		if err != nil {
			return nil, err
		}
		for _, kv := range batch.Items {
			object, err := r.cache.Decode(kv.Key[len(root):], kv.Value, kv.Modified)
			if err != nil {
				return nil, err
			}
			if !r.selection.Matches(object) {
				continue
			}
			if found = append(found, object); wanted > 1 && int64(len(found)) == wanted {
				return found, nil
			}
		}
		if !batch.More || len(batch.Items) == 0 {
			return found, nil
		}
		from = batch.Items[len(batch.Items)-1].Key[len(root):] + "\x00"
	}
}
