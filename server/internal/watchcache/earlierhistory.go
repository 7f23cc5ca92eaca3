package watchcache

import (
	"slices"

	"github.com/levelwire/levelwire/server/internal/watchcache/backfill"
	"github.com/levelwire/levelwire/server/internal/watchcache/eventlog"
	"github.com/levelwire/levelwire/server/internal/watchcache/invariant"
	"github.com/levelwire/levelwire/server/internal/watchcache/tombstone"
	"github.com/levelwire/levelwire/storage"
)

// NewCollector returns a collector of what happened before the cache was filled.
func (c *Cache) NewCollector() *backfill.Collector {
	c.mu.Lock()
	defer c.mu.Unlock()
	return backfill.NewCollector(backfill.Options{
		Resource: c.res, Decode: c.opts.Decode, Generation: c.generation.Load(),
		// Deletions that the log has evicted since the fill are tombstones already.
		Through:   min(storage.Revision(c.baseRevision.Load()), c.tombstones.Since()),
		Current:   c.state.Load().tree,
		MaxEvents: c.opts.HistoryEvents, MaxBytes: c.historyLimit(), MaxTombstones: c.opts.Tombstones,
		ExactHistory: c.opts.ExactHistory, Now: c.opts.Now,
	})
}

// ExpectHistory makes Resume wait for earlier history. The source must call
// PrependHistory or SkipBackfill once the cache has been filled.
func (c *Cache) ExpectHistory() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.backfilling == nil {
		c.backfilling = make(chan struct{})
	}
}

// SkipBackfill makes Resume wait no longer: PrependHistory will not be called.
func (c *Cache) SkipBackfill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endBackfill()
}

// endBackfill releases the calls of Resume that wait. The lock is held.
func (c *Cache) endBackfill() {
	if c.backfilling != nil {
		close(c.backfilling)
		c.backfilling = nil
	}
}

// PrependHistory puts earlier history in front of the log, as much of it as the
// limits have room for. Cursors are not affected: positions count from the fill,
// in both directions. The cache keeps the entries.
func (c *Cache) PrependHistory(h backfill.EarlierHistory) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.endBackfill()
	if h.Generation != c.generation.Load() {
		return // the log has been dropped since
	}
	for _, revision := range h.Shared {
		c.shared.Add(revision)
	}
	for _, e := range h.Entries {
		if e.Object != nil && e.Through < e.Revision {
			c.shared.Add(e.Revision)
		}
	}
	first := len(h.Entries)
	base := storage.Revision(c.baseRevision.Load())
	joins := base == h.Through && c.baseTree != nil // nothing has been evicted since the fill
	if joins {
		first = c.room(h.Entries)
	}
	c.prependTombstones(&h, h.Entries[:first])
	if !joins {
		return
	}
	if first == 0 {
		base = h.From
	} else {
		base = h.Entries[first-1].Revision
	}
	entries := h.Entries[first:]
	for _, e := range entries {
		c.counters.historyBytes.Add(e.Size())
		for _, o := range []*Object{e.Object, e.Previous} {
			if o != nil {
				o.CountFormsIfUncounted(c.formBytes.Load())
			}
		}
	}
	if invariant.Checked {
		c.checkPrepended(entries, base)
	}
	c.log.Prepend(entries)
	c.deletions = slices.Concat(deletionsAmong(entries), c.deletions)
	c.prependCheckpoints(entries)
	if c.exactSince == h.Through {
		c.exactSince = base
	}
	c.baseRevision.Store(int64(base))
}

// prependTombstones keeps the deletions that are earlier than the log, those among
// the entries included for which the log has no room. The lock is held.
func (c *Cache) prependTombstones(h *backfill.EarlierHistory, early []*eventlog.Entry) {
	if c.opts.ExactHistory || c.tombstones.Since() > h.Through {
		return
	}
	now := c.opts.Now()
	for _, e := range early {
		if e.Object == nil {
			h.Tombstones = append(h.Tombstones, tombstone.Tombstone{Revision: e.Revision, Through: e.Through, Last: e.Previous, Added: now})
		}
	}
	c.tombstones.Prepend(h.Tombstones, h.Since)
	if invariant.Checked {
		c.checkTombstones(c.tombstones.After(0))
	}
	c.tombstones.Trim(c.tombstoneLimits(), c.TombstoneMetadata, now)
}

// room returns how many of the entries, from the front, do not fit into the log's
// limits. Entries of one revision stay together.
func (c *Cache) room(entries []*eventlog.Entry) int {
	events, bytes := c.opts.HistoryEvents-c.log.Len(), c.historyLimit()-c.counters.historyBytes.Load()
	first := len(entries)
	for first > 0 && len(entries)-first < events {
		if bytes -= entries[first-1].Size(); bytes < 0 {
			break
		}
		first--
	}
	for first > 0 && first < len(entries) && entries[first].Revision == entries[first-1].Revision {
		first++
	}
	return first
}

// prependCheckpoints makes the checkpoints of entries that have just become the
// oldest of the log. The lock is held.
func (c *Cache) prependCheckpoints(entries []*eventlog.Entry) {
	tree := c.baseTree.Batch()
	var added []checkpoint
	for _, e := range slices.Backward(entries) {
		if invariant.Checked {
			e.CheckUndo(tree, c.res.GroupResource())
		}
		e.Undo(tree)
		if e.Sequence&(1<<mainShift-1) == 0 {
			added = append(added, checkpoint{e.Sequence, tree.Tree()})
		}
	}
	slices.Reverse(added)
	c.checkpoints = append(added, c.checkpoints...)
	base := tree.Tree()
	c.baseTree = &base
}

// deletionsAmong returns the deletions among entries.
func deletionsAmong(entries []*eventlog.Entry) (deletions []*eventlog.Entry) {
	for _, e := range entries {
		if e.Object == nil {
			deletions = append(deletions, e)
		}
	}
	return deletions
}
