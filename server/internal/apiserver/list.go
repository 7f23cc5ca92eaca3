package apiserver

import (
	"iter"
	"net/http"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/status"
	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/storage"
)

// list answers with the objects of a collection, all of one snapshot. Nothing
// is locked, copied or decoded to hold it: its JSON is the concatenation of
// the cached objects.
func (s *Server) list(w http.ResponseWriter, r *http.Request, q *request) error {
	form, err := negotiate(r, offerFor(listForm, q.resource))
	if err != nil {
		return err
	}
	include, err := includeObject(q.query)
	if err != nil {
		return err
	}
	page, err := s.page(r, q)
	if err != nil {
		return err
	}
	presenter := s.presenter(q.resource, form)
	if err := presenter.prepare(r.Context(), page.items); err != nil {
		return err
	}
	a := newAnswer(w, r, form.contentType())
	writer := listWriter{answer: a, presenter: presenter, include: include}
	err = writer.write(page)
	if err == nil {
		err = a.finish()
	}
	return a.release(err)
}

// page is what one list request is answered with. Iterating items again gives
// the same objects.
type page struct {
	items iter.Seq[*watchcache.Object]
	runs  iter.Seq[watchcache.Run] // the same, in runs; nil if they do not lie together
	meta  metav1.ListMeta
}

// inRuns makes a page of runs.
func (p *page) inRuns(runs iter.Seq[watchcache.Run]) {
	p.runs = runs
	p.items = func(yield func(*watchcache.Object) bool) {
		for run := range runs {
			for i := range run.Len() {
				if !yield(run.Object(i)) {
					return
				}
			}
		}
	}
}

// page reads the options of a list, chooses the snapshot and selects.
func (s *Server) page(r *http.Request, q *request) (page, error) {
	o, err := parseListOptions(q)
	if err == nil {
		err = o.validateList()
	}
	if err != nil {
		return page{}, err
	}
	selection, err := o.selection(q)
	if err != nil {
		return page{}, err
	}
	cache, err := s.cacheOf(q.resource)
	if err != nil {
		return page{}, err
	}
	at, err := s.placeOfList(r.Context(), cache, &o)
	if err != nil {
		return page{}, err
	}
	prefix := keyPrefix(q)
	if at.past != 0 {
		past := pastReader{store: s.config.Store, cache: cache, revision: at.past, selection: selection}
		return past.page(r.Context(), at, prefix, &o)
	}
	out := page{items: at.snapshot.Select(selection, prefix+at.start), meta: o.meta(at.snapshot.Revision())}
	if runs, ok := at.snapshot.Runs(selection, prefix+at.start); ok {
		out.inRuns(runs)
	}
	if o.limit > 0 {
		err = out.cut(at.snapshot, selection, prefix, o.limit)
	}
	return out, err
}

// selection compiles what the request selects.
func (o *listOptions) selection(q *request) (*watchcache.Selection, error) {
	selection, err := watchcache.NewSelection(q.resource, q.namespace, q.name, o.labels, o.fields)
	if err != nil {
		return nil, status.BadRequest("%v", err)
	}
	return selection.Within(o.shard), nil
}

// meta is the metadata of a list at a revision. A part of a collection says
// which part it is, so that nobody takes it for the whole (KEP-5866).
func (o *listOptions) meta(revision storage.Revision) metav1.ListMeta {
	meta := metav1.ListMeta{ResourceVersion: formatVersion(revision)}
	if o.shard != nil {
		meta.ShardInfo = &metav1.ShardInfo{Selector: o.shard.String()}
	}
	return meta
}

// keyPrefix is what the keys of a collection begin with. Continue tokens leave
// it out; it depends on the path alone, so that they are those of Kubernetes.
func keyPrefix(q *request) string {
	if q.resource.Namespaced && q.namespace != "" {
		return q.namespace + "/"
	}
	return ""
}

// cut keeps the first limit items and, if any may follow, says where to go
// on. How many follow is only told without selectors.
func (p *page) cut(snapshot watchcache.Snapshot, selection *watchcache.Selection, prefix string, limit int64) error {
	last, more := "", false
	if p.runs != nil {
		last, more = p.cutRuns(limit)
	} else {
		last, more = p.cutItems(limit)
	}
	if !more {
		return nil
	}
	token, err := encodeContinue(snapshot.Revision(), prefix, last)
	if err != nil {
		return err
	}
	p.meta.Continue = token
	if !selection.Filters() && selection.Fields.Empty() {
		remaining := int64(snapshot.Count(prefix, last+"\x00"))
		p.meta.RemainingItemCount = &remaining
	}
	return nil
}

// cutItems keeps the first limit items, and returns the key of the last one
// and whether there are more.
func (p *page) cutItems(limit int64) (last string, more bool) {
	var kept []*watchcache.Object
	for object := range p.items {
		if int64(len(kept)) == limit {
			more = true
			break
		}
		kept = append(kept, object)
		last = object.Key
	}
	p.items = slices.Values(kept)
	return last, more
}

// cutRuns is cutItems, run by run.
func (p *page) cutRuns(limit int64) (last string, more bool) {
	var kept []watchcache.Run
	for run := range p.runs {
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
	p.inRuns(slices.Values(kept))
	return last, more
}
