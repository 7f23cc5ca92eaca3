package watchcache

import (
	"slices"

	"github.com/levelwire/levelwire/server/internal/watchcache/eventlog"
	"github.com/levelwire/levelwire/server/internal/watchcache/invariant"
	"github.com/levelwire/levelwire/server/internal/watchcache/tombstone"
	"github.com/levelwire/levelwire/storage"
)

// The invariants of the log, which builds with the tag invariants check where they could be
// broken (package invariant). Those of what a watcher is told are in told.go.
//
//   - The versions in a log, and those that its entries carry, never decrease, and a log has the
//     deletions of a version first (Apply, PrependHistory).
//   - A key changes once in a version, unless it is deleted and made anew, and a batch has all changes of its versions (Apply).
//   - No change comes at a version that was published: readers have seen all of that. A source that
//     does not know which changes share a version may bring more of the last one (ApplyNext).
//   - Each entry is in the log of every bucket whose interest it touches, once, and is the oldest
//     there when it is the oldest of the cache's.
//   - The state before an entry is what the entry before it left: Exact undoes them.
//   - Tombstones, and the deletions in the log behind them, are in the order of versions.
//   - An object that is shared is never modified.
//
// The methods below are called with the lock held.

// checkBatch checks what Apply expects of its caller.
func (c *Cache) checkBatch(changes []Change, before *cacheState) {
	published := before.revision
	if c.filled { // until then, the Progress that caches share may be ahead of this one
		published = c.followed()
	}
	last, keys := storage.Revision(0), map[string]bool{}
	for i := range changes {
		change := &changes[i]
		if change.Revision < last {
			invariant.Broken("versions in a log never decrease: of %s, the change of %q at version %d comes in a batch behind one at version %d",
				c.res.GroupResource(), change.Key, change.Revision, last)
		}
		if change.Revision > last {
			last = change.Revision
			clear(keys)
		}
		if deleted, again := keys[change.Key]; again && (!deleted || change.Object == nil) {
			invariant.Broken("a key changes once in a version: of %s, %q changes twice at version %d", c.res.GroupResource(), change.Key, change.Revision)
		}
		keys[change.Key] = change.Object == nil
		if change.Object != nil && change.Object.Key != change.Key {
			invariant.Broken("an object has the key of its change: of %s, %q is written as %q at version %d",
				c.res.GroupResource(), change.Object.Key, change.Key, change.Revision)
		}
		if change.Revision > before.revision && (change.Revision < published || change.Revision == published && !c.oneByOne.Load()) {
			invariant.Broken("a version is published behind its changes: of %s, %q changes at version %d, and %d has been published",
				c.res.GroupResource(), change.Key, change.Revision, published)
		}
	}
}

// checkEntry checks an entry that is about to be appended, to the logs of buckets, too.
func (c *Cache) checkEntry(e *eventlog.Entry, buckets []*bucket) {
	e.CheckFollows(newest(c.log), c.res.GroupResource())
	for i, b := range buckets {
		e.CheckFollows(newest(b.log), c.res.GroupResource())
		if slices.Contains(buckets[:i], b) {
			invariant.Broken("a bucket's log has an entry once: of %s, the change of %q at version %d comes twice to the watchers of %+v",
				c.res.GroupResource(), e.Key(), e.Revision, b.interest)
		}
	}
	c.index.each(func(b *bucket) {
		if touches(&b.interest, e, c.res) && !slices.Contains(buckets, b) {
			invariant.Broken("every change reaches every watcher: of %s, the change of %q at version %d (deleted: %v) is kept from the watchers of %+v",
				c.res.GroupResource(), e.Key(), e.Revision, e.Object == nil, b.interest)
		}
	})
	if e.Object != nil {
		e.Object.CheckSeal(c.res.GroupResource())
		e.Object.Seal()
	}
	e.Previous.CheckSeal(c.res.GroupResource())
}

// newest returns the last entry of a log; nil if there is none.
func newest(log *eventlog.Log) *eventlog.Entry {
	if log.Len() == 0 {
		return nil
	}
	return log.At(log.End() - 1)
}

// checkOldest checks that an entry, the oldest of the cache's log, is the oldest of a bucket's.
func (c *Cache) checkOldest(log *eventlog.Log, e *eventlog.Entry) {
	if oldest := log.At(log.Oldest()); oldest != e {
		invariant.Broken("the oldest entry of a log is the oldest in each bucket: of %s, the change of %q at version %d is evicted, and a bucket that has it has another one before it",
			c.res.GroupResource(), e.Key(), e.Revision)
	}
}

// checkEvicted checks what is left when an entry has been evicted.
func (c *Cache) checkEvicted(e *eventlog.Entry) {
	e.Object.CheckSeal(c.res.GroupResource())
	e.Previous.CheckSeal(c.res.GroupResource())
	if list := c.tombstones.After(0); len(list) > 1 {
		c.checkTombstones(list[len(list)-2:])
	}
	if next := c.log.At(c.log.Oldest()); next != nil && len(c.deletions) > 0 && c.deletions[0].Sequence < next.Sequence {
		invariant.Broken("the deletions of a log are those that it has: of %s, that of %q at version %d has been evicted", c.res.GroupResource(), c.deletions[0].Key(), c.deletions[0].Revision)
	}
}

// checkEmpty checks the books of an empty log.
func (c *Cache) checkEmpty() {
	if bytes := c.counters.historyBytes.Load(); bytes != 0 || c.withForms != 0 || len(c.deletions) != 0 {
		invariant.Broken("an empty log takes nothing: of %s, it counts %d bytes, %d with forms, and %d deletions", c.res.GroupResource(), bytes, c.withForms, len(c.deletions))
	}
}

// checkPrepended checks entries that are about to be prepended to a log that begins behind base.
func (c *Cache) checkPrepended(entries []*eventlog.Entry, base storage.Revision) {
	var last *eventlog.Entry
	for _, e := range entries {
		e.CheckFollows(last, c.res.GroupResource())
		last = e
		if e.Revision <= base {
			invariant.Broken("a log begins behind its base: of %s, the change of %q at version %d is prepended to a log from version %d on", c.res.GroupResource(), e.Key(), e.Revision, base)
		}
	}
	if first := c.log.At(c.log.Oldest()); first != nil {
		first.CheckFollows(last, c.res.GroupResource())
	}
}

// checkTombstones checks tombstones that follow each other.
func (c *Cache) checkTombstones(list []tombstone.Tombstone) {
	for i := 1; i < len(list); i++ {
		if list[i].Revision < list[i-1].Revision {
			invariant.Broken("tombstones are in the order of versions: of %s, that of %q at version %d follows that of %q at version %d",
				c.res.GroupResource(), list[i].Last.Key, list[i].Revision, list[i-1].Last.Key, list[i-1].Revision)
		}
	}
}
