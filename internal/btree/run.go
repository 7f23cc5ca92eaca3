package btree

import (
	"iter"
	"strings"
	"sync/atomic"
)

// Run is a stretch of neighbouring entries of a Tree that share a leaf. It is a
// small value, and stays valid however the tree changes.
type Run[V any] struct {
	leaf      *node[V]
	low, high int
}

// Len returns the number of entries.
func (r Run[V]) Len() int { return r.high - r.low }

// At returns entry i, 0 <= i < Len.
func (r Run[V]) At(i int) (string, V) {
	e := &r.leaf.entries[r.low+i]
	return e.key, e.value
}

// Head returns the first n entries, or all if there are no more.
func (r Run[V]) Head(n int) Run[V] {
	r.high = min(r.high, r.low+n)
	return r
}

// Whole reports whether the run is all of its leaf.
func (r Run[V]) Whole() bool { return r.low == 0 && r.high == len(r.leaf.entries) }

// Identity returns a number that is unique to the run's leaf in this process, for
// as long as the leaf is part of the newest tree. A leaf does not change, so a
// caller may cache under its identity what it has made of all its entries. The
// result is false once the leaf has been replaced, and for a leaf that was never
// part of the newest tree: the caller would not learn when to drop the cached value.
func (r Run[V]) Identity() (uint64, bool) {
	if r.leaf.owner == nil || !r.leaf.owner.lasting {
		return 0, false
	}
	id := r.leaf.identity.Load()
	if id == 0 {
		fresh := identities.Add(1)
		if r.leaf.identity.CompareAndSwap(0, fresh) {
			return fresh, true
		}
		id = r.leaf.identity.Load()
	}
	return id &^ retired, id&retired == 0
}

// identities counts the identities that were returned.
var identities atomic.Uint64

// retired marks the identity of a leaf that is not part of the newest tree.
const retired = 1 << 63

// Runs yields the entries that Range would, leaf by leaf.
func (t Tree[V]) Runs(prefix, from string) iter.Seq[Run[V]] {
	return func(yield func(Run[V]) bool) {
		if t.root != nil {
			t.root.runs(prefix, max(prefix, from), yield)
		}
	}
}

// runs reports whether the consumer wants more and there may be more runs.
func (n *node[V]) runs(prefix, from string, yield func(Run[V]) bool) bool {
	if !n.leaf() {
		i := 0
		if from != "" {
			i = n.route(from)
		}
		for ; i < len(n.kids); i++ {
			if !n.kids[i].node.runs(prefix, from, yield) {
				return false
			}
			from = "" // only the first child can begin in its middle
		}
		return true
	}
	run := Run[V]{leaf: n, high: len(n.entries)}
	if from != "" {
		run.low, _ = n.find(from)
	}
	for run.high > run.low && !strings.HasPrefix(n.entries[run.high-1].key, prefix) {
		run.high--
	}
	if run.Len() > 0 && !yield(run) {
		return false
	}
	// Entries behind the start that lack the prefix are behind all that have it.
	return run.low == len(n.entries) || run.high == len(n.entries)
}

// Retire ends the identities of all leaves, because another tree has replaced this
// one as a whole. It calls gone with each identity that had been returned.
func (t Tree[V]) Retire(gone func(identity uint64)) {
	for run := range t.Runs("", "") {
		run.leaf.retire(gone)
	}
}

// retire marks a leaf that is not part of the newest tree any more.
func (n *node[V]) retire(gone func(uint64)) {
	if id := n.identity.Or(retired); id&^retired != 0 {
		gone(id &^ retired)
	}
}
