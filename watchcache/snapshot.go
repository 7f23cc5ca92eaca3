package watchcache

import (
	"iter"

	"github.com/levelwire/levelwire/internal/btree"
	"github.com/levelwire/levelwire/storage"
)

// Snapshot is the state of a resource at one revision. It is a small value,
// immutable, and safe for concurrent use; holding it holds its objects in
// memory but blocks nobody. The zero Snapshot is empty at revision 0.
type Snapshot struct {
	tree       btree.Tree[*Object]
	revision   storage.Revision
	namespaced bool
}

// Revision is what the snapshot shows the state at: every change up to it is
// included, none after it.
func (s Snapshot) Revision() storage.Revision { return s.revision }

// Len returns the number of objects.
func (s Snapshot) Len() int { return s.tree.Len() }

// Get returns the object with a key.
func (s Snapshot) Get(key string) (*Object, bool) { return s.tree.Get(key) }

// Range yields, in the order of keys, the objects whose key starts with
// prefix and is not smaller than from.
func (s Snapshot) Range(prefix, from string) iter.Seq[*Object] {
	return func(yield func(*Object) bool) {
		for _, o := range s.tree.Range(prefix, from) {
			if !yield(o) {
				return
			}
		}
	}
}

// Count returns how many objects Range would yield, in logarithmic time.
func (s Snapshot) Count(prefix, from string) int { return s.tree.Count(prefix, from) }

// Select yields, in the order of keys from the given one on, the objects that
// the selection wants. It reads no more than the namespace or the one object
// that the selection names.
func (s Snapshot) Select(sel *Selection, from string) iter.Seq[*Object] {
	if sel.Everything() {
		return s.Range("", from)
	}
	return func(yield func(*Object) bool) {
		prefix := ""
		if sel.Namespace != "" && s.namespaced {
			prefix = sel.Namespace + "/"
		}
		if sel.Name != "" && (prefix != "" || !s.namespaced) {
			key := prefix + sel.Name
			if o, ok := s.Get(key); ok && key >= from && sel.Matches(o) {
				yield(o)
			}
			return
		}
		for o := range s.Range(prefix, from) {
			if sel.Matches(o) && !yield(o) {
				return
			}
		}
	}
}
