package watchcache

import (
	"github.com/levelwire/levelwire/server/internal/watchcache/eventlog"
	"github.com/levelwire/levelwire/server/internal/watchcache/state"
	"github.com/levelwire/levelwire/storage"
)

// EventType is what a change did to an object from the view of one watcher.
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

// Event is one change as one watcher gets it, after its selection.
type Event struct {
	Type EventType
	// Object is the new state; for Deleted the last state that was selected, whose
	// JSON and Revision carry the event's revision. It is shared with all watchers.
	Object *Object
	// Previous is the state that a watcher has of an object that is Modified or Deleted; nil if
	// that is not known to be what the cache has, as after coalesced history.
	Previous *Object
	// Revision of the change, as the object carries it. From event to event it
	// never decreases, and a watch that starts after it misses nothing; see
	// eventlog.Entry.Carried. Initial events come in the order of keys, each with
	// the revision of its object.
	Revision storage.Revision
}

// Change is one change of one key, as a source hands it to a cache.
type Change struct {
	Key      string
	Object   *Object // the new state; nil if the key was deleted
	Revision storage.Revision
}

// transition returns the type of the event that a watcher with a selection gets of
// an entry; 0 if it gets none:
//
//	old state selected   new state selected   event
//	no                   yes                  Added, the new state
//	yes                  yes                  Modified, the new state
//	yes                  no, or deleted       Deleted, the previous content with the event's revision
//	no                   no                   nothing
func transition(s *Selection, e *eventlog.Entry) EventType {
	was := e.Previous != nil && s.Matches(e.Previous)
	is := e.Object != nil && s.Matches(e.Object)
	switch {
	case is && was:
		return Modified
	case is:
		return Added
	case was:
		return Deleted
	}
	return 0
}

// project makes the event that a watcher with a selection gets of an entry, if
// it gets any.
func project(s *Selection, e *eventlog.Entry, counter *state.ByteCounter) (Event, bool) {
	t := transition(s, e)
	if t == 0 {
		return Event{}, false
	}
	event := Event{Type: t, Object: e.Object, Revision: e.Revision}
	if t != Added && !e.Previous.IsTombstoneMetadata() {
		event.Previous = e.Previous
	}
	if t == Deleted {
		event.Object, event.Revision = e.LastState(counter), e.Carried()
	}
	return event, true
}
