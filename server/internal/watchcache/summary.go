package watchcache

import (
	"cmp"
	"slices"

	"github.com/levelwire/levelwire/server/internal/watchcache/eventlog"
	"github.com/levelwire/levelwire/server/internal/watchcache/tombstone"
	"github.com/levelwire/levelwire/storage"
)

// A summary is coalesced history: the latest change of each object that has
// changed after a revision, and the deletions. It is made when a watch first starts
// before the log, in time that grows with the number of changes, and shared by all
// watches that start at its revision or a later one, until the log has grown too
// far beyond it.
type summary struct {
	generation uint64
	from       storage.Revision // no change after this is missing
	revision   storage.Revision // of the state; later changes are in the log
	position   uint64           // of the first of those in the log
	changes    []latestChange   // ascending by revision; of one revision, deletions first
}

// latestChange is the latest change of one object. Exactly one of object and
// deletion is set.
type latestChange struct {
	revision storage.Revision
	object   *Object // as it is now
	deletion *eventlog.Entry
}

// state returns what selectors look at: the object, or its last state.
func (l *latestChange) state() *Object {
	if l.object != nil {
		return l.object
	}
	return l.deletion.Previous
}

// compare orders by revision; of one revision, deletions come first, and of those
// the one that completes the revision comes last.
func (l latestChange) compare(other latestChange) int {
	switch {
	case l.revision != other.revision:
		return cmp.Compare(l.revision, other.revision)
	case l.deletion == nil && other.deletion == nil:
		return 0
	case l.deletion == nil:
		return 1
	case other.deletion == nil:
		return -1
	}
	return cmp.Compare(l.deletion.Through, other.deletion.Through)
}

// summarize returns a summary of the changes after a revision, which the log
// continues, or nil if the tombstones do not reach back that far. Making one does
// not block the writer, but other callers of summarize wait.
func (c *Cache) summarize(after storage.Revision) *summary {
	c.summarizing.Lock()
	defer c.summarizing.Unlock()
	s, m := c.prepareSummary(after)
	if m == nil {
		return s
	}
	s.changes = m.sorted(after)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.recent(s) {
		c.summary = s
	}
	return s
}

// material is what a summary is made of.
type material struct {
	state      *cacheState
	tombstones []tombstone.Tombstone
	deletions  []*eventlog.Entry // in the log, later than the tombstones; cursors skip those that are too early
}

// sorted returns the changes after a revision in order.
func (m *material) sorted(after storage.Revision) []latestChange {
	changes := make([]latestChange, 0, len(m.tombstones)+len(m.deletions))
	for i := range m.tombstones {
		changes = append(changes, latestChange{revision: m.tombstones[i].Revision, deletion: m.tombstones[i].Entry()})
	}
	for _, e := range m.deletions {
		changes = append(changes, latestChange{revision: e.Revision, deletion: e})
	}
	for o, revision := range m.state.tree.Since(int64(after)) {
		changes = append(changes, latestChange{revision: storage.Revision(revision), object: o})
	}
	slices.SortFunc(changes, latestChange.compare)
	return changes
}

// recent reports whether the log continues the summary, and has not grown so far
// beyond it that a new summary is better. The lock is held.
func (c *Cache) recent(s *summary) bool {
	return s.generation == c.generation.Load() && s.position >= c.log.Oldest() &&
		c.log.End()-s.position <= uint64(c.opts.HistoryEvents/4)
}

// prepareSummary returns the last summary if it is recent and begins early enough,
// and otherwise an empty one with its material. The summary is nil if the
// tombstones do not reach back that far.
func (c *Cache) prepareSummary(after storage.Revision) (*summary, *material) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tombstones.Trim(c.tombstoneLimits(), c.TombstoneMetadata, c.opts.Now())
	if after < c.tombstones.Since() {
		return nil, nil
	}
	if s := c.summary; s != nil && c.recent(s) && after >= s.from {
		return s, nil
	}
	current := c.state.Load()
	m := &material{state: current, tombstones: slices.Clone(c.tombstones.After(after)), deletions: slices.Clone(c.deletions)}
	return &summary{generation: c.generation.Load(), from: after, revision: current.revision, position: c.log.End()}, m
}

// after returns the position of the first change after a revision.
func (s *summary) after(revision storage.Revision) int {
	i, _ := slices.BinarySearchFunc(s.changes, revision+1, func(l latestChange, r storage.Revision) int { return cmp.Compare(l.revision, r) })
	return i
}
