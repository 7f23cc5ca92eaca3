package btree

import (
	"strings"
	"sync/atomic"
)

// Node sizes. A node holds at most maxFill entries or children; one that
// falls below minFill is joined with a neighbour. Thirty-two keeps a copied
// path for a million entries near 4 kB, and the distance between the limits
// keeps alternating inserts and deletes from splitting and joining each time.
const (
	maxFill  = 32
	minFill  = 10
	loadFill = 28 // of a bulk load: leaves room before the first split
)

// token marks the nodes that one Batch made and may still modify. It has a
// size so that two tokens never share an address.
type token struct {
	lasting bool // leaves have identities; see Run.Identity
}

// loadedNodes marks the nodes of a bulk load. No batch owns them.
var loadedNodes = &token{lasting: true}

// entry is a key with its value, and the stamp that it was set with.
type entry[V any] struct {
	key   string
	value V
	stamp int64
}

// child is a subtree. The keys below it are at least key, except that
// everything smaller than the second child belongs to the first.
type child[V any] struct {
	key   string
	count int
	node  *node[V]
}

// node is a leaf (entries) or an inner node (kids), never both. It is
// immutable, except for its identity, its filter, and for the Batch that holds its
// owner.
type node[V any] struct {
	owner    *token
	entries  []entry[V]
	kids     []child[V]
	latest   int64                  // no stamp below is greater
	identity atomic.Uint64          // of a leaf; see Run.Identity
	filter   atomic.Pointer[filter] // of a leaf or its parent; nil until it is asked for
}

func (n *node[V]) leaf() bool { return n.kids == nil }

func (n *node[V]) size() int { return len(n.entries) + len(n.kids) }

// count walks one node only: children carry their own counts.
func (n *node[V]) count() int {
	total := len(n.entries)
	for i := range n.kids {
		total += n.kids[i].count
	}
	return total
}

// stamped sets latest by what is below, and returns the node.
func (n *node[V]) stamped() *node[V] {
	n.latest = 0
	for i := range n.entries {
		n.latest = max(n.latest, n.entries[i].stamp)
	}
	for i := range n.kids {
		n.latest = max(n.latest, n.kids[i].node.latest)
	}
	return n
}

// first is the smallest key, or the lower bound of the first child.
func (n *node[V]) first() string {
	if n.leaf() {
		return n.entries[0].key
	}
	return n.kids[0].key
}

// find returns where key is in a leaf, or where it would be.
func (n *node[V]) find(key string) (int, bool) {
	low, high := 0, len(n.entries)
	for low < high {
		mid := int(uint(low+high) >> 1)
		switch c := strings.Compare(n.entries[mid].key, key); {
		case c == 0:
			return mid, true
		case c < 0:
			low = mid + 1
		default:
			high = mid
		}
	}
	return low, false
}

// route returns the child whose range holds key.
func (n *node[V]) route(key string) int {
	low, high := 1, len(n.kids)
	for low < high {
		mid := int(uint(low+high) >> 1)
		if n.kids[mid].key <= key {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low - 1
}

// rank counts the keys of the subtree that are smaller than key.
func (n *node[V]) rank(key string) int {
	below := 0
	for !n.leaf() {
		i := n.route(key)
		for k := range i {
			below += n.kids[k].count
		}
		n = n.kids[i].node
	}
	i, _ := n.find(key)
	return below + i
}

// walk yields the entries from the first key that is not smaller than from.
// It reports whether the consumer wants more.
func (n *node[V]) walk(from string, yield func(string, V) bool) bool {
	if n.leaf() {
		i := 0
		if from != "" {
			i, _ = n.find(from)
		}
		for ; i < len(n.entries); i++ {
			if !yield(n.entries[i].key, n.entries[i].value) {
				return false
			}
		}
		return true
	}
	i := 0
	if from != "" {
		i = n.route(from)
	}
	for ; i < len(n.kids); i++ {
		if !n.kids[i].node.walk(from, yield) {
			return false
		}
		from = "" // only the first child can begin in its middle
	}
	return true
}

// since yields the entries that have a greater stamp. It reports whether the
// consumer wants more.
func (n *node[V]) since(stamp int64, yield func(V, int64) bool) bool {
	for i := range n.entries {
		if e := &n.entries[i]; e.stamp > stamp && !yield(e.value, e.stamp) {
			return false
		}
	}
	for i := range n.kids {
		if kid := n.kids[i].node; kid.latest > stamp && !kid.since(stamp, yield) {
			return false
		}
	}
	return true
}

// withInsert returns a copy of s with v at i.
func withInsert[T any](s []T, i int, v T) []T {
	out := make([]T, len(s)+1)
	copy(out, s[:i])
	out[i] = v
	copy(out[i+1:], s[i:])
	return out
}

// without returns a copy of s without element i.
func without[T any](s []T, i int) []T {
	out := make([]T, len(s)-1)
	copy(out, s[:i])
	copy(out[i:], s[i+1:])
	return out
}
