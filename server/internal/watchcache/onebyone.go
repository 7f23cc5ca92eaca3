package watchcache

import (
	"github.com/levelwire/levelwire/server/internal/watchcache/eventlog"
	"github.com/levelwire/levelwire/storage"
)

// A source that brings changes one by one (ApplyNext) does not say which of them share a revision.
// A client that names a revision may have a part of it then: what came before it read, or before
// its watch broke. The log shows at which revisions that may be so.

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
		case isPart(e):
			return true
		}
	}
	return false
}

// isPart reports whether a client may have an entry's revision without the entry. It may if the entry
// came late; and a deletion may be of the revision after the one that it carries (Entry.Carried), so
// that a client has got to that revision elsewhere.
func isPart(e *eventlog.Entry) bool { return e.IsLate() || e.Object == nil }

// noteEvictedPart notes whether a client at the revision at which the log begins from now on may have
// a part of it. The lock is held.
func (c *Cache) noteEvictedPart(e *eventlog.Entry) {
	if e.Revision != storage.Revision(c.baseRevision.Load()) {
		c.evictedPart = false
	}
	c.evictedPart = c.evictedPart || c.oneByOne.Load() && isPart(e)
}
