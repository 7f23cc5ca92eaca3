package watchcache

import (
	"github.com/levelwire/levelwire/server/internal/watchcache/eventlog"
	"github.com/levelwire/levelwire/storage"
)

// A source that brings changes one by one (ApplyNext) does not say which of them share a revision.
// A client that names a revision may have a part of it then: what came before it read, or before
// its watch broke. The log shows at which revisions that may be so: where an entry came late.
//
// One case is left: a server sends a deletion that others of its revision follow at the revision
// before (eventlog.Entry.Carried). A client that got to that revision elsewhere, and resumes here
// behind the deletion, does not get it. To send each deletion again to a client that names its
// revision would break the promise of all others that nothing is shown twice.

// resumeAfter returns the revision after which a watch must begin so that a client that may have seen
// only a part of the given revision misses nothing. The lock is held.
func (c *Cache) resumeAfter(revision storage.Revision) storage.Revision {
	if c.oneByOne.Load() && c.mayBePart(revision) {
		return revision - 1
	}
	return c.shared.ResumeAfter(revision)
}

// mayBePart reports whether a client that has named a revision, at which the log begins or that is
// later, may have a part of it.
func (c *Cache) mayBePart(revision storage.Revision) bool {
	if c.evictedPart && revision == storage.Revision(c.baseRevision.Load()) {
		return true
	}
	for p := c.log.Search(func(e *eventlog.Entry) bool { return e.Revision >= revision }); p < c.log.End(); p++ {
		switch e := c.log.At(p); {
		case e.Revision != revision:
			return false
		case e.IsLate():
			return true
		}
	}
	return false
}

// noteEvictedPart notes whether a client at the revision at which the log begins from now on may have
// a part of it. The lock is held.
func (c *Cache) noteEvictedPart(e *eventlog.Entry) {
	if e.Revision != storage.Revision(c.baseRevision.Load()) {
		c.evictedPart = false
	}
	c.evictedPart = c.evictedPart || e.IsLate()
}
