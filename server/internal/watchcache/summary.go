package watchcache

import (
	"cmp"
	"slices"

	"github.com/levelwire/levelwire/storage"
)

// A summary is the history after a revision with everything left out that
// later changes have made void: one change for each object that has changed, its
// last, and the deletions that are remembered. It is made when somebody comes
// back from before the log, in time that grows with the number of changes, and
// shared by all who have missed no more, until the log has moved on from it.
type summary struct {
	generation uint64
	from       storage.Revision // nothing after this is missing
	revision   storage.Revision // of the state; what follows is in the log
	position   uint64           // there
	changes    []lastChange     // ascending by revision; of one revision, deletions first
}

// lastChange is the latest that happened to one object. Exactly one of the two
// is set.
type lastChange struct {
	revision storage.Revision
	object   *Object // as it is now
	deletion *entry
}

// state returns what selectors look at: of a deleted object what it was last.
func (l *lastChange) state() *Object {
	if l.object != nil {
		return l.object
	}
	return l.deletion.previous
}

// compare orders by revision; of one revision, deletions first, and last the one
// behind which the revision is complete.
func (l lastChange) compare(other lastChange) int {
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
	return cmp.Compare(l.deletion.through, other.deletion.through)
}

// summarize returns a summary of what is after a revision, which the log goes on
// from, or nil if the history before the log does not reach back that far. Writers
// are not held up while one is made, but all wait who need one.
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
	state  *state
	buried []grave
	dead   []*entry // later than those; they may begin before what was asked for, which cursors leave out
}

// sorted returns the changes after a revision in their order.
func (m *material) sorted(after storage.Revision) []lastChange {
	changes := make([]lastChange, 0, len(m.buried)+len(m.dead))
	for i := range m.buried {
		changes = append(changes, lastChange{revision: m.buried[i].revision, deletion: m.buried[i].entry()})
	}
	for _, e := range m.dead {
		changes = append(changes, lastChange{revision: e.revision, deletion: e})
	}
	for o, revision := range m.state.tree.Since(int64(after)) {
		changes = append(changes, lastChange{revision: storage.Revision(revision), object: o})
	}
	slices.SortFunc(changes, lastChange.compare)
	return changes
}

// recent reports whether the log goes on from the summary, and has not gone on
// so far that it is better made anew. The lock is held.
func (c *Cache) recent(s *summary) bool {
	return s.generation == c.generation.Load() && s.position >= c.log.oldest.Load() &&
		c.log.end.Load()-s.position <= uint64(c.opts.HistoryEvents/4)
}

// prepareSummary returns the summary that there is, if it is recent and begins
// early enough, and else an empty one with what is to be in it. The summary is nil
// if history does not reach back that far.
func (c *Cache) prepareSummary(after storage.Revision) (*summary, *material) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.graves.trim(&c.opts, c.residue, c.opts.Now())
	if after < c.graves.since {
		return nil, nil
	}
	if s := c.summary; s != nil && c.recent(s) && after >= s.from {
		return s, nil
	}
	current := c.state.Load()
	buried := c.graves.after(after)
	m := &material{state: current, buried: slices.Clone(buried), dead: slices.Clone(c.deaths)}
	return &summary{generation: c.generation.Load(), from: after, revision: current.revision, position: c.log.end.Load()}, m
}

// after returns the position of the first change after a revision.
func (s *summary) after(revision storage.Revision) int {
	i, _ := slices.BinarySearchFunc(s.changes, revision+1, func(l lastChange, r storage.Revision) int { return cmp.Compare(l.revision, r) })
	return i
}
