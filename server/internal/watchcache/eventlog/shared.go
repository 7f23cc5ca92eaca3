package eventlog

import (
	"slices"

	"github.com/levelwire/levelwire/storage"
)

// SharedRevisions are the revisions in which an object was written and more
// changes followed, ascending; at most the latest maxShared.
//
// Our writes change one key in a revision, but other clients of the same etcd may
// use transactions, and etcd deletes the keys of an expired lease in one revision.
// A client whose watch breaks in the middle of such a revision must get the rest
// when it resumes. A deletion that is not the last change of its revision is sent
// with the revision before. An object that was written cannot be: its
// resourceVersion is what its next update must name. So a watch that resumes at a
// shared revision gets all of that revision again.
type SharedRevisions []storage.Revision

// maxShared is how many are kept: as many transactions as other clients of etcd
// may make while a watch is broken.
const maxShared = 4096

// Add adds a revision.
func (s *SharedRevisions) Add(revision storage.Revision) {
	i, known := slices.BinarySearch(*s, revision)
	if known {
		return
	}
	*s = slices.Insert(*s, i, revision)
	if len(*s) > maxShared {
		*s = slices.Delete(*s, 0, len(*s)-maxShared)
	}
}

// ResumeAfter returns the revision after which a watch must begin so that a
// client that has seen only a part of the given revision misses nothing.
func (s SharedRevisions) ResumeAfter(revision storage.Revision) storage.Revision {
	if _, shared := slices.BinarySearch(s, revision); shared {
		return revision - 1
	}
	return revision
}
