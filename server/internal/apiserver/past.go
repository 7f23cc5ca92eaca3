package apiserver

import (
	"context"
	"errors"
	"slices"

	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/storage"
)

// pastBatch is how many keys are asked of the store at a time. What is
// selected from them is kept, the rest is not.
const pastBatch = 500

// pastReader reads from the store what a collection was at a revision that the
// cache has forgotten: after a restart, or because more has happened since
// than the cache remembers. Objects are decoded anew, so this costs what a
// list costs elsewhere; as long as the store has the revision it does not fail.
type pastReader struct {
	store     storage.Reader
	cache     *watchcache.Cache
	revision  storage.Revision
	selection *watchcache.Selection
}

// page reads the part of the collection that the options ask for.
func (p *pastReader) page(ctx context.Context, at place, prefix string, o *listOptions) (page, error) {
	// One more than is wanted tells whether there is more.
	objects, err := p.read(ctx, prefix, prefix+at.start, o.limit+1)
	if errors.Is(err, storage.ErrCompacted) {
		p.cache.Refused(at.start != "")
		return page{}, at.forgotten
	}
	if err != nil {
		return page{}, err
	}
	out := page{meta: o.meta(p.revision)}
	if o.limit > 0 && int64(len(objects)) > o.limit {
		objects = objects[:o.limit]
		// How many remain is not told: it would take reading them.
		if out.meta.Continue, err = encodeContinue(p.revision, prefix, objects[o.limit-1].Key); err != nil {
			return page{}, err
		}
	}
	out.items = slices.Values(objects)
	return out, nil
}

// read returns the selected objects whose keys have the prefix, from the given
// key on; want of them, or all if it is 1 or less.
func (p *pastReader) read(ctx context.Context, prefix, from string, want int64) ([]*watchcache.Object, error) {
	root := p.cache.Resource().StorePrefix
	var found []*watchcache.Object
	for {
		got, err := p.store.List(ctx, root+prefix, storage.ListOptions{At: p.revision, From: root + from, Limit: pastBatch})
		if err != nil {
			return nil, err
		}
		for _, kv := range got.Items {
			object, err := p.cache.Decode(kv.Key[len(root):], kv.Value, kv.Modified)
			if err != nil {
				return nil, err
			}
			if !p.selection.Matches(object) {
				continue
			}
			if found = append(found, object); want > 1 && int64(len(found)) == want {
				return found, nil
			}
		}
		if !got.More || len(got.Items) == 0 {
			return found, nil
		}
		from = got.Items[len(got.Items)-1].Key[len(root):] + "\x00"
	}
}
