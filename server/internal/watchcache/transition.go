package watchcache

// transition returns what a watcher with the selection sees of an event; 0 if
// it sees nothing:
//
//	old state selected   new state selected   seen
//	no                   yes                  Added, the new state
//	yes                  yes                  Modified, the new state
//	yes                  no, or deleted       Deleted, the previous content with the event's revision
//	no                   no                   nothing
func (s *Selection) transition(e *entry) EventType {
	was := e.previous != nil && s.Matches(e.previous)
	is := e.object != nil && s.Matches(e.object)
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

// project makes the event that the watcher sees, if it sees any.
func (s *Selection) project(e *entry, a *account) (Event, bool) {
	t := s.transition(e)
	event := Event{Type: t, Object: e.object, Revision: e.revision}
	if t == Deleted {
		event.Object, event.Revision = e.last(a), e.through
	}
	return event, t != 0
}
