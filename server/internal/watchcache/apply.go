package watchcache

import (
	"cmp"
	"slices"

	"github.com/levelwire/levelwire/internal/btree"
	"github.com/levelwire/levelwire/server/internal/watchcache/eventlog"
	"github.com/levelwire/levelwire/server/internal/watchcache/invariant"
	"github.com/levelwire/levelwire/storage"
)

// Apply applies a batch of changes, which must be in ascending order of revision,
// to the log and the state. It skips changes up to the last revision of the batch
// before, or of the fill, and deletions of keys that do not exist. Several changes
// may share a revision if they are all in one batch; the slice is ordered so that the
// deletions of each revision come first. Readers see all of the batch
// at once; watchers are woken once. The cache keeps the objects but not the slice.
// Apply returns how many changes were applied.
func (c *Cache) Apply(changes []Change) int {
	return c.applyCounted(changes, changeIsLater)
}

// ApplyNext applies the next change of a source that brings changes one by one, and does not say
// which of them share a revision, as the watch of another server. Other than Apply it takes a
// change of the revision that the cache has reached already: readers have seen the state without
// it, and watchers may have been told that revision. It reaches those that are there, and all that
// resume at that revision get the whole of it again. ApplyNext returns false if the change is
// older, or the cache has it.
func (c *Cache) ApplyNext(change Change) bool {
	c.oneByOne.Store(true)
	return c.applyCounted([]Change{change}, changeIsNext) > 0
}

// applyCounted is apply with all that is done without the lock, before and after it.
func (c *Cache) applyCounted(changes []Change, isNews func(change *Change, previous *Object, before *cacheState) bool) int {
	c.ownAttributes(changes)
	applied, bytes := c.apply(changes, isNews)
	c.opts.Budget.add(bytes)
	c.compressCold()
	return applied
}

// changeIsLater reports whether a change is later than the state before a batch.
func changeIsLater(change *Change, _ *Object, before *cacheState) bool {
	return change.Revision > before.revision
}

// changeIsNext reports whether a change is later than the state before it, or at the same revision
// and of a key that has not got it.
func changeIsNext(change *Change, previous *Object, before *cacheState) bool {
	switch {
	case change.Revision != before.revision:
		return change.Revision > before.revision
	case change.Object == nil:
		return previous != nil && previous.Revision <= change.Revision
	}
	return previous == nil || previous.Revision < change.Revision
}

// apply is Apply within the cache's own limits. It applies the changes that are news. It also
// returns how many bytes were added to the log.
func (c *Cache) apply(changes []Change, isNews func(change *Change, previous *Object, before *cacheState) bool) (applied int, bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.state.Load()
	if invariant.Checked {
		c.checkBatch(changes, before)
	}
	deletionsFirst(changes)
	tree := before.tree.Batch()
	arrived := c.ticks(c.opts.Now())
	tree.Succeed(c.blocks.Drop)
	tree.Filter(c.newTraits)
	for i := range changes {
		change := &changes[i]
		previous, _ := tree.Get(change.Key)
		if change.Object == nil && previous == nil || !isNews(change, previous, before) {
			continue
		}
		through := change.Revision
		if i+1 < len(changes) && changes[i+1].Revision == through {
			through--
		}
		bytes += c.append(change, previous, through, arrived, tree)
		applied++
	}
	if applied == 0 {
		return 0, 0
	}
	c.setState(cacheState{tree: tree.Tree(), revision: changes[len(changes)-1].Revision, logEnd: c.log.End()})
	c.evict()
	if c.opts.CompressAtOnce {
		for i := range changes {
			c.addCold(changes[i].Object)
		}
	}
	if c.opts.Applied != nil {
		for i := range changes {
			c.opts.Applied(c.res.StorePrefix, changes[i].Key, changes[i].Revision)
		}
	}
	for i, b := range c.touched {
		b.touched = false
		c.counters.wakes.Add(int64(b.wake()))
		c.touched[i] = nil
	}
	c.touched = c.touched[:0]
	return applied, bytes
}

// deletionsFirst orders the changes of each revision so that the deletions come before the
// rest, as coalesced history has them. A transaction of another program may put, delete and
// put. The event of a deletion that is not the last change of its revision carries the revision
// before (eventlog.Entry.Through): behind a put, a watch would go back to it, and a client that
// drops what is older than what it has would keep the object for ever. A transaction changes
// no key twice, so that the order within a revision is free; of an object that was made anew
// (schedule) the deletion comes first in any case.
func deletionsFirst(changes []Change) {
	for first := 0; first < len(changes); {
		next, ordered := first+1, true
		for ; next < len(changes) && changes[next].Revision == changes[first].Revision; next++ {
			ordered = ordered && (changes[next].Object != nil || changes[next-1].Object == nil)
		}
		if !ordered {
			slices.SortStableFunc(changes[first:next], func(a, b Change) int {
				return cmp.Compare(isPut(a), isPut(b))
			})
		}
		first = next
	}
}

func isPut(change Change) int {
	if change.Object == nil {
		return 0
	}
	return 1
}

// append appends one event to the logs it belongs to and changes the tree. It returns
// the bytes that the event adds to the log.
func (c *Cache) append(change *Change, previous *Object, through storage.Revision, arrived uint32, tree *btree.Batch[*Object]) int64 {
	e := &eventlog.Entry{Revision: change.Revision, Through: through, Sequence: c.log.End(), Object: change.Object, Previous: previous, Arrived: arrived}
	if c.oneByOne.Load() && e.Revision <= max(c.state.Load().revision, c.followed()) {
		e.MarkLate() // readers have seen the state of the revision without it
	}
	if before := c.log.At(e.Sequence - 1); before != nil && before.Revision == e.Revision {
		e.MarkFollower() // nothing is evicted within a batch
	}
	if e.Sequence&(1<<mainShift-1) == 0 {
		c.checkpoints = append(c.checkpoints, checkpoint{e.Sequence, tree.Tree()})
	}
	if o := e.Object; o != nil {
		o.InheritFrom(previous)
		if o.Revision < e.Revision {
			o.SelectorsStableSince = e.Revision // a repair: until then readers got the state before
		}
		o.CountForms(c.formBytes.Load())
		c.counters.objectBytes.Add(int64(o.Size()))
		c.counters.heldBytes.Add(o.HeldBytes())
		tree.SetAt(change.Key, o, int64(e.Revision))
	} else {
		tree.Delete(change.Key)
	}
	if previous != nil {
		c.counters.objectBytes.Add(-int64(previous.Size()))
		c.counters.heldBytes.Add(-previous.HeldBytes())
	}
	var room [8]*bucket
	buckets := c.index.find(e, room[:0])
	for _, b := range buckets {
		e.AlsoIn(b.log)
	}
	if invariant.Checked {
		c.checkEntry(e, buckets)
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
	size := e.Size()
	c.counters.historyBytes.Add(size)
	c.withForms += size
	return size
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
	limit := c.historyLimit()
	for n := c.log.Len(); n > c.opts.HistoryEvents || n > 1 && c.counters.historyBytes.Load() > limit; n-- {
		c.drop()
	}
	c.dropReadForms(limit)
	c.forgetOldSummary()
}

// forgetOldSummary drops the summary if the log does not continue it any more, or has
// grown far beyond it: it keeps the objects of its time in memory.
func (c *Cache) forgetOldSummary() {
	if c.summary != nil && !c.recent(c.summary) {
		c.summary = nil
	}
}

// drop evicts the oldest event, from the buckets too: it is the oldest event of
// each bucket that holds it.
func (c *Cache) drop() {
	e := c.log.Evict()
	c.noteEvictedPart(e)
	c.baseRevision.Store(int64(e.Revision))
	c.baseTree = nil
	for _, log := range e.Logs() {
		if invariant.Checked {
			c.checkOldest(log, e)
		}
		log.Evict()
	}
	if e.Object == nil {
		c.deletions[0] = nil
		c.deletions = c.deletions[1:]
		c.addTombstone(e)
	}
	if invariant.Checked {
		c.checkEvicted(e)
	}
	e.Release()
	c.addCold(e.Object)
	c.counters.evicted.Add(1)
	size := e.Size()
	c.counters.historyBytes.Add(-size)
	if e.Sequence >= c.formsDropped.Load() {
		c.formsDropped.Store(e.Sequence + 1)
		c.withForms -= size
	}
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
	c.tombstones.Trim(c.tombstoneLimits(), c.TombstoneMetadata, now)
	e.Previous.DropForms()
}
