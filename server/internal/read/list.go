package read

import (
	"context"
	"iter"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/storage"
)

// Page is the answer to a list: a collection, or a part of it, at one revision. To
// hold it locks, copies and decodes nothing. Its objects are in their stored form,
// shared, and must not be modified.
type Page struct {
	// Items may be iterated several times and yields the same objects each time.
	Items iter.Seq[*watchcache.Object]
	// Runs yields the same objects in the runs in which they lie in the cache; nil
	// if they do not lie together.
	Runs iter.Seq[watchcache.Run]
	// Meta has the resourceVersion and, if there may be more, the continue token.
	Meta metav1.ListMeta
}

// List returns the part of a collection that the options ask for, at the revision
// that they ask for. As in Kubernetes, one that the store has compacted has expired,
// although a cache keeps it for watches that resume.
func (r *Reader) List(ctx context.Context, scope Scope, opts *metav1.ListOptions) (Page, error) {
	return r.list(ctx, scope, opts, r.compacted(scope.Resource.Stored()))
}

// ListRetained is List for those who ask for what a cache keeps: a revision has expired if
// neither the cache nor the store has it.
func (r *Reader) ListRetained(ctx context.Context, scope Scope, opts *metav1.ListOptions) (Page, error) {
	return r.list(ctx, scope, opts, 0)
}

// list is List; what a cache has of revisions before compacted is not looked at.
func (r *Reader) list(ctx context.Context, scope Scope, opts *metav1.ListOptions, compacted storage.Revision) (Page, error) {
	sel, err := scope.parse(opts, validateList)
	if err != nil {
		return Page{}, err
	}
	selection, err := scope.selection(sel)
	if err != nil {
		return Page{}, err
	}
	cache, err := r.filledCache(scope.Resource)
	if err != nil {
		return Page{}, err
	}
	if scope.selectsOne(sel, opts) {
		opts = withoutLegacyMatch(opts)
	}
	source, err := r.sourceOfList(ctx, cache, opts, compacted)
	if err != nil {
		return Page{}, err
	}
	if selection, err = r.visible(ctx, scope, cache, selection, source, opts); err != nil {
		return Page{}, err
	}
	tracePlan(ctx, source, selection)
	var page Page
	revision, prefix := source.snapshot.Revision(), scope.keyPrefix()
	if source.storeRevision != 0 {
		revision = source.storeRevision
		store := storeReader{store: r.storeOf(cache.Resource()), cache: cache, revision: revision, selection: selection}
		page, err = store.page(ctx, source, prefix)
	} else {
		page, err = pageOfSnapshot(source, selection, prefix)
	}
	page.Meta.ResourceVersion = FormatResourceVersion(revision)
	if sel.shard != nil {
		// The list says that it is a part, so that no client takes it for the whole
		// (KEP-5866).
		page.Meta.ShardInfo = &metav1.ShardInfo{Selector: sel.shard.String()}
	}
	return page, err
}

// pageOfSnapshot selects from the source's snapshot.
func pageOfSnapshot(source readSource, selection *watchcache.Selection, prefix string) (Page, error) {
	page := Page{Items: source.snapshot.Select(selection, prefix+source.start)}
	if runs, ok := source.snapshot.Runs(selection, prefix+source.start); ok {
		page.setRuns(runs)
	}
	if source.limit == 0 {
		return page, nil
	}
	last, more := page.cut(source.limit)
	if !more {
		return page, nil
	}
	token, err := encodeContinue(source.snapshot.Revision(), prefix, last)
	if err != nil {
		return Page{}, err
	}
	page.Meta.Continue = token
	if !selection.Filters() && selection.Fields.Empty() { // else they would have to be counted one by one
		remaining := int64(source.snapshot.Count(prefix, last+"\x00"))
		page.Meta.RemainingItemCount = &remaining
	}
	return page, nil
}

// setRuns makes the page consist of runs.
func (p *Page) setRuns(runs iter.Seq[watchcache.Run]) {
	p.Runs = runs
	p.Items = func(yield func(*watchcache.Object) bool) {
		for run := range runs {
			for i := range run.Len() {
				if !yield(run.Object(i)) {
					return
				}
			}
		}
	}
}

// cut keeps the first limit items, and returns the key of the last one and whether
// there are more.
func (p *Page) cut(limit int64) (last string, more bool) {
	if p.Runs != nil {
		return p.cutRuns(limit)
	}
	return p.cutItems(limit)
}

func (p *Page) cutItems(limit int64) (last string, more bool) {
	var kept []*watchcache.Object
	for object := range p.Items {
		if int64(len(kept)) == limit {
			more = true
			break
		}
		kept = append(kept, object)
		last = object.Key
	}
	p.Items = slices.Values(kept)
	return last, more
}

func (p *Page) cutRuns(limit int64) (last string, more bool) {
	var kept []watchcache.Run
	for run := range p.Runs {
		if limit == 0 {
			more = true
			break
		}
		head := run.Head(int(min(limit, int64(run.Len()))))
		kept = append(kept, head)
		last = head.Object(head.Len() - 1).Key
		if head.Len() < run.Len() {
			more = true
			break
		}
		limit -= int64(head.Len())
	}
	p.setRuns(slices.Values(kept))
	return last, more
}
