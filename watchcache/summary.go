package watchcache

import (
	"cmp"
	"slices"

	"github.com/levelwire/levelwire/storage"
)

// A summary is the history before a revision with everything left out that
// later changes have made void: one change for each object that there is, its
// last, and the deletions that are remembered. It is made when somebody first
// comes back from before the log, and shared by all who do until the log has
// moved on from it: a tree in the order of revisions would cost every write as
// much as the state's own, for a moment that most servers never see.
type summary struct {
	generation uint64
	since      storage.Revision // no deletion after this is missing
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

// summarize returns a summary that the log goes on from, or nil if the history
// before it does not reach back to after. Making one takes as long as sorting the
// objects; writers are not held up.
func (c *Cache) summarize(after storage.Revision) *summary {
	c.summarizing.Lock()
	defer c.summarizing.Unlock()
	s, state, dead := c.prepareSummary(after)
	if state == nil {
		return s
	}
	s.changes = make([]lastChange, 0, state.tree.Len()+len(dead))
	for _, e := range dead {
		s.changes = append(s.changes, lastChange{revision: e.revision, deletion: e})
	}
	for _, o := range state.tree.Range("", "") {
		s.changes = append(s.changes, lastChange{revision: o.Revision, object: o})
	}
	slices.SortFunc(s.changes, lastChange.compare)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.recent(s) {
		c.summary = s
	}
	return s
}

// recent reports whether the log goes on from the summary, and has not gone on
// so far that it is better made anew. The lock is held.
func (c *Cache) recent(s *summary) bool {
	return s.generation == c.generation.Load() && s.position >= c.log.oldest.Load() &&
		c.log.end.Load()-s.position <= uint64(c.opts.HistoryEvents/4)
}

// prepareSummary returns the summary that there is, if it is recent, and else an
// empty one with what is to be in it. The summary is nil if history does not
// reach back that far.
func (c *Cache) prepareSummary(after storage.Revision) (*summary, *state, []*entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.graves.trim(&c.opts, c.residue, c.opts.Now())
	if after < c.graves.since {
		return nil, nil, nil
	}
	if s := c.summary; s != nil && c.recent(s) && after >= s.since {
		return s, nil, nil
	}
	current := c.state.Load()
	dead := make([]*entry, 0, len(c.graves.list))
	for i := range c.graves.list {
		dead = append(dead, c.graves.list[i].entry())
	}
	for p := c.log.oldest.Load(); p < c.log.end.Load(); p++ {
		if e := c.log.at(p); e.object == nil {
			dead = append(dead, e)
		}
	}
	return &summary{
		generation: c.generation.Load(), since: c.graves.since, revision: current.revision, position: c.log.end.Load(),
	}, current, dead
}

// after returns the position of the first change after a revision.
func (s *summary) after(revision storage.Revision) int {
	i, _ := slices.BinarySearchFunc(s.changes, revision+1, func(l lastChange, r storage.Revision) int { return cmp.Compare(l.revision, r) })
	return i
}
