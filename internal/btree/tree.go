package btree

import (
	"fmt"
	"iter"
	"strings"
)

// Tree is one version of the map. The zero value is empty. A Tree is
// immutable: it may be copied, kept, and read from any number of goroutines
// while other versions are made from it.
type Tree[V any] struct {
	root *node[V]
	len  int
}

// Len returns the number of entries.
func (t Tree[V]) Len() int { return t.len }

// Get returns the value of a key.
func (t Tree[V]) Get(key string) (V, bool) {
	if n := t.root; n != nil {
		for !n.leaf() {
			n = n.kids[n.route(key)].node
		}
		if i, ok := n.find(key); ok {
			return n.entries[i].value, true
		}
	}
	var none V
	return none, false
}

// Set returns the map with key set to value. The given key string replaces
// an equal one that was there, so that the memory of old keys is not kept.
func (t Tree[V]) Set(key string, value V) Tree[V] {
	b := Batch[V]{tree: t}
	b.Set(key, value)
	return b.tree
}

// Delete returns the map without key and whether it was there.
func (t Tree[V]) Delete(key string) (Tree[V], bool) {
	b := Batch[V]{tree: t}
	ok := b.Delete(key)
	return b.tree, ok
}

// Range yields, in ascending order, the entries whose key starts with prefix
// and is not smaller than from.
func (t Tree[V]) Range(prefix, from string) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		if t.root == nil {
			return
		}
		t.root.walk(max(prefix, from), func(key string, value V) bool {
			return strings.HasPrefix(key, prefix) && yield(key, value)
		})
	}
}

// Since yields the values whose stamp is greater than the given one, with their
// stamps, in no particular order. It visits only nodes that have such entries below
// them: its cost is proportional to the entries that it yields, not to the size of
// the tree.
func (t Tree[V]) Since(stamp int64) iter.Seq2[V, int64] {
	return func(yield func(V, int64) bool) {
		if t.root != nil {
			t.root.since(stamp, yield)
		}
	}
}

// Count returns how many entries Range would yield, in logarithmic time.
func (t Tree[V]) Count(prefix, from string) int {
	if t.root == nil {
		return 0
	}
	end := t.len
	if limit, ok := prefixEnd(prefix); ok {
		end = t.root.rank(limit)
	}
	start := 0
	if low := max(prefix, from); low != "" {
		start = t.root.rank(low)
	}
	return max(0, end-start)
}

// prefixEnd returns the smallest string greater than every string with the
// prefix; false if there is none.
func prefixEnd(prefix string) (string, bool) {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] < 0xff {
			return prefix[:i] + string([]byte{prefix[i] + 1}), true
		}
	}
	return "", false
}

// Load builds a map of n entries, which at must return in strictly ascending
// order of their keys, in linear time. It fails if they are not.
func Load[V any](n int, at func(i int) (string, V)) (Tree[V], error) {
	return LoadAt(n, func(i int) (string, V, int64) {
		key, value := at(i)
		return key, value, 0
	})
}

// LoadAt is Load of entries with stamps, which must not be negative.
func LoadAt[V any](n int, at func(i int) (key string, value V, stamp int64)) (Tree[V], error) {
	if n == 0 {
		return Tree[V]{}, nil
	}
	level, err := loadLeaves(n, at)
	if err != nil {
		return Tree[V]{}, err
	}
	for len(level) > 1 {
		parents := make([]child[V], 0, len(level)/loadFill+1)
		for _, size := range shares(len(level)) {
			kids := append(make([]child[V], 0, size), level[:size]...)
			level = level[size:]
			parents = append(parents, ref((&node[V]{kids: kids}).stamped()))
		}
		level = parents
	}
	return Tree[V]{root: level[0].node, len: n}, nil
}

func loadLeaves[V any](n int, at func(i int) (string, V, int64)) ([]child[V], error) {
	leaves := make([]child[V], 0, n/loadFill+1)
	next, last := 0, ""
	for _, size := range shares(n) {
		entries := make([]entry[V], size)
		for i := range entries {
			key, value, stamp := at(next)
			if next > 0 && key <= last {
				return nil, fmt.Errorf("bulk load: key %q follows %q: sort the input and remove duplicates", key, last)
			}
			entries[i] = entry[V]{key, value, stamp}
			next, last = next+1, key
		}
		leaves = append(leaves, ref((&node[V]{owner: loadedNodes, entries: entries}).stamped()))
	}
	return leaves, nil
}

// shares cuts n into node sizes near loadFill that differ by at most one, so
// that no node of a bulk load is nearly empty.
func shares(n int) []int {
	parts := (n + loadFill - 1) / loadFill
	sizes := make([]int, parts)
	for i := range sizes {
		sizes[i] = n/parts + min(1, max(0, n%parts-i))
	}
	return sizes
}

func ref[V any](n *node[V]) child[V] {
	return child[V]{key: n.first(), count: n.count(), node: n}
}
