package state

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Block is one encoding of a whole run of objects: their part of a list. It is
// immutable and shared by all readers.
type Block struct {
	Bytes []byte // must not be modified
	Size  int    // before compression, if Bytes are compressed
	CRC   uint32 // of the uncompressed bytes, where the encoding needs it
}

// minResidency is how long a block is safe from eviction after its last use. A
// list that does not fit as a whole then keeps what fits, instead of evicting,
// one by one, the blocks that it will ask for next time.
const minResidency = 10 * time.Second

// Blocks keeps the blocks of a cache's runs by the identities of their leaves.
// A block is dropped with its leaf, or when the limit of bytes is reached. Blocks
// is safe for concurrent use; no other lock is taken while its lock is held.
type Blocks struct {
	limit int64

	mu     sync.Mutex
	leaves map[uint64]*keptBlock // the first of each leaf's
	bytes  int64
	use    keptBlock // ring of the blocks that are made: use.newer is the least recently used
}

// keptBlock is one block, made or being made.
type keptBlock struct {
	leaf       uint64
	form       FormID
	generation uint64
	making     sync.Mutex // held while it is made
	made       atomic.Pointer[Block]

	// The fields below are guarded by the lock of Blocks.
	next         *keptBlock // of the same leaf
	removed      bool       // not in leaves any more
	older, newer *keptBlock // nil: not in the ring, and not counted
	used         time.Time
}

// NewBlocks returns an empty store of at most limit bytes.
func NewBlocks(limit int64) *Blocks {
	b := &Blocks{limit: limit, leaves: make(map[uint64]*keptBlock)}
	b.use.older, b.use.newer = &b.use, &b.use
	return b
}

// Block returns the run's block in a form; see Object.FormAt for its
// generation. The first caller makes it with encode, concurrent callers wait for
// that one, later callers get the same block for as long as the cache keeps it.
// Only whole runs of the newest state share blocks; for other runs each caller
// makes its own. encode must depend on nothing but the run.
func (r Run) Block(id FormID, generation uint64, encode func(Run) (Block, error)) (Block, error) {
	kept := r.kept(id, generation)
	if kept == nil {
		return encode(r)
	}
	if made := kept.made.Load(); made != nil {
		return *made, nil
	}
	kept.making.Lock()
	defer kept.making.Unlock()
	if made := kept.made.Load(); made != nil {
		return *made, nil
	}
	made, err := encode(r)
	if err != nil {
		return Block{}, err // not kept: the next caller tries again
	}
	kept.made.Store(&made)
	r.blocks.enter(kept)
	return made, nil
}

// Leaf returns the identity of the leaf of the tree that the run is. It is false
// if the newest state does not have the leaf any more.
func (r Run) Leaf() (uint64, bool) { return r.entries.Identity() }

// Kept returns the run's block in a form if it is already made.
func (r Run) Kept(id FormID, generation uint64) (Block, bool) {
	if r.blocks == nil || !r.Whole() {
		return Block{}, false
	}
	r.blocks.mu.Lock()
	defer r.blocks.mu.Unlock()
	leaf, ok := r.Leaf()
	if !ok {
		return Block{}, false
	}
	for k := r.blocks.leaves[leaf]; k != nil; k = k.next {
		if k.form == id && k.generation == generation {
			if made := k.made.Load(); made != nil {
				return *made, true
			}
		}
	}
	return Block{}, false
}

// kept finds the run's element for a block, or adds one. It is nil if the block
// cannot be kept.
func (r Run) kept(id FormID, generation uint64) *keptBlock {
	b := r.blocks
	if b == nil || b.limit <= 0 || !r.Whole() {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	leaf, ok := r.Leaf() // under the lock: Drop clears a leaf that retires later
	if !ok {
		return nil
	}
	for k := b.leaves[leaf]; k != nil; k = k.next {
		if k.form != id {
			continue
		}
		switch cmp.Compare(k.generation, generation) {
		case 0:
			b.touch(k)
			return k
		case 1:
			return nil
		}
		b.remove(k)
		break
	}
	k := &keptBlock{leaf: leaf, form: id, generation: generation, next: b.leaves[leaf]}
	b.leaves[leaf] = k
	return k
}

// touch makes a block the most recently used. The lock is held.
func (b *Blocks) touch(k *keptBlock) {
	if k.newer == nil {
		return // still being made
	}
	b.unlink(k)
	b.link(k)
}

func (b *Blocks) link(k *keptBlock) {
	k.used = time.Now()
	k.older, k.newer = b.use.older, &b.use
	k.older.newer, b.use.older = k, k
}

func (b *Blocks) unlink(k *keptBlock) {
	k.older.newer, k.newer.older = k.newer, k.older
	k.older, k.newer = nil, nil
}

// size is how many bytes a block adds to the memory of the cache, an estimate.
func (k *keptBlock) size() int64 {
	const overhead = 256
	return overhead + int64(cap(k.made.Load().Bytes))
}

// enter counts a block that has been made, and evicts the least recently used
// ones for it. If those are within minResidency, the new block is removed.
func (b *Blocks) enter(k *keptBlock) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if k.removed {
		return
	}
	for b.bytes+k.size() > b.limit {
		oldest := b.use.newer
		if oldest == &b.use || time.Since(oldest.used) < minResidency {
			b.remove(k)
			return
		}
		b.remove(oldest)
	}
	b.bytes += k.size()
	b.link(k)
}

// remove deletes a block from leaves. The lock is held.
func (b *Blocks) remove(k *keptBlock) {
	b.discard(k)
	first := b.leaves[k.leaf]
	if first == k {
		if k.next == nil {
			delete(b.leaves, k.leaf)
		} else {
			b.leaves[k.leaf] = k.next
		}
		return
	}
	for first.next != k {
		first = first.next
	}
	first.next = k.next
}

// discard stops counting a block. The lock is held.
func (b *Blocks) discard(k *keptBlock) {
	k.removed = true
	if k.newer != nil {
		b.unlink(k)
		b.bytes -= k.size()
	}
}

// Shed removes the least recently used blocks, however recently that was, until so many
// bytes are free, and returns how many that were.
func (b *Blocks) Shed(bytes int64) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.bytes
	for before-b.bytes < bytes && b.use.newer != &b.use {
		b.remove(b.use.newer)
	}
	return before - b.bytes
}

// Drop removes the blocks of a leaf that is not part of the newest state.
func (b *Blocks) Drop(leaf uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for k := b.leaves[leaf]; k != nil; k = k.next {
		b.discard(k)
	}
	delete(b.leaves, leaf)
}

// Bytes returns how many bytes are kept.
func (b *Blocks) Bytes() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bytes
}

// Leaves returns the identities of the leaves that have blocks.
func (b *Blocks) Leaves() []uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Keys(b.leaves))
}
