package eventlog

import (
	"sync/atomic"

	"github.com/levelwire/levelwire/internal/btree"
	"github.com/levelwire/levelwire/server/internal/watchcache/state"
	"github.com/levelwire/levelwire/storage"
)

// Entry is one change of one key, before any selector is applied.
type Entry struct {
	Revision storage.Revision
	// Through is the revision from which a watch can resume without missing
	// anything after it has read this entry and all before it: Revision, or the
	// revision before if more entries of the same revision follow. Our writes
	// change one key in a revision, but etcd deletes all keys of an expired lease
	// in one, and other clients of the same etcd may use transactions.
	Through  storage.Revision
	Sequence uint64        // position in the cache's log
	Object   *state.Object // new state; nil if deleted
	Previous *state.Object // state before; nil if created

	lastState atomic.Pointer[state.Object]
	marks     atomic.Uint32 // markEvicted, markLate, markFollower
	// Arrived is when the cache applied the change, in the cache's own ticks; 0 if that is
	// not known, because the entry was read from the store's history. It lies in what
	// marks leave of a word, so it takes no memory.
	Arrived uint32
	logs    []*Log  // of the buckets that hold this entry too
	few     [2]*Log // room for most of them
}

const (
	markEvicted = 1 << iota
	markLate
	markFollower
)

// Evicted returns an entry for a deletion that the log does not hold any more.
// Forms made of it are not counted.
func Evicted(revision, through storage.Revision, previous *state.Object) *Entry {
	e := &Entry{Revision: revision, Through: through, Previous: previous}
	e.marks.Or(markEvicted)
	return e
}

// AlsoIn notes a bucket's log that will hold the entry. It must be called before
// the entry is appended to any log.
func (e *Entry) AlsoIn(l *Log) {
	if e.logs == nil {
		e.logs = e.few[:0]
	}
	e.logs = append(e.logs, l)
}

// Logs returns the buckets' logs that hold the entry. They belong to the writer.
func (e *Entry) Logs() []*Log { return e.logs }

// Carried is the revision that a Deleted event of the entry carries. Of a deletion it is
// Through: a client that resumes from there gets the rest of the changes of Revision, and may
// get deletions of it again, of objects that it has removed already. An object that leaves a
// selection by a change carries that change's revision, as every other event of a change does:
// the log replays the whole of a revision that several changes share to a watch that begins
// there (SharedRevisions). So no event of a watch carries less than the one before, since a
// log has the deletions of a revision first.
func (e *Entry) Carried() storage.Revision {
	if e.Object != nil {
		return e.Revision
	}
	return e.Through
}

// MarkLate notes that the cache had reached the entry's revision before the entry came, so that
// what is at that revision may lack it. It must be called before the entry is appended to any log.
func (e *Entry) MarkLate() { e.marks.Or(markLate) }

// IsLate reports whether MarkLate was called.
func (e *Entry) IsLate() bool { return e.marks.Load()&markLate != 0 }

// MarkFollower notes that the entry before this one in the cache's log has the same revision. It must
// be called before the entry is appended to any log.
func (e *Entry) MarkFollower() { e.marks.Or(markFollower) }

// IsFollower reports whether MarkFollower was called. It holds when the entry before has been evicted
// as well.
func (e *Entry) IsFollower() bool { return e.marks.Load()&markFollower != 0 }

// LastState returns the previous content with the revision Carried: what a
// Deleted event shows. The state is made on first demand, shared from then on,
// and its forms are counted in counter. The entry must have a Previous state.
func (e *Entry) LastState(counter *state.ByteCounter) *state.Object {
	if o := e.lastState.Load(); o != nil {
		return o
	}
	o := e.Previous.AtRevision(e.Carried())
	o.CountForms(counter)
	if !e.lastState.CompareAndSwap(nil, o) {
		return e.lastState.Load()
	}
	if e.marks.Load()&markEvicted != 0 {
		o.ReleaseForms() // the entry was evicted after the reader had found it
	}
	return o
}

// Size is how many bytes the entry adds to the memory of the log, an estimate:
// the state that only the log keeps in memory, and its own bookkeeping.
func (e *Entry) Size() int64 {
	const overhead = 256
	size := int64(overhead)
	if e.Object != nil {
		size += int64(e.Object.Size())
	}
	return size
}

// Release drops the forms that were made for the entry, or stops counting them.
// The writer calls it when the entry has been evicted.
func (e *Entry) Release() {
	e.marks.Or(markEvicted) // before lastState is read: LastState does it the other way round
	if e.Object != nil {
		e.Object.DropForms()
	}
	if e.Previous != nil {
		e.Previous.ReleaseForms()
	}
	if o := e.lastState.Load(); o != nil {
		o.ReleaseForms()
	}
}

// DropForms drops the forms that were made for the entry; the next caller of Form makes
// its form again. It leaves those of the new state if that is live. Only the writer calls
// it.
func (e *Entry) DropForms(live bool) {
	if e.Object != nil && !live {
		e.Object.DropForms()
	}
	if e.Previous != nil {
		e.Previous.DropForms()
	}
	if o := e.lastState.Swap(nil); o != nil {
		o.ReleaseForms()
	}
}

// Undo reverts the entry's change in a tree.
func (e *Entry) Undo(tree *btree.Batch[*state.Object]) {
	if e.Previous == nil {
		tree.Delete(e.Object.Key)
	} else {
		tree.Set(e.Previous.Key, e.Previous)
	}
}
