package history

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Property is one thing that is true of every correct history.
type Property struct {
	Name     string
	Sentence string
	// Check returns a violation, with the shortest piece of history that shows
	// it, or nil.
	Check func(*History) *Violation
}

// Violation is a piece of history that a correct server cannot have.
type Violation struct {
	View    string // "" if several are needed to see it
	What    string
	Excerpt []string // what shows it, in order
}

func (v *Violation) String() string {
	var b strings.Builder
	if v.View != "" {
		fmt.Fprintf(&b, "watcher %s: ", v.View)
	}
	b.WriteString(v.What)
	for _, line := range v.Excerpt {
		b.WriteString("\n  " + line)
	}
	return b.String()
}

// Properties returns all properties.
func Properties() []Property {
	return []Property{
		{"ordered", "A watcher is shown events in the order of their versions.", Ordered},
		{"unique", "No event is shown twice, and no two events share a version.", Unique},
		{"reliable", "Every write that a watcher asked for is shown to it.", Reliable},
		{"resumable", "A watch that is opened where another ended goes on without a gap and without repeating.", Resumable},
		{"atomic", "A list and the watch from its version fit: no gap and no repetition between them.", Atomic},
		{"bookmarkable", "Everything up to a bookmark's version was shown before it, and nothing of it after.", Bookmarkable},
		{"faithful", "Every event shows the content that was written at its version.", Faithful},
		{"filtered", "What a watcher with a selector sees is the projection of the full stream.", Filtered},
	}
}

// Ordered demands that revisions never go back within one stream.
func Ordered(h *History) *Violation {
	for _, view := range h.Views {
		for _, segment := range view.Segments {
			var last Event
			for _, e := range segment.Events {
				if e.Type == Bookmark {
					continue
				}
				if e.Revision < last.Revision {
					return &Violation{view.Name, "a later event came first", lines(last, e)}
				}
				last = e
			}
		}
	}
	return nil
}

// Unique demands that a revision is shown to a watcher once, and means the
// same object to all of them.
func Unique(h *History) *Violation {
	owner := map[uint64]Event{}
	for _, c := range h.chains() {
		seen := map[uint64]Event{}
		for _, e := range c.delivered() {
			if before, ok := seen[e.Revision]; ok {
				return &Violation{c.view.Name, "one version was shown twice", lines(before, e)}
			}
			seen[e.Revision] = e
			if other, ok := owner[e.Revision]; ok && other.Key != e.Key {
				return &Violation{"", "two objects share a version", lines(other, e)}
			}
			owner[e.Revision] = e
		}
	}
	return nil
}

// Reliable demands that nothing that was written is missing.
func Reliable(h *History) *Violation {
	writes, unseen := h.resolve()
	for _, c := range h.chains() {
		for _, w := range unseen {
			if before := cmp.Or(w.Before, h.Until); c.view.Selects == nil && c.segments[0].From < before && c.end >= before {
				return &Violation{c.view.Name, fmt.Sprintf("the deletion of %s between the versions %d and %d was not shown", w.Key, w.After, before), nil}
			}
		}
		shown := revisions(c.delivered())
		for _, e := range window(Project(writes, c.view.Selects), c.segments[0].From, c.end) {
			if !shown[e.Revision] {
				return &Violation{c.view.Name, "an event is missing", around(c.delivered(), e)}
			}
		}
	}
	return nil
}

// Resumable demands that segments that resume begin with the first event
// behind the point that they resume from.
func Resumable(h *History) *Violation {
	return h.beginnings(false, "a resumed watch")
}

// Atomic demands that lists show the state at their version, and that the
// watch behind them begins with the first event behind it.
func Atomic(h *History) *Violation {
	writes, _ := h.resolve()
	for _, view := range h.Views {
		for _, segment := range view.Segments {
			if !segment.Listed {
				continue
			}
			if v := compareState(view.Name, segment, StateAt(writes, segment.From, view.Selects)); v != nil {
				return v
			}
		}
	}
	return h.beginnings(true, "the watch behind a list")
}

func compareState(view string, segment Segment, want map[string]Item) *Violation {
	at := fmt.Sprintf("the list at version %d", segment.From)
	listed := map[string]bool{}
	for _, item := range segment.Items {
		truth, ok := want[item.Key]
		if !ok || truth.Revision != item.Revision || !truth.State.equal(item.State) {
			return &Violation{view, at + " shows another state", []string{
				fmt.Sprintf("listed  @%d %s %s", item.Revision, item.Key, item.State),
				fmt.Sprintf("written @%d %s %s", truth.Revision, item.Key, truth.State),
			}}
		}
		listed[item.Key] = true
	}
	for key, truth := range want {
		if !listed[key] {
			return &Violation{view, at + " lacks an object", []string{fmt.Sprintf("written @%d %s %s", truth.Revision, key, truth.State)}}
		}
	}
	return nil
}

// beginnings checks how segments of one kind begin.
func (h *History) beginnings(listed bool, what string) *Violation {
	writes, _ := h.resolve()
	for _, view := range h.Views {
		expected := Project(writes, view.Selects)
		for i, segment := range view.Segments {
			if segment.Listed != listed || i == 0 && !listed {
				continue
			}
			start := fmt.Sprintf("opened after @%d", segment.From)
			for _, e := range segment.Events {
				if e.Revision < segment.From || e.Type != Bookmark && e.Revision == segment.From {
					return &Violation{view.Name, what + " shows what was before it", append([]string{start}, lines(e)...)}
				}
			}
			if len(segment.Events) == 0 {
				continue
			}
			first := segment.Events[0]
			for _, e := range window(expected, segment.From, first.Revision) {
				if e.Revision < first.Revision {
					return &Violation{view.Name, what + " lacks its beginning", append([]string{start, "missing " + e.String()}, lines(first)...)}
				}
			}
		}
	}
	return nil
}

// Bookmarkable demands that a bookmark separates what was shown from what
// will be.
func Bookmarkable(h *History) *Violation {
	writes, _ := h.resolve()
	for _, c := range h.chains() {
		expected := Project(writes, c.view.Selects)
		shown := map[uint64]bool{}
		for _, segment := range c.segments {
			var last, mark Event
			for _, e := range segment.Events {
				if e.Revision < mark.Revision || e.Type != Bookmark && e.Revision == mark.Revision {
					return &Violation{c.view.Name, "what a bookmark had covered came behind it", lines(mark, e)}
				}
				if e.Type != Bookmark {
					shown[e.Revision], last = true, e
					continue
				}
				if e.Revision < last.Revision {
					return &Violation{c.view.Name, "a bookmark is older than the event before it", lines(last, e)}
				}
				for _, due := range window(expected, c.segments[0].From, e.Revision) {
					if !shown[due.Revision] {
						return &Violation{c.view.Name, "a bookmark came before what it covers", []string{"missing " + due.String(), e.String()}}
					}
				}
				mark = e
			}
		}
	}
	return nil
}

// Faithful demands that events of watchers without a selector are what was
// written.
func Faithful(h *History) *Violation {
	return h.compare(func(v *View) bool { return v.Selects == nil })
}

// Filtered demands that events of watchers with a selector are the projection,
// and that nothing of the projection is missing.
func Filtered(h *History) *Violation {
	if v := h.compare(func(v *View) bool { return v.Selects != nil }); v != nil {
		return v
	}
	selective := &History{Writes: h.Writes, Until: h.Until}
	for _, view := range h.Views {
		if view.Selects != nil {
			selective.Views = append(selective.Views, view)
		}
	}
	writes, _ := h.resolve()
	selective.Writes = writes
	return Reliable(selective)
}

func (h *History) compare(concerns func(*View) bool) *Violation {
	writes, _ := h.resolve()
	for _, c := range h.chains() {
		if !concerns(c.view) {
			continue
		}
		expected := map[uint64]Event{}
		for _, e := range Project(writes, c.view.Selects) {
			expected[e.Revision] = e
		}
		for _, e := range c.delivered() {
			want, ok := expected[e.Revision]
			if !ok {
				return &Violation{c.view.Name, "an event shows what was not written or not asked for", append(lines(e), wroteAt(writes, e)...)}
			}
			if want.Type != e.Type || want.Key != e.Key || !want.State.equal(e.State) {
				return &Violation{c.view.Name, "an event is not what was written", []string{"shown    " + e.String(), "expected " + want.String()}}
			}
		}
	}
	return nil
}

// wroteAt returns what was really written at an event's revision, or to its key
// before.
func wroteAt(writes []Write, e Event) []string {
	var before []string
	for _, w := range writes {
		if w.Revision == e.Revision {
			return []string{"written " + w.String()}
		}
		if w.Key == e.Key && w.Revision < e.Revision {
			before = []string{"written " + w.String()}
		}
	}
	return before
}

// window returns the events after one revision and up to another.
func window(events []Event, after, upTo uint64) []Event {
	return slices.DeleteFunc(slices.Clone(events), func(e Event) bool { return e.Revision <= after || e.Revision > upTo })
}

func revisions(events []Event) map[uint64]bool {
	set := map[uint64]bool{}
	for _, e := range events {
		set[e.Revision] = true
	}
	return set
}

// around shows a missing event between the neighbours that were delivered.
func around(delivered []Event, missing Event) []string {
	var before, after string
	for _, e := range delivered {
		switch {
		case e.Revision < missing.Revision:
			before = e.String()
		case after == "":
			after = e.String()
		}
	}
	all := []string{before, "missing " + missing.String(), after}
	return slices.DeleteFunc(all, func(s string) bool { return s == "" })
}

func lines(events ...Event) []string {
	var all []string
	for _, e := range events {
		all = append(all, e.String())
	}
	return all
}
