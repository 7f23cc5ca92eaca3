package watchcache

import (
	"cmp"
	"sync"
	"sync/atomic"
	"time"
)

// Block is what a whole run of objects looks like in one form: the part of a
// list that they are. It is immutable and shared by all who ask for it.
type Block struct {
	Bytes []byte // must not be modified
	Size  int    // of what Bytes stand for, if they are compressed
	CRC   uint32 // of what Bytes stand for, where somebody needs it
}

// settled is how long a block that was used is safe from being displaced. A
// list that does not fit as a whole then keeps what fits, instead of pushing out,
// one by one, the blocks that it will ask for next time.
const settled = 10 * time.Second

// blocks keeps the blocks of a cache's runs by the identities of their leaves.
// They go with their leaf, or when there is no room for more. It is safe for
// concurrent use; its lock is the innermost.
type blocks struct {
	limit int64

	mu     sync.Mutex
	leaves map[uint64]*keptBlock // the first of each leaf's
	bytes  int64
	use    keptBlock // ring of those that are made: use.newer is the oldest
}

// keptBlock is one block, made or in the making.
type keptBlock struct {
	leaf       uint64
	form       FormID
	generation uint64
	making     sync.Mutex // held while it is made
	made       atomic.Pointer[Block]

	// What follows is guarded by the lock of blocks.
	next         *keptBlock // of the same leaf
	gone         bool       // nobody finds it any more
	older, newer *keptBlock // nil: not in the ring, and not counted
	used         time.Time
}

func newBlocks(limit int64) *blocks {
	b := &blocks{limit: limit, leaves: make(map[uint64]*keptBlock)}
	b.use.older, b.use.newer = &b.use, &b.use
	return b
}

// Block returns the run's block in a form; see Object.FormAt for its
// generation. The first caller makes it with encode, concurrent ones wait for
// that one, later ones get the same for as long as the cache keeps it. Only whole runs
// share blocks; of others, and of those that no newest state has any more, each
// caller makes its own. encode must depend on nothing but the run.
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

// Kept returns the run's block in a form if it is at hand.
func (r Run) Kept(id FormID, generation uint64) (Block, bool) {
	if r.blocks == nil || !r.Whole() {
		return Block{}, false
	}
	r.blocks.mu.Lock()
	defer r.blocks.mu.Unlock()
	leaf, ok := r.entries.Identity()
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

// kept finds the run's place for a block, or makes one. It is nil if the block
// cannot be kept.
func (r Run) kept(id FormID, generation uint64) *keptBlock {
	b := r.blocks
	if b == nil || b.limit <= 0 || !r.Whole() {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	leaf, ok := r.entries.Identity() // under the lock: a leaf that retires later is cleared away
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

// touch makes a block the latest used. The lock is held.
func (b *blocks) touch(k *keptBlock) {
	if k.newer == nil {
		return // in the making
	}
	b.unlink(k)
	b.link(k)
}

func (b *blocks) link(k *keptBlock) {
	k.used = time.Now()
	k.older, k.newer = b.use.older, &b.use
	k.older.newer, b.use.older = k, k
}

func (b *blocks) unlink(k *keptBlock) {
	k.older.newer, k.newer.older = k.newer, k.older
	k.older, k.newer = nil, nil
}

// size is what a block adds to the memory of the cache.
func (k *keptBlock) size() int64 {
	const overhead = 256
	return overhead + int64(cap(k.made.Load().Bytes))
}

// enter counts a block that has been made, and displaces others for it. If
// those are all in use, the new one goes.
func (b *blocks) enter(k *keptBlock) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if k.gone {
		return
	}
	for b.bytes+k.size() > b.limit {
		oldest := b.use.newer
		if oldest == &b.use || time.Since(oldest.used) < settled {
			b.remove(k)
			return
		}
		b.remove(oldest)
	}
	b.bytes += k.size()
	b.link(k)
}

// remove forgets a block. The lock is held.
func (b *blocks) remove(k *keptBlock) {
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

// discard takes a block out of the account. The lock is held.
func (b *blocks) discard(k *keptBlock) {
	k.gone = true
	if k.newer != nil {
		b.unlink(k)
		b.bytes -= k.size()
	}
}

// drop forgets the blocks of a leaf that the newest state does without.
func (b *blocks) drop(leaf uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for k := b.leaves[leaf]; k != nil; k = k.next {
		b.discard(k)
	}
	delete(b.leaves, leaf)
}

// held returns how many bytes are kept.
func (b *blocks) held() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bytes
}
