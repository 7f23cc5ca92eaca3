package watchcache

import (
	"github.com/levelwire/levelwire/internal/btree"
	"github.com/levelwire/levelwire/server/internal/watchcache/eventlog"
	"github.com/levelwire/levelwire/storage"
)

// Apply applies a batch of changes, which must be in ascending order of revision,
// to the log and the state. It skips changes up to the last revision of the batch
// before, or of the fill, and deletions of keys that do not exist. Several changes
// may share a revision if they are all in one batch. Readers see all of the batch
// at once; watchers are woken once. The cache keeps the objects but not the slice.
// Apply returns how many changes were applied.
func (c *Cache) Apply(changes []Change) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.state.Load()
	tree, applied := before.tree.Batch(), 0
	tree.Succeed(c.blocks.Drop)
	for i := range changes {
		change := &changes[i]
		if change.Revision <= before.revision {
			continue
		}
		previous, _ := tree.Get(change.Key)
		if change.Object == nil && previous == nil {
			continue
		}
		through := change.Revision
		if i+1 < len(changes) && changes[i+1].Revision == through {
			through--
		}
		c.append(change, previous, through, tree)
		applied++
	}
	if applied == 0 {
		return 0
	}
	c.state.Store(&cacheState{tree: tree.Tree(), revision: changes[len(changes)-1].Revision})
	c.evict()
	for i, b := range c.touched {
		b.touched = false
		c.counters.wakes.Add(int64(b.wake()))
		c.touched[i] = nil
	}
	c.touched = c.touched[:0]
	return applied
}

// append appends one event to the logs it belongs to and changes the tree.
func (c *Cache) append(change *Change, previous *Object, through storage.Revision, tree *btree.Batch[*Object]) {
	e := &eventlog.Entry{Revision: change.Revision, Through: through, Sequence: c.log.End(), Object: change.Object, Previous: previous}
	if e.Sequence&(1<<mainShift-1) == 0 {
		c.checkpoints = append(c.checkpoints, checkpoint{e.Sequence, tree.Tree()})
	}
	if o := e.Object; o != nil {
		o.InheritFrom(previous)
		if o.Revision < e.Revision {
			o.SelectorsStableSince = e.Revision // a repair: until then readers got the state before
		}
		o.CountForms(c.formBytes.Load())
		c.counters.objectBytes.Add(int64(len(o.JSON)))
		tree.SetAt(change.Key, o, int64(e.Revision))
	} else {
		tree.Delete(change.Key)
	}
	if previous != nil {
		c.counters.objectBytes.Add(-int64(len(previous.JSON)))
	}
	var room [8]*bucket
	buckets := c.index.find(e, room[:0])
	for _, b := range buckets {
		e.AlsoIn(b.log)
	}
	c.log.Append(e)
	switch {
	case e.Object == nil:
		c.deletions = append(c.deletions, e)
	case through < e.Revision:
		c.shared.Add(e.Revision)
	}
	c.touch(c.all)
	for _, b := range buckets {
		b.log.Append(e)
		c.touch(b)
	}
	c.counters.events.Add(1)
	c.counters.historyBytes.Add(e.Size())
}

// touch has a bucket's watchers woken after the batch.
func (c *Cache) touch(b *bucket) {
	if !b.touched {
		b.touched = true
		c.touched = append(c.touched, b)
	}
}

// evict drops the oldest events until the log is within its limits.
func (c *Cache) evict() {
	for n := c.log.Len(); n > c.opts.HistoryEvents || n > 1 && c.counters.historyBytes.Load() > c.opts.HistoryBytes; n-- {
		c.drop()
	}
	if c.summary != nil && !c.recent(c.summary) {
		c.summary = nil // it keeps the objects of its time in memory
	}
}

// drop evicts the oldest event, from the buckets too: it is the oldest event of
// each bucket that holds it.
func (c *Cache) drop() {
	e := c.log.Evict()
	c.baseRevision.Store(int64(e.Revision))
	c.baseTree = nil
	for _, log := range e.Logs() {
		log.Evict()
	}
	if e.Object == nil {
		c.deletions[0] = nil
		c.deletions = c.deletions[1:]
		c.addTombstone(e)
	}
	e.Release()
	c.counters.evicted.Add(1)
	c.counters.historyBytes.Add(-e.Size())
	kept := 0
	for kept < len(c.checkpoints) && c.checkpoints[kept].position <= e.Sequence {
		kept++
	}
	if kept > 0 {
		c.checkpoints = append(c.checkpoints[:0:0], c.checkpoints[kept:]...)
	}
}

// addTombstone keeps a deletion that the log has evicted.
func (c *Cache) addTombstone(e *eventlog.Entry) {
	if c.opts.ExactHistory {
		return
	}
	now := c.opts.Now()
	c.tombstones.Add(e, now)
	c.tombstones.Trim(c.opts.tombstoneLimits(), c.TombstoneMetadata, now)
	e.Previous.DropForms()
}
