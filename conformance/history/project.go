package history

// Project returns the events that a watcher from the very beginning sees of
// writes, which are in the order of their revisions: an object that begins to
// match is Added; one that matched and still does, Modified; one that no
// longer does, or that is deleted, Deleted with its previous content. Each
// event has the revision of its write.
func Project(writes []Write, selects func(key string, s State) bool) []Event {
	type known struct {
		state   State
		present bool
	}
	before := map[string]known{}
	var events []Event
	for _, w := range writes {
		old := before[w.Key]
		matched := old.present && matches(selects, w.Key, old.state)
		matching := !w.Deletes && matches(selects, w.Key, w.State)
		e := Event{Key: w.Key, Revision: w.Revision, State: w.State}
		switch {
		case matched && matching:
			e.Type = Modified
		case matching:
			e.Type = Added
		case matched:
			e.Type, e.State = Deleted, old.state
		}
		if e.Type != "" {
			events = append(events, e)
		}
		before[w.Key] = known{w.State, !w.Deletes}
	}
	return events
}

func matches(selects func(string, State) bool, key string, s State) bool {
	return selects == nil || selects(key, s)
}

// StateAt returns the matching objects after the last of writes at or before
// a revision.
func StateAt(writes []Write, at uint64, selects func(key string, s State) bool) map[string]Item {
	state := map[string]Item{}
	for _, w := range writes {
		switch {
		case w.Revision > at:
			return state
		case w.Deletes || !matches(selects, w.Key, w.State):
			delete(state, w.Key)
		default:
			state[w.Key] = Item{Key: w.Key, Revision: w.Revision, State: w.State}
		}
	}
	return state
}
