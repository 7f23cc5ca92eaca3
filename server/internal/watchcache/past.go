package watchcache

import (
	"slices"

	"github.com/levelwire/levelwire/internal/btree"
	"github.com/levelwire/levelwire/storage"
)

// past is what happened before a cache was filled: the changes in (from,
// through], as far as they are kept.
type past struct {
	generation uint64 // of the cache that it belongs to
	from       storage.Revision
	through    storage.Revision // the cache's fill
	entries    []*entry         // the newest, ascending and without gap
	since      storage.Revision // dead has all earlier deletions after this
	dead       []grave
	shared     sharedRevisions // of what is in neither
}

// expectPast makes Resume wait for recall. The source promises to call recall
// or forgo once the cache has been filled.
func (c *Cache) expectPast() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.recalling == nil {
		c.recalling = make(chan struct{})
	}
}

// forgo says that recall will not be called.
func (c *Cache) forgo() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recalled()
}

// recalled lets those go on who wait for the past. The lock is held.
func (c *Cache) recalled() {
	if c.recalling != nil {
		close(c.recalling)
		c.recalling = nil
	}
}

// recall puts the past in front of the log, as much of it as the limits leave
// room for. Cursors do not notice: positions count from the fill, both ways.
func (c *Cache) recall(p past) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.recalled()
	if p.generation != c.generation.Load() {
		return // the history has been given up since
	}
	for _, revision := range p.shared {
		c.shared.add(revision)
	}
	for _, e := range p.entries {
		if e.object != nil && e.through < e.revision {
			c.shared.add(e.revision)
		}
	}
	first := len(p.entries)
	base := storage.Revision(c.base.Load())
	exact := base == p.through && c.foundation != nil // and has not grown beyond its limits
	if exact {
		first = c.room(p.entries)
	}
	c.recallDead(&p, p.entries[:first])
	if !exact {
		return
	}
	if first == 0 {
		base = p.from
	} else {
		base = p.entries[first-1].revision
	}
	entries := p.entries[first:]
	for _, e := range entries {
		c.counters.historyBytes.Add(e.size())
		for _, o := range []*Object{e.object, e.previous} {
			if o != nil {
				o.account.CompareAndSwap(nil, c.account.Load())
			}
		}
	}
	c.log.prepend(entries)
	c.deaths = slices.Concat(deathsOf(entries), c.deaths)
	c.layCheckpoints(entries)
	if c.exact == p.through {
		c.exact = base
	}
	c.base.Store(int64(base))
}

// recallDead remembers the deletions that the log does not have room for. The
// lock is held.
func (c *Cache) recallDead(p *past, early []*entry) {
	if c.opts.ExactHistory || c.graves.since > p.through {
		return
	}
	now := c.opts.Now()
	for _, e := range early {
		if e.object == nil {
			p.dead = append(p.dead, grave{e.revision, e.through, e.previous, now})
		}
	}
	c.graves.recall(p.dead, p.since)
	c.graves.trim(&c.opts, c.residue, now)
}

// room returns how many of the entries, from the front, do not fit into the
// history's limits. Those of one revision stay together.
func (c *Cache) room(entries []*entry) int {
	events, bytes := c.opts.HistoryEvents-c.log.len(), c.opts.HistoryBytes-c.counters.historyBytes.Load()
	first := len(entries)
	for first > 0 && len(entries)-first < events {
		if bytes -= entries[first-1].size(); bytes < 0 {
			break
		}
		first--
	}
	for first > 0 && first < len(entries) && entries[first].revision == entries[first-1].revision {
		first++
	}
	return first
}

// layCheckpoints keeps the states before some of the entries, which have just
// become the oldest of the log. The lock is held.
func (c *Cache) layCheckpoints(entries []*entry) {
	tree := c.foundation.Batch()
	var laid []checkpoint
	for _, e := range slices.Backward(entries) {
		e.undo(tree)
		if e.sequence&(1<<mainShift-1) == 0 {
			laid = append(laid, checkpoint{e.sequence, tree.Tree()})
		}
	}
	slices.Reverse(laid)
	c.checkpoints = append(laid, c.checkpoints...)
	base := tree.Tree()
	c.foundation = &base
}

// deathsOf returns the deletions among entries.
func deathsOf(entries []*entry) (deaths []*entry) {
	for _, e := range entries {
		if e.object == nil {
			deaths = append(deaths, e)
		}
	}
	return deaths
}

// undo takes the entry's change back.
func (e *entry) undo(tree *btree.Batch[*Object]) {
	if e.previous == nil {
		tree.Delete(e.object.Key)
	} else {
		tree.Set(e.previous.Key, e.previous)
	}
}
