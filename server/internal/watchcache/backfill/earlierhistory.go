package backfill

import (
	"slices"

	"github.com/levelwire/levelwire/server/internal/watchcache/eventlog"
	"github.com/levelwire/levelwire/server/internal/watchcache/tombstone"
	"github.com/levelwire/levelwire/storage"
)

// EarlierHistory is what happened to a resource before its cache was filled.
type EarlierHistory struct {
	Generation uint64 // of the cache's log to which it is earlier
	// Entries are the newest changes, those in (From, Through], in order; Through
	// is where the cache's log begins.
	From, Through storage.Revision
	Entries       []*eventlog.Entry
	// Tombstones are the deletions in (Since, From].
	Since      storage.Revision
	Tombstones []tombstone.Tombstone
	Shared     eventlog.SharedRevisions // among the changes that are in neither
}

// WithStored adds the resource's tombstones in the store, which precede what a
// replay of the store's history after from returned. since is the revision after
// which they are complete.
func (h EarlierHistory) WithStored(stored []tombstone.Tombstone, since, from storage.Revision) EarlierHistory {
	if from > h.Through {
		// The store has been compacted since the fill. Deletions after the fill are
		// in the log.
		h.From, h.Since, h.Tombstones = h.Through, h.Through, nil
		stored = slices.DeleteFunc(stored, func(t tombstone.Tombstone) bool { return t.Revision > h.Through })
	} else if h.Since > from {
		return h // deletions between the two are missing
	}
	h.Since, h.Tombstones = min(since, h.Since), append(stored, h.Tombstones...)
	return h
}
