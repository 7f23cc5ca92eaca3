package watchcache

import (
	"sync/atomic"

	"github.com/levelwire/levelwire/storage"
)

// EventType says what happened to an object, as the watcher sees it.
type EventType uint8

// Added, Modified and Deleted are the types of events.
const (
	Added EventType = iota + 1
	Modified
	Deleted
)

// String returns the type as it is on the wire.
func (t EventType) String() string {
	switch t {
	case Added:
		return "ADDED"
	case Modified:
		return "MODIFIED"
	case Deleted:
		return "DELETED"
	}
	return "UNKNOWN"
}

// Event is one change as one watcher sees it, after its selectors.
type Event struct {
	Type EventType
	// Object is the new state; for Deleted the last state that the watcher
	// could see, whose JSON and Revision carry the event's revision. It is
	// shared with all watchers.
	Object *Object
	// Revision of the change, as the object carries it. It does not descend, and
	// a watch that starts after it misses nothing; see entry.through. For initial
	// events it is that of the object, in the order of keys.
	Revision storage.Revision
}

// Change is one change of one key, as a source reports it to a cache.
type Change struct {
	Key      string
	Object   *Object // the new state; nil if the key was deleted
	Revision storage.Revision
}

// entry is one event of the history, before any selector.
type entry struct {
	revision storage.Revision
	// through is up to where somebody has seen everything who has read this
	// entry and those before it: revision, or, if more entries of the same
	// revision follow, the one before it. A store changes one key in a revision,
	// but etcd deletes all keys of an expired lease in one, and others who write
	// to the same etcd may use transactions.
	through  storage.Revision
	sequence uint64  // position in the cache's log
	object   *Object // new state; nil if deleted
	previous *Object // state before; nil if created
	departed atomic.Pointer[Object]
	evicted  atomic.Bool
	buckets  []*bucket  // whose logs hold this entry too
	few      [2]*bucket // room for most of them
}

// last returns the previous content with the revision that the entry leads
// through: what a watcher is shown from whose view the object is gone. A client
// that resumes from it gets the rest of the revision, and what it had of it once
// more: it has forgotten that object already. It is made on first demand and
// shared from then on. The entry must have a previous state.
func (e *entry) last(a *account) *Object {
	if o := e.departed.Load(); o != nil {
		return o
	}
	o := e.previous.at(e.through)
	o.account.Store(a)
	if !e.departed.CompareAndSwap(nil, o) {
		return e.departed.Load()
	}
	if e.evicted.Load() {
		o.release() // a reader that found the entry just before came too late for it
	}
	return o
}

// size is what the entry adds to the memory of the history: the state that
// only the history keeps alive, and its own bookkeeping.
func (e *entry) size() int64 {
	const overhead = 256
	size := int64(overhead)
	if e.object != nil {
		size += int64(len(e.object.JSON))
	}
	return size
}

// release drops or takes out of the account the forms that go with the entry.
func (e *entry) release() {
	e.evicted.Store(true) // before departed is looked at: last does it the other way round
	if e.object != nil {
		e.object.dropForms()
	}
	if e.previous != nil {
		e.previous.release()
	}
	if o := e.departed.Load(); o != nil {
		o.release()
	}
}
