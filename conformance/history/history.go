package history

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// The types of events, as they are on the wire.
const (
	Added    = "ADDED"
	Modified = "MODIFIED"
	Deleted  = "DELETED"
	Bookmark = "BOOKMARK"
)

// State is what an object consists of, as far as the checks look.
type State struct {
	Labels  map[string]string
	Content string
}

func (s State) equal(other State) bool {
	return s.Content == other.Content && maps.Equal(s.Labels, other.Labels)
}

func (s State) String() string { return fmt.Sprintf("%q%v", s.Content, s.Labels) }

// Write is a write that the server acknowledged. All writes to one key come
// from one writer, one after the other.
type Write struct {
	Key     string
	Deletes bool
	State   State // what was written; of a deletion, nothing
	// Revision is what the server said. Kubernetes does not say it for most
	// deletions; then it is 0, and the deletion's is greater than After, the
	// key's revision before, and less than Before, that of its writer's next
	// write (0 if there is none).
	Revision, After, Before uint64
}

func (w Write) String() string {
	what := "write " + w.State.String()
	if w.Deletes {
		what = "delete"
	}
	return fmt.Sprintf("@%d %s %s", w.Revision, what, w.Key)
}

// Event is what a watcher was shown.
type Event struct {
	Type     string
	Key      string // "" for bookmarks
	Revision uint64
	State    State
}

func (e Event) String() string {
	if e.Type == Bookmark {
		return fmt.Sprintf("@%d BOOKMARK", e.Revision)
	}
	return fmt.Sprintf("@%d %s %s %s", e.Revision, e.Type, e.Key, e.State)
}

// Item is an object in a list.
type Item struct {
	Key      string
	Revision uint64
	State    State
}

// Segment is one watch stream, from its opening to its end.
type Segment struct {
	// From is the revision after which the stream begins.
	From uint64
	// Listed says that the state at From was read first, by a list or by a
	// streaming list: Items. Otherwise the segment resumes the one before it;
	// the first one of a view may also begin somewhere without a list.
	Listed bool
	Items  []Item
	Events []Event
}

// View is what one watcher saw.
type View struct {
	Name string
	// Selects says whether the watcher asked for objects like this one. Nil
	// is everything.
	Selects  func(key string, s State) bool
	Segments []Segment
	// Unfinished says that the view had too little time: what comes behind its last
	// event is missing for that reason.
	Unfinished bool
}

// History is everything that was written and seen.
type History struct {
	Writes []Write
	Views  []View
	// Until is the revision that every view was waited for to show, or had
	// long enough to, unless it is unfinished.
	Until uint64
}

// chain is a run of segments without a gap: each one but the first resumes.
type chain struct {
	view     *View
	segments []Segment
	end      uint64 // everything up to here should have been shown
}

func (h *History) chains() []chain {
	var all []chain
	for i := range h.Views {
		view := &h.Views[i]
		first := len(all)
		for j, segment := range view.Segments {
			if j == 0 || segment.Listed {
				all = append(all, chain{view: view})
			}
			last := &all[len(all)-1]
			last.segments = append(last.segments, segment)
			last.end = max(last.end, segment.From)
			for _, e := range segment.Events {
				last.end = max(last.end, e.Revision)
			}
		}
		if len(all) > first && !view.Unfinished {
			last := &all[len(all)-1]
			last.end = max(last.end, h.Until)
		}
	}
	return all
}

// delivered returns the chain's events without bookmarks.
func (c chain) delivered() []Event {
	var all []Event
	for _, segment := range c.segments {
		for _, e := range segment.Events {
			if e.Type != Bookmark {
				all = append(all, e)
			}
		}
	}
	return all
}

// resolve returns the writes in the order of their revisions. Deletions whose
// revision the server did not say get the one that most watchers were shown, or
// else that of the first list without the object that would have it. Those that no watcher has
// seen are returned as unseen.
func (h *History) resolve() (writes, unseen []Write) {
	next := map[string]uint64{} // of the key's write after this one
	for _, w := range slices.Backward(h.Writes) {
		if w.Revision == 0 && w.Deletes {
			w.Revision = h.shownDeletion(w, next[w.Key])
			if w.Revision == 0 {
				w.Revision = h.listedWithout(w, next[w.Key])
			}
			if w.Revision == 0 {
				unseen = append(unseen, w)
				continue
			}
		}
		next[w.Key] = w.Revision
		writes = append(writes, w)
	}
	slices.SortStableFunc(writes, func(a, b Write) int { return cmp.Compare(a.Revision, b.Revision) })
	slices.Reverse(unseen)
	return writes, unseen
}

// listedWithout returns the first revision after w.After and before limit (0:
// none) at which a list that would have w's key lacks it, 0 if none does.
func (h *History) listedWithout(w Write, limit uint64) (first uint64) {
	last := h.stateBefore(w)
	for _, view := range h.Views {
		for _, segment := range view.Segments {
			at := segment.From
			if !matches(view.Selects, w.Key, last) || !segment.Listed || at <= w.After || limit != 0 && at >= limit || first != 0 && at >= first {
				continue
			}
			if !slices.ContainsFunc(segment.Items, func(item Item) bool { return item.Key == w.Key }) {
				first = at
			}
		}
	}
	return first
}

// stateBefore returns what a deletion has deleted.
func (h *History) stateBefore(w Write) State {
	i := slices.IndexFunc(h.Writes, func(before Write) bool { return before.Key == w.Key && before.Revision == w.After })
	if i < 0 {
		return State{}
	}
	return h.Writes[i].State
}

// shownDeletion returns the revision at which most views show a deletion of
// w's key after w.After and before limit (0: none), 0 if none does.
func (h *History) shownDeletion(w Write, limit uint64) (best uint64) {
	votes := map[uint64]int{}
	for _, view := range h.Views {
		for _, segment := range view.Segments {
			for _, e := range segment.Events {
				if e.Type == Deleted && e.Key == w.Key && e.Revision > w.After && (limit == 0 || e.Revision < limit) {
					votes[e.Revision]++
				}
			}
		}
	}
	for revision, n := range votes {
		if n > votes[best] || n == votes[best] && revision < best {
			best = revision
		}
	}
	return best
}
