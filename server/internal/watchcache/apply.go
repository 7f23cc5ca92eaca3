package watchcache

import (
	"github.com/levelwire/levelwire/internal/btree"
	"github.com/levelwire/levelwire/storage"
)

// Apply enters changes, which must be in ascending order of revision, into
// history and state. Changes up to the last revision of the batch before, or that
// of the fill, are known already and left out, as are deletions of what is not
// there. Several changes may share a revision, if they are all in one batch.
// Readers see all of the batch at once; watchers are woken once. The cache keeps
// the objects but not the slice. It returns how many were entered.
func (c *Cache) Apply(changes []Change) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.state.Load()
	tree, entered := before.tree.Batch(), 0
	tree.Succeed(c.blocks.drop)
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
		c.enter(change, previous, through, tree)
		entered++
	}
	if entered == 0 {
		return 0
	}
	c.state.Store(&state{tree: tree.Tree(), revision: changes[len(changes)-1].Revision})
	c.evict()
	for i, b := range c.touched {
		b.touched = false
		c.counters.wakes.Add(int64(b.wake()))
		c.touched[i] = nil
	}
	c.touched = c.touched[:0]
	return entered
}

// enter appends one event to the logs it belongs to and changes the tree.
func (c *Cache) enter(change *Change, previous *Object, through storage.Revision, tree *btree.Batch[*Object]) {
	e := &entry{revision: change.Revision, through: through, sequence: c.log.end.Load(), object: change.Object, previous: previous}
	if e.sequence&(1<<mainShift-1) == 0 {
		c.checkpoints = append(c.checkpoints, checkpoint{e.sequence, tree.Tree()})
	}
	if o := e.object; o != nil {
		o.succeed(previous)
		if o.Revision < e.revision {
			o.steady = e.revision // until then readers have been shown the state before
		}
		o.account.Store(c.account.Load())
		c.counters.objectBytes.Add(int64(len(o.JSON)))
		tree.SetAt(change.Key, o, int64(e.revision))
	} else {
		tree.Delete(change.Key)
	}
	if previous != nil {
		c.counters.objectBytes.Add(-int64(len(previous.JSON)))
	}
	var buckets [8]*bucket
	if found := c.index.find(e, buckets[:0]); len(found) > 0 {
		e.buckets = append(e.few[:0], found...)
	}
	c.log.append(e)
	switch {
	case e.object == nil:
		c.deaths = append(c.deaths, e)
	case through < e.revision:
		c.shared.add(e.revision)
	}
	c.touch(c.all)
	for _, b := range e.buckets {
		b.log.append(e)
		c.touch(b)
	}
	c.counters.events.Add(1)
	c.counters.historyBytes.Add(e.size())
}

func (c *Cache) touch(b *bucket) {
	if !b.touched {
		b.touched = true
		c.touched = append(c.touched, b)
	}
}

// evict drops history until it is within its limits.
func (c *Cache) evict() {
	for n := c.log.len(); n > c.opts.HistoryEvents || n > 1 && c.counters.historyBytes.Load() > c.opts.HistoryBytes; n-- {
		c.drop()
	}
	if c.summary != nil && !c.recent(c.summary) {
		c.summary = nil // it keeps the objects alive that were there when it was made
	}
}

// drop evicts the oldest event, from the buckets too. What they hold oldest is the same
// event: a bucket that has it has none from before.
func (c *Cache) drop() {
	e := c.log.evict()
	c.base.Store(int64(e.revision))
	c.foundation = nil
	for _, b := range e.buckets {
		b.log.evict()
	}
	if e.object == nil {
		c.deaths[0] = nil
		c.deaths = c.deaths[1:]
		c.bury(e)
	}
	e.release()
	c.counters.evicted.Add(1)
	c.counters.historyBytes.Add(-e.size())
	kept := 0
	for kept < len(c.checkpoints) && c.checkpoints[kept].position <= e.sequence {
		kept++
	}
	if kept > 0 {
		c.checkpoints = append(c.checkpoints[:0:0], c.checkpoints[kept:]...)
	}
}

// bury remembers a deletion that the log has dropped.
func (c *Cache) bury(e *entry) {
	if c.opts.ExactHistory {
		return
	}
	now := c.opts.Now()
	c.graves.bury(e, now)
	c.graves.trim(&c.opts, c.residue, now)
	e.previous.dropForms()
}

// Fill makes the cache hold exactly the given objects, in ascending order of
// their keys, as they were at revision. The first Fill makes the cache ready.
// A later one, after the source has lost its place, enters the differences as
// events, so that watchers lose nothing: they see, in an order of revisions
// that the true history could have had, what changed in between. Only if
// there are no revisions left for that, because the source has gone back in
// time, is the history given up and do watchers expire. It returns the number
// of differences.
func (c *Cache) Fill(objects []*Object, revision storage.Revision) (int, error) {
	differences, err := c.fill(objects, revision, false)
	if err == nil {
		c.open()
	}
	return differences, err
}

// fill is Fill, and leaves it to the caller to open the cache; anew gives the
// history up in any case.
func (c *Cache) fill(objects []*Object, revision storage.Revision, anew bool) (int, error) {
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
	differences := c.differences(tree)
	if revision >= c.reached() && !anew {
		changes, rest := schedule(nil, differences, c.reached(), revision)
		if len(rest) == 0 {
			c.mu.Lock()
			c.exact = revision // what happened on the way is not known
			c.mu.Unlock()
			c.Apply(changes)
			c.settle(revision)
			return len(differences), nil
		}
	}
	c.replace(tree, revision)
	c.counters.resets.Add(1)
	return len(differences), nil
}

// settle raises the state's revision: nothing more comes up to it.
func (c *Cache) settle(revision storage.Revision) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.state.Load(); s.revision < revision {
		c.state.Store(&state{tree: s.tree, revision: revision})
	}
}

// replace starts anew with a state and no history.
func (c *Cache) replace(tree btree.Tree[*Object], revision storage.Revision) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.log.len() > 0 {
		c.drop()
	}
	c.state.Load().tree.Retire(c.blocks.drop)
	accounts, size := new(account), 0
	for _, o := range tree.Range("", "") {
		o.account.Store(accounts)
		size += len(o.JSON)
	}
	c.account.Store(accounts)
	c.counters.objectBytes.Store(int64(size))
	c.checkpoints = nil
	c.summary = nil
	c.shared = nil
	c.graves.forget(revision)
	c.exact = revision
	c.base.Store(int64(revision))
	c.foundation = &tree
	c.state.Store(&state{tree: tree, revision: revision})
	if !c.filled {
		return
	}
	c.generation.Add(1)
	c.wakeAll()
}

// open makes the cache ready when it has been filled for the first time. Until
// then nobody reads it: the progress that it shares may be ahead of it.
func (c *Cache) open() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.filled {
		c.filled = true
		close(c.ready)
	}
}
