package read

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/watchcache"
)

// Part is what a request asks for of a scope, and how much of it is worth counting.
type Part struct {
	Labels, Fields string                 // selectors; one that cannot be parsed selects everything
	Namespaces     *watchcache.Namespaces // nil: all
	Most           int                    // objects that are counted, if there is anything above
}

// Extent returns how many objects of a scope a request looks at in the cache at this moment, and about
// how many bytes of JSON these are. It reads none of them: the index has their number, as far as
// it answers selectors, and their sizes are taken to be the average. Both are 0 while the cache is
// being filled.
func (r *Reader) Extent(scope Scope, part Part) (objects int, size int64) {
	cache, err := r.filledCache(scope.Resource)
	if err != nil {
		return 0, 0
	}
	snapshot := cache.Current()
	all := snapshot.Len()
	if all == 0 {
		return 0, 0
	}
	switch selection := part.selection(scope); {
	case selection != nil:
		objects = snapshot.Candidates(selection, part.Most)
	case scope.keyPrefix() != "":
		objects = snapshot.Count(scope.keyPrefix(), "")
	default:
		objects = all
	}
	return objects, cache.ObjectBytes() * int64(objects) / int64(all)
}

// selection returns nil for everything.
func (p *Part) selection(scope Scope) *watchcache.Selection {
	if p.Labels == "" && p.Fields == "" && p.Namespaces == nil {
		return nil
	}
	sel, err := scope.parse(&metav1.ListOptions{LabelSelector: p.Labels, FieldSelector: p.Fields}, func(*metav1.ListOptions) error { return nil })
	if err != nil {
		return nil
	}
	selection, err := scope.selection(sel)
	if err != nil {
		return nil
	}
	if p.Namespaces != nil {
		selection = selection.InNamespaces(p.Namespaces)
	}
	return selection
}
