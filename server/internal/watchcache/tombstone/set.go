package tombstone

import (
	"cmp"
	"slices"
	"time"

	"github.com/levelwire/levelwire/server/internal/watchcache/eventlog"
	"github.com/levelwire/levelwire/server/internal/watchcache/state"
	"github.com/levelwire/levelwire/storage"
)

// Limits bound how many tombstones are kept, in a Set or in the store.
type Limits struct {
	Count int
	Bytes int64
	Age   time.Duration // since the tombstone was added, or its batch saved
}

// Tombstone is a deletion that the log does not hold any more.
type Tombstone struct {
	Revision, Through storage.Revision // as those of its eventlog.Entry
	Last              *state.Object    // the last state, or its tombstone metadata
	Added             time.Time
}

// overhead is how many bytes a tombstone takes beside the object's JSON, with
// the object's own bookkeeping, an estimate.
const overhead = 512

func (t *Tombstone) size() int64 { return overhead + int64(t.Last.Size()) }

// Entry makes the entry of the deletion anew. Forms that readers make of it are
// not counted.
func (t *Tombstone) Entry() *eventlog.Entry {
	return eventlog.Evicted(t.Revision, t.Through, t.Last)
}

// Set holds the tombstones of one cache in the order of their revisions. It is
// not safe for concurrent use: the cache's lock guards it. The zero Set is empty
// and complete.
type Set struct {
	list    []Tombstone
	bytes   int64
	reduced int // how many in front have been reduced to tombstone metadata
	since   storage.Revision
}

// Since returns the revision after which every deletion is in the set or in the
// log.
func (s *Set) Since() storage.Revision { return s.since }

// Len returns how many tombstones there are.
func (s *Set) Len() int { return len(s.list) }

// Bytes returns how much memory they take, an estimate.
func (s *Set) Bytes() int64 { return s.bytes }

// Add adds a deletion that the log has evicted.
func (s *Set) Add(e *eventlog.Entry, now time.Time) {
	t := Tombstone{e.Revision, e.Through, e.Previous, now}
	s.list = append(s.list, t)
	s.bytes += t.size()
}

// Trim reduces the oldest tombstones to their metadata, and then drops the
// oldest, until the limits are kept.
func (s *Set) Trim(limits Limits, reduce func(*state.Object) *state.Object, now time.Time) {
	for ; s.bytes > limits.Bytes && s.reduced < len(s.list); s.reduced++ {
		oldest := &s.list[s.reduced]
		s.bytes -= oldest.size()
		oldest.Last = reduce(oldest.Last)
		s.bytes += oldest.size()
	}
	drop := 0
	for i := range s.list {
		oldest := &s.list[i]
		if len(s.list)-drop <= limits.Count && s.bytes <= limits.Bytes && now.Sub(oldest.Added) <= limits.Age {
			break
		}
		s.bytes -= oldest.size()
		s.since = max(s.since, oldest.Revision)
		drop++
	}
	clear(s.list[:drop])
	s.list, s.reduced = s.list[drop:], max(s.reduced-drop, 0)
}

// Reset drops all tombstones: no deletion up to revision is known any more.
func (s *Set) Reset(revision storage.Revision) { *s = Set{since: revision} }

// Prepend puts earlier tombstones, of which none is missing after since, in
// front.
func (s *Set) Prepend(list []Tombstone, since storage.Revision) {
	for i := range list {
		s.bytes += list[i].size()
	}
	s.list = append(list[:len(list):len(list)], s.list...)
	s.reduced, s.since = 0, since
}

// After returns the tombstones after a revision. The slice is valid until the
// set changes.
func (s *Set) After(revision storage.Revision) []Tombstone {
	first, _ := slices.BinarySearchFunc(s.list, revision+1, func(t Tombstone, r storage.Revision) int { return cmp.Compare(t.Revision, r) })
	return s.list[first:]
}
