package btree

import (
	"iter"
	"math"
	"math/bits"
	"slices"
	"strings"
	"sync/atomic"
)

// Traits appends the hashes of a value's traits: what Tree.Having finds it by. They
// must depend on nothing but the value.
type Traits[V any] func(to []uint64, value V) []uint64

// Filter has the filters of nodes follow the batch's changes, so that they need not
// be made anew by the next Having. added is Traits, but may leave out those of the
// value that it replaces, which is the zero value if there is none. It must be
// called before the first change.
func (b *Batch[V]) Filter(added func(to []uint64, value, replaced V) []uint64) { b.added = added }

// Having yields the entries that Range would, leaf by leaf, but leaves out leaves
// that hold no value with the wanted traits: one of each set. It yields every entry
// that has them, and some that have not. Its cost grows with the leaves that it
// yields and, a thousand times slower, with the tree: leaves and their parents have
// a filter, which is made when it is first asked and shared by all later versions.
// The filters take some twenty bits for each trait of a node's entries.
func (t Tree[V]) Having(prefix, from string, wanted [][]uint64, traits Traits[V]) iter.Seq[Run[V]] {
	return func(yield func(Run[V]) bool) {
		if t.root != nil {
			s := search[V]{prefix: prefix, wanted: wanted, traits: traits, yield: yield}
			s.visit(t.root, max(prefix, from))
		}
	}
}

// CountHaving returns how many entries Having would yield, at most a number, by the filters that
// there are: it makes none. So it costs little before they are made, and may then count all.
func (t Tree[V]) CountHaving(prefix string, wanted [][]uint64, most int) (count int) {
	if t.root == nil {
		return 0
	}
	s := search[V]{prefix: prefix, wanted: wanted, yield: func(run Run[V]) bool {
		count += run.Len()
		return count < most
	}}
	s.visit(t.root, prefix)
	return min(count, most)
}

// search is one call of Having, or of CountHaving.
type search[V any] struct {
	prefix  string
	wanted  [][]uint64
	traits  Traits[V] // nil: no filters are made
	yield   func(Run[V]) bool
	scratch []uint64
}

// visit yields what is below a node. It reports whether the consumer wants more and
// there may be more.
func (s *search[V]) visit(n *node[V], from string) bool {
	if n.filtered() {
		whole := from == "" || n.first() >= from
		if f := s.filterOf(n, whole); f != nil && !f.mayHave(s.wanted) {
			return true // whether the prefix ends here is seen at the next leaf, or its parent
		}
	}
	if n.leaf() {
		return n.runs(s.prefix, from, s.yield)
	}
	i := 0
	if from != "" {
		i = n.route(from)
	}
	for ; i < len(n.kids); i++ {
		if key := n.kids[i].key; i > 0 && key > s.prefix && !strings.HasPrefix(key, s.prefix) {
			return false
		}
		if !s.visit(n.kids[i].node, from) {
			return false
		}
		from = "" // only the first child can begin in its middle
	}
	return true
}

// filtered reports whether a node may have a filter: leaves and their parents do.
func (n *node[V]) filtered() bool { return n.leaf() || n.kids[0].node.leaf() }

// filterOf returns a node's filter. It makes one if all of the node is searched.
func (s *search[V]) filterOf(n *node[V], whole bool) *filter {
	if f := n.filter.Load(); f != nil || !whole || s.traits == nil || !s.covers(n) {
		return f
	}
	f := s.makeFilter(n)
	if !n.filter.CompareAndSwap(nil, f) {
		return n.filter.Load()
	}
	return f
}

// covers reports whether everything below a node has the prefix.
func (s *search[V]) covers(n *node[V]) bool {
	if s.prefix == "" {
		return true
	}
	last := n
	for !last.leaf() {
		last = last.kids[len(last.kids)-1].node
	}
	return strings.HasPrefix(n.first(), s.prefix) && strings.HasPrefix(last.entries[len(last.entries)-1].key, s.prefix)
}

// makeFilter makes a filter of everything below a node. Those of a parent's leaves
// are made of the same hashes.
func (s *search[V]) makeFilter(n *node[V]) *filter {
	hashes := s.scratch[:0]
	if n.leaf() {
		hashes = s.traitsOf(n, hashes)
	}
	for i := range n.kids {
		leaf, start := n.kids[i].node, len(hashes)
		hashes = s.traitsOf(leaf, hashes)
		if leaf.filter.Load() == nil {
			leaf.filter.CompareAndSwap(nil, newFilter(hashes[start:]))
		}
	}
	s.scratch = hashes
	return newFilter(hashes)
}

func (s *search[V]) traitsOf(leaf *node[V], to []uint64) []uint64 {
	for i := range leaf.entries {
		to = s.traits(to, leaf.entries[i].value)
	}
	return to
}

// A filter is a Bloom filter of the traits below a node, in blocks of a cache line.
// Versions of a node share it. It only grows: for an older version, or after a
// deletion, it has traits that are not there, which costs a look at the entries.
type filter struct {
	words []atomic.Uint64
	room  atomic.Int64 // traits that may still be added until it says yes too often
}

const (
	blockWords     = 8
	bitsPerTrait   = 20 // leaves room for half as many traits again
	maxFilterWords = 1 << 13
)

// newFilter returns a filter of the hashes, which may repeat.
func newFilter(hashes []uint64) *filter {
	traits := distinct(hashes)
	blocks := min(traits*bitsPerTrait/(64*blockWords)+1, maxFilterWords/blockWords)
	f := &filter{words: make([]atomic.Uint64, blocks*blockWords)}
	for _, h := range hashes {
		f.add(h)
	}
	f.room.Store(int64(blocks*64*blockWords/bitsPerTrait/2 + 1))
	return f
}

// distinct estimates how many of the hashes differ, by how many bits of a small map
// they leave unset.
func distinct(hashes []uint64) int {
	const size = 1 << 14
	if len(hashes) < 64 {
		return len(hashes)
	}
	var seen [size / 64]uint64
	for _, h := range hashes {
		at := h >> 7 % size
		seen[at/64] |= 1 << (at % 64)
	}
	unset := size
	for _, word := range seen {
		unset -= bits.OnesCount64(word)
	}
	estimate := -size * math.Log(float64(max(unset, 1))/size)
	return min(int(estimate)+1, len(hashes))
}

// The bits of a hash: a block by the upper half, and four bits of the block's 512 by
// nine bits each of the lower part.
func (f *filter) block(hash uint64) []atomic.Uint64 {
	blocks := uint64(len(f.words) / blockWords)
	start := (hash >> 32) * blocks >> 32 * blockWords
	return f.words[start : start+blockWords : start+blockWords]
}

// add adds a trait and reports whether it may have been missing.
func (f *filter) add(hash uint64) (added bool) {
	block := f.block(hash)
	for range 4 {
		word, bit := &block[hash>>6&(blockWords-1)], uint64(1)<<(hash&63)
		if word.Load()&bit == 0 {
			word.Or(bit)
			added = true
		}
		hash >>= 9
	}
	return added
}

func (f *filter) has(hash uint64) bool {
	block := f.block(hash)
	for range 4 {
		if block[hash>>6&(blockWords-1)].Load()>>(hash&63)&1 == 0 {
			return false
		}
		hash >>= 9
	}
	return true
}

// mayHave reports whether there may be a trait of each set.
func (f *filter) mayHave(wanted [][]uint64) bool {
	for _, anyOf := range wanted {
		if !slices.ContainsFunc(anyOf, f.has) {
			return false
		}
	}
	return true
}

// extend adds traits to a filter on which a changed node goes on. It is false if
// there is no room for them: the node then goes without.
func (f *filter) extend(hashes []uint64) bool {
	for _, h := range hashes {
		if f.add(h) && f.room.Add(-1) < 0 {
			return false
		}
	}
	return true
}

// inherit gives n, which takes the place of another node, that one's filter, if the
// batch keeps it in step.
func (b *Batch[V]) inherit(n, from *node[V]) *node[V] {
	if b.added != nil {
		n.filter.Store(from.filter.Load())
	}
	return n
}

// extendFilter adds to n's filter what a changed entry brings.
func (b *Batch[V]) extendFilter(n *node[V]) {
	if f := n.filter.Load(); f != nil && !f.extend(b.newTraits()) {
		n.filter.Store(nil)
	}
}

// newTraits returns the traits that the entry being set brings, once they are asked
// for.
func (b *Batch[V]) newTraits() []uint64 {
	if !b.setting.hashed {
		b.setting.hashed = true
		b.setting.hashes = b.added(b.setting.hashes[:0], b.setting.value, b.setting.replaced)
	}
	return b.setting.hashes
}
