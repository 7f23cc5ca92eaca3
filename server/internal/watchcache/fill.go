package watchcache

import (
	"github.com/levelwire/levelwire/internal/btree"
	"github.com/levelwire/levelwire/server/internal/watchcache/invariant"
	"github.com/levelwire/levelwire/server/internal/watchcache/state"
	"github.com/levelwire/levelwire/storage"
)

// Fill makes the cache hold exactly the given objects, in ascending order of
// their keys, as they were at revision. The first Fill makes the cache ready.
// A later Fill, after the source has lost its position in the store, applies the
// discrepancies as changes, so that watchers miss nothing: they see what changed in
// between, in an order of revisions that the true history could have had. If there
// are no revisions left for that, because the store has gone back in time, the
// cache drops its log and watchers expire. Fill returns the number of
// discrepancies.
func (c *Cache) Fill(objects []*Object, revision storage.Revision) (int, error) {
	discrepancies, err := c.Refill(objects, revision, false)
	if err == nil {
		c.Open()
	}
	return discrepancies, err
}

// Refill is Fill without Open. If anew is set it drops the log in any case.
func (c *Cache) Refill(objects []*Object, revision storage.Revision, anew bool) (int, error) {
	tree, err := btree.LoadAt(len(objects), func(i int) (string, *Object, int64) {
		return objects[i].Key, objects[i], int64(objects[i].Revision)
	})
	if err != nil {
		return 0, err
	}
	c.mu.Lock()
	first := !c.filled
	c.mu.Unlock()
	if first {
		c.replace(tree, revision)
		return 0, nil
	}
	discrepancies := c.discrepancies(tree)
	if revision >= c.Reached() && !anew {
		changes, rest := schedule(nil, discrepancies, c.Reached(), revision)
		if len(rest) == 0 {
			c.mu.Lock()
			c.exactSince = revision // the order of the changes in between is not known
			c.noteGap(c.Reached(), revision)
			c.mu.Unlock()
			c.Apply(changes)
			c.raise(revision)
			return len(discrepancies), nil
		}
	}
	c.replace(tree, revision)
	c.compressCold()
	c.counters.resets.Add(1)
	return len(discrepancies), nil
}

// raise raises the state's revision: no change up to it is missing.
func (c *Cache) raise(revision storage.Revision) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.state.Load(); s.revision < revision {
		c.setState(cacheState{tree: s.tree, revision: revision, logEnd: s.logEnd})
	}
}

// replace sets the state and empties the log.
func (c *Cache) replace(tree btree.Tree[*Object], revision storage.Revision) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.log.Len() > 0 {
		c.drop()
	}
	if invariant.Checked {
		c.checkEmpty()
	}
	c.state.Load().tree.Retire(c.blocks.Drop)
	counter := new(state.ByteCounter)
	var size, held int64
	for _, o := range tree.Range("", "") {
		o.CountForms(counter)
		size += int64(o.Size())
		held += o.HeldBytes()
		if invariant.Checked {
			o.Seal()
		}
	}
	c.formBytes.Store(counter)
	c.counters.objectBytes.Store(size)
	c.counters.heldBytes.Store(held)
	c.checkpoints = nil
	c.summary = nil
	c.shared, c.evictedPart, c.replacedAt = nil, false, revision
	c.tombstones.Reset(revision)
	c.exactSince = revision
	c.gaps.Store(nil)
	c.baseRevision.Store(int64(revision))
	c.baseTree = &tree
	if c.filled {
		c.generation.Add(1) // first: who has seen the state then learns that the log does not lead to it
		defer c.wakeAll()
	}
	c.setState(cacheState{tree: tree, revision: revision, logEnd: c.log.End()})
	c.forgetReplaced()
}

// Open makes the cache ready after the first Refill. Until then reads wait: the
// shared progress may be ahead of the cache.
func (c *Cache) Open() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.filled {
		c.filled = true
		close(c.ready)
	}
}

// Generation returns the generation of the log: it grows when a fill drops it.
func (c *Cache) Generation() uint64 { return c.generation.Load() }

// Tree returns the tree of the newest state, ready or not: a source takes the
// objects over that have not changed.
func (c *Cache) Tree() btree.Tree[*Object] { return c.state.Load().tree }
