package state

import (
	"iter"
	"sync/atomic"

	"github.com/levelwire/levelwire/internal/btree"
	"github.com/levelwire/levelwire/storage"
)

// Snapshot is the state of a resource at one revision. It is a small value,
// immutable, and safe for concurrent use; holding it keeps its objects in memory
// but takes no lock. The zero Snapshot is empty at revision 0.
type Snapshot struct {
	tree       btree.Tree[*Object]
	revision   storage.Revision
	namespaced bool
	blocks     *Blocks
	selects    *SelectCounters
	logEnd     uint64
}

// SelectCounters count what Select does with selectors. They may be read at any time.
type SelectCounters struct {
	LookedAt atomic.Int64 // objects that a selector was compared with
	Selected atomic.Int64 // objects among them that it selected
}

// add is a no-op for the zero Snapshot, which counts nothing.
func (c *SelectCounters) add(lookedAt, selected int64) {
	if c != nil {
		c.LookedAt.Add(lookedAt)
		c.Selected.Add(selected)
	}
}

// NewSnapshot returns the snapshot of a tree at a revision. blocks may be nil:
// its runs then share none.
func NewSnapshot(tree btree.Tree[*Object], revision storage.Revision, namespaced bool, blocks *Blocks, selects *SelectCounters) Snapshot {
	return Snapshot{tree: tree, revision: revision, namespaced: namespaced, blocks: blocks, selects: selects}
}

// WithLogEnd returns the snapshot with the position in the cache's log behind the changes that it has.
func (s Snapshot) WithLogEnd(position uint64) Snapshot {
	s.logEnd = position
	return s
}

// LogEnd is the position that was given to WithLogEnd; 0: none was.
func (s Snapshot) LogEnd() uint64 { return s.logEnd }

// Revision is the revision of the state: every change up to it is included, no
// later one.
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

// Select yields, in the order of keys from the given one on, the selected
// objects. It looks only at the namespace or the one object that the selection
// names, and there only at leaves that may hold what the selection wants by name, label
// or field.
func (s Snapshot) Select(sel *Selection, from string) iter.Seq[*Object] {
	if sel.Everything() {
		return s.Range("", from)
	}
	if sel.within != nil {
		return s.selectWithin(sel, from)
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
		var lookedAt, selected int64
		defer func() { s.selects.add(lookedAt, selected) }()
		for o := range s.candidates(sel, prefix, from) {
			lookedAt++
			if !sel.Matches(o) {
				continue
			}
			if selected++; !yield(o) {
				return
			}
		}
	}
}

// Candidates returns how many objects Select would look at, at most a number, without looking at
// any. A namespace of a set counts as one at least.
func (s Snapshot) Candidates(sel *Selection, most int) (count int) {
	if sel == nil || sel.within == nil {
		return s.candidatesIn(sel, most)
	}
	for namespace := range sel.within.From("") {
		if sel.Namespace != "" && sel.Namespace != namespace {
			continue
		}
		one := *sel
		one.Namespace, one.within = namespace, nil
		if count += max(s.candidatesIn(&one, most), 1); count >= most {
			return most
		}
	}
	return count
}

// candidatesIn is Candidates without a set of namespaces.
func (s Snapshot) candidatesIn(sel *Selection, most int) int {
	if sel == nil {
		return min(s.Len(), most)
	}
	prefix := ""
	if sel.Namespace != "" && s.namespaced {
		prefix = sel.Namespace + "/"
	}
	if sel.Name != "" && (prefix != "" || !s.namespaced) {
		return min(1, most)
	}
	if wanted := sel.wantedTraits(); len(wanted) > 0 {
		return s.tree.CountHaving(prefix, wanted, most)
	}
	return min(s.tree.Count(prefix, ""), most)
}

// candidates yields objects among which all are that a selection wants.
func (s Snapshot) candidates(sel *Selection, prefix, from string) iter.Seq[*Object] {
	wanted := sel.wantedTraits()
	if len(wanted) == 0 {
		return s.Range(prefix, from)
	}
	return func(yield func(*Object) bool) {
		for run := range s.tree.Having(prefix, from, wanted, Traits(sel.stored)) {
			for i := range run.Len() {
				if _, o := run.At(i); !yield(o) {
					return
				}
			}
		}
	}
}

// selectWithin is Select for a selection with a set of namespaces, which it reads one after
// the other.
func (s Snapshot) selectWithin(sel *Selection, from string) iter.Seq[*Object] {
	return func(yield func(*Object) bool) {
		for namespace := range sel.within.From(from) {
			if sel.Namespace != "" && sel.Namespace != namespace {
				continue
			}
			one := *sel
			one.Namespace, one.within = namespace, nil
			for o := range s.Select(&one, from) {
				if !yield(o) {
					return
				}
			}
		}
	}
}

// Run is a sequence of a snapshot's objects that lie in one leaf of the tree.
// Encodings of a whole run are shared for as long as none of its objects changes;
// see Run.Block. It is a small value and immutable.
type Run struct {
	entries btree.Run[*Object]
	blocks  *Blocks
}

// Len returns how many objects the run has: a few dozen at most.
func (r Run) Len() int { return r.entries.Len() }

// Object returns object i, 0 <= i < Len.
func (r Run) Object(i int) *Object {
	_, o := r.entries.At(i)
	return o
}

// Head returns the first n objects, or all if there are no more.
func (r Run) Head(n int) Run { return Run{r.entries.Head(n), r.blocks} }

// Whole reports whether the run can share blocks with other readers.
func (r Run) Whole() bool { return r.entries.Whole() }

// Runs yields what Select does, run by run. It returns false if a selector has
// to be asked for each object: there are no runs then.
func (s Snapshot) Runs(sel *Selection, from string) (iter.Seq[Run], bool) {
	prefix := ""
	if !sel.Everything() {
		if sel.filtersObjects() || sel.Name != "" || !s.namespaced {
			return nil, false
		}
		if sel.within != nil {
			return s.runsWithin(sel, from), true
		}
		prefix = sel.Namespace + "/"
	}
	return func(yield func(Run) bool) {
		for run := range s.tree.Runs(prefix, from) {
			if !yield(Run{run, s.blocks}) {
				return
			}
		}
	}, true
}

// runsWithin is Runs for a selection with a set of namespaces.
func (s Snapshot) runsWithin(sel *Selection, from string) iter.Seq[Run] {
	return func(yield func(Run) bool) {
		for namespace := range sel.within.From(from) {
			if sel.Namespace != "" && sel.Namespace != namespace {
				continue
			}
			for run := range s.tree.Runs(namespace+"/", from) {
				if !yield(Run{run, s.blocks}) {
					return
				}
			}
		}
	}
}
