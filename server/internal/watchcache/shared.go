package watchcache

import (
	"slices"

	"github.com/levelwire/levelwire/storage"
)

// A store writes one key in a revision, but others who write to the same etcd
// may use transactions, and etcd itself deletes the keys of an expired lease in
// one. A client that is cut off in the middle of such a revision has to be told
// the rest when it comes back. A deletion that is not the last of its revision is
// shown with the version before. An object that was written cannot be: its
// version is what the next write of it must name. So whoever comes back with a
// revision that several objects have is told all of it once more.

// sharedRevisions are revisions in which an object was written and more happened
// behind it, ascending: the latest ones, should there be many. Of the time before
// the cache was filled, those that the store's history still has.
type sharedRevisions []storage.Revision

// mostShared is how many are remembered: as many transactions as others have
// made while a client was away.
const mostShared = 4096

// add enters a revision.
func (s *sharedRevisions) add(revision storage.Revision) {
	i, known := slices.BinarySearch(*s, revision)
	if known {
		return
	}
	*s = slices.Insert(*s, i, revision)
	if len(*s) > mostShared {
		*s = slices.Delete(*s, 0, len(*s)-mostShared)
	}
}

// after returns the revision that a watch has to begin after, so that one who
// may have seen only part of what has the given revision misses nothing.
func (s sharedRevisions) after(revision storage.Revision) storage.Revision {
	if _, shared := slices.BinarySearch(s, revision); shared {
		return revision - 1
	}
	return revision
}
