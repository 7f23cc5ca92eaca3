package watchcache

import (
	"context"
	"slices"

	"github.com/levelwire/levelwire/internal/btree"
	"github.com/levelwire/levelwire/server/internal/watchcache/eventlog"
	"github.com/levelwire/levelwire/server/internal/watchcache/invariant"
	"github.com/levelwire/levelwire/storage"
)

// checkpoint is the state before the entry at a position of the log. One is
// kept for each chunk of the log: the states in between are made by undoing at
// most a chunk of entries, which takes microseconds, while a root for each entry
// would keep a path of nodes in memory for each.
type checkpoint struct {
	position uint64
	tree     btree.Tree[*Object]
}

// Exact returns the state at exactly the given revision. It waits for a
// future one as NotOlderThan does, and fails with an *ExpiredError if the log
// does not reach back that far.
func (c *Cache) Exact(ctx context.Context, revision storage.Revision) (Snapshot, error) {
	current, err := c.NotOlderThan(ctx, revision)
	if err != nil {
		return Snapshot{}, err
	}
	if s := c.state.Load(); s.revision <= revision {
		// Nothing has changed since; a change after this load is later than the
		// revision that NotOlderThan has waited for, or comes late (ApplyNext): reads
		// at that revision have it or not, as they come after or before it.
		return c.snapshot(s.tree, revision), nil
	}
	if current.Revision() == revision {
		return current, nil
	}
	return c.rewind(revision)
}

// InexactThrough notes that the source may have left out changes up to a revision: the log
// has the latest of each object, and reads at exact revisions before it are refused. A
// later call replaces the revision, as a fill does.
func (c *Cache) InexactThrough(revision storage.Revision) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.exactSince = revision
}

// Lacks reports whether the log is without a change of a key that was made at a
// revision up to which the source has applied every change. It is false if the log
// does not reach back that far, or does not know the order of changes there.
func (c *Cache) Lacks(key string, revision storage.Revision, deleted bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.filled || revision <= max(c.exactSince, storage.Revision(c.baseRevision.Load())) {
		return false
	}
	for p := c.log.Search(func(e *eventlog.Entry) bool { return e.Revision >= revision }); p < c.log.End(); p++ {
		e := c.log.At(p)
		if e.Revision != revision {
			break
		}
		if e.Object != nil && e.Object.Key == key || e.Previous != nil && e.Previous.Key == key {
			return false
		}
	}
	held, _ := c.state.Load().tree.Get(key)
	return !deleted || held != nil && held.Revision < revision
}

// rewind undoes the entries after revision, from the nearest later checkpoint.
func (c *Cache) rewind(revision storage.Revision) (Snapshot, error) {
	c.mu.Lock()
	if oldest := max(c.exactSince, storage.Revision(c.baseRevision.Load())); revision < oldest {
		c.mu.Unlock()
		c.counters.beforeLog.Add(1)
		return Snapshot{}, &ExpiredError{Requested: revision, Oldest: oldest}
	}
	first := c.log.Search(func(e *eventlog.Entry) bool { return e.Revision > revision })
	from := checkpoint{c.log.End(), c.state.Load().tree}
	i, _ := slices.BinarySearchFunc(c.checkpoints, first, func(p checkpoint, position uint64) int {
		return int(int64(p.position) - int64(position))
	})
	if i < len(c.checkpoints) {
		from = c.checkpoints[i]
	}
	undo := make([]*eventlog.Entry, 0, from.position-first)
	for p := first; p < from.position; p++ {
		undo = append(undo, c.log.At(p))
	}
	c.mu.Unlock()

	tree := from.tree.Batch()
	for _, e := range slices.Backward(undo) {
		if invariant.Checked {
			e.CheckUndo(tree, c.res.GroupResource())
		}
		e.Undo(tree)
	}
	return c.snapshot(tree.Tree(), revision), nil
}
