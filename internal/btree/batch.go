package btree

import "slices"

// Batch makes many changes to a Tree at less cost than one by one: nodes that
// it has copied once are modified in place. It must not be used concurrently.
// Trees taken from it are as immutable as all others.
type Batch[V any] struct {
	tree  Tree[V]
	owner *token // nil: copy always, as Tree.Set and Tree.Delete do
	gone  func(identity uint64)

	added   func(to []uint64, value, replaced V) []uint64 // nil: filters are not kept
	setting setting[V]
}

// setting is the entry that is being set, as filters see it.
type setting[V any] struct {
	value, replaced V
	hashed          bool // hashes are what value brings
	hashes          []uint64
}

// Batch starts changes on top of t, which stays as it is.
func (t Tree[V]) Batch() *Batch[V] {
	return &Batch[V]{tree: t, owner: new(token)}
}

// Succeed makes the batch's tree the successor of the one that it began with: the
// batch's leaves get identities, and the leaves that it replaces lose theirs. gone
// is called, while the batch is changed, with each lost identity that had been
// returned. Without Succeed the batch makes a tree beside the other, whose own
// leaves have no identities. It must be called before the first change.
func (b *Batch[V]) Succeed(gone func(identity uint64)) {
	b.gone = gone
	b.owner = &token{lasting: true}
}

// Tree returns the map with all changes made so far. The batch may go on: it
// gives up the nodes it has made and copies them again when needed.
func (b *Batch[V]) Tree() Tree[V] {
	b.owner = &token{lasting: b.owner.lasting}
	return b.tree
}

// Len returns the number of entries.
func (b *Batch[V]) Len() int { return b.tree.len }

// Get returns the value of a key, changes included.
func (b *Batch[V]) Get(key string) (V, bool) { return b.tree.Get(key) }

// Set sets key to value, with stamp 0.
func (b *Batch[V]) Set(key string, value V) { b.SetAt(key, value, 0) }

// SetAt sets key to value, with a stamp that must not be negative; see Tree.Since.
func (b *Batch[V]) SetAt(key string, value V, stamp int64) {
	e := entry[V]{key, value, stamp}
	if b.tree.root == nil {
		b.tree.root = &node[V]{owner: b.owner, entries: []entry[V]{e}, latest: stamp}
		b.tree.len = 1
		return
	}
	b.setting.hashed = false
	root, right, added := b.set(b.tree.root, e)
	if right != nil {
		root = (&node[V]{owner: b.owner, kids: []child[V]{ref(root), ref(right)}}).stamped()
	}
	b.tree.root = root
	if added {
		b.tree.len++
	}
}

// Delete removes key and reports whether it was there.
func (b *Batch[V]) Delete(key string) bool {
	if b.tree.root == nil {
		return false
	}
	if _, ok := b.tree.Get(key); !ok {
		return false // before any node is copied
	}
	root := b.remove(b.tree.root, key)
	for !root.leaf() && len(root.kids) == 1 {
		root = root.kids[0].node
	}
	if root.size() == 0 {
		root = nil
	}
	b.tree.root = root
	b.tree.len--
	return true
}

func (b *Batch[V]) mine(n *node[V]) bool { return b.owner != nil && n.owner == b.owner }

// replaces is called with every node that is no longer part of the batch's tree.
func (b *Batch[V]) replaces(n *node[V]) {
	if b.gone != nil && n.leaf() {
		n.retire(b.gone)
	}
}

// set returns the node that takes n's place, its new right neighbour if it
// had to be split, and whether the key is new.
func (b *Batch[V]) set(n *node[V], e entry[V]) (left, right *node[V], added bool) {
	if n.leaf() {
		return b.setLeaf(n, e)
	}
	i := n.route(e.key)
	kid, split, added := b.set(n.kids[i].node, e)
	n = b.editable(n)
	c := &n.kids[i]
	c.node = kid
	n.latest = max(n.latest, e.stamp)
	b.extendFilter(n)
	if split == nil {
		if added {
			c.count++
		}
		return n, nil, added
	}
	c.count = kid.count()
	n.kids = slices.Insert(n.kids, i+1, ref(split))
	if len(n.kids) <= maxFill {
		return n, nil, added
	}
	at := splitPoint(len(n.kids), i+1)
	right = &node[V]{owner: b.owner, kids: slices.Clone(n.kids[at:])}
	clear(n.kids[at:])
	n.kids = n.kids[:at]
	n.filter.Store(nil)
	return n.stamped(), right.stamped(), added
}

func (b *Batch[V]) setLeaf(n *node[V], e entry[V]) (left, right *node[V], added bool) {
	i, found := n.find(e.key)
	b.setting.value = e.value
	if found {
		b.setting.replaced = n.entries[i].value
		n = b.editable(n)
		n.entries[i], n.latest = e, max(n.latest, e.stamp)
		b.extendFilter(n)
		return n, nil, false
	}
	var none V
	b.setting.replaced = none
	if b.mine(n) {
		n.entries, n.latest = slices.Insert(n.entries, i, e), max(n.latest, e.stamp)
	} else {
		b.replaces(n)
		n = b.inherit(&node[V]{owner: b.owner, entries: withInsert(n.entries, i, e), latest: max(n.latest, e.stamp)}, n)
	}
	if len(n.entries) <= maxFill {
		b.extendFilter(n)
		return n, nil, true
	}
	at := splitPoint(len(n.entries), i)
	right = &node[V]{owner: b.owner, entries: slices.Clone(n.entries[at:])}
	left = &node[V]{owner: b.owner, entries: slices.Clone(n.entries[:at])}
	return left.stamped(), right.stamped(), true
}

// splitPoint halves a full node, except when it grew at its end: keys that
// arrive in order then leave full nodes behind instead of half-empty ones.
func splitPoint(size, grewAt int) int {
	if grewAt == size-1 {
		return size - minFill
	}
	return size / 2
}

// editable returns n itself if this batch made it, else a copy.
func (b *Batch[V]) editable(n *node[V]) *node[V] {
	if b.mine(n) {
		return n
	}
	b.replaces(n)
	return b.inherit(&node[V]{owner: b.owner, entries: slices.Clone(n.entries), kids: slices.Clone(n.kids), latest: n.latest}, n)
}

// remove returns the node that takes n's place, which may be too small. The
// key must be there.
func (b *Batch[V]) remove(n *node[V], key string) *node[V] {
	if n.leaf() {
		i, _ := n.find(key)
		if b.mine(n) {
			n.entries = slices.Delete(n.entries, i, i+1)
			return n
		}
		b.replaces(n)
		return b.inherit(&node[V]{owner: b.owner, entries: without(n.entries, i), latest: n.latest}, n)
	}
	i := n.route(key)
	kid := b.remove(n.kids[i].node, key)
	n = b.editable(n)
	n.kids[i].node = kid
	n.kids[i].count--
	if kid.size() < minFill && len(n.kids) > 1 {
		b.join(n, max(0, i-1))
	}
	return n
}

// join merges children i and i+1 of n, which is editable, or shares their
// content evenly if it does not fit in one node.
func (b *Batch[V]) join(n *node[V], i int) {
	left, right := n.kids[i].node, n.kids[i+1].node
	b.replaces(left)
	b.replaces(right)
	all := &node[V]{
		owner:   b.owner,
		entries: slices.Concat(left.entries, right.entries),
		kids:    slices.Concat(left.kids, right.kids),
	}
	if !left.leaf() {
		// The lower bound of a first child may lie above what it holds; as an inner
		// child it must be the true bound, which the parent knows.
		all.kids[len(left.kids)].key = n.kids[i+1].key
	}
	lower := n.kids[i].key
	if all.size() <= maxFill {
		n.kids[i] = child[V]{key: lower, count: n.kids[i].count + n.kids[i+1].count, node: all.stamped()}
		n.kids = slices.Delete(n.kids, i+1, i+2)
		return
	}
	at := all.size() / 2
	low, high := &node[V]{owner: b.owner}, &node[V]{owner: b.owner}
	if all.leaf() {
		low.entries, high.entries = slices.Clone(all.entries[:at]), slices.Clone(all.entries[at:])
	} else {
		low.kids, high.kids = slices.Clone(all.kids[:at]), slices.Clone(all.kids[at:])
	}
	n.kids[i] = child[V]{key: lower, count: low.count(), node: low.stamped()}
	n.kids[i+1] = ref(high.stamped())
}
