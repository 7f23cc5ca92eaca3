package history

import (
	"slices"
	"strings"
	"testing"
)

func red(content string) State  { return State{map[string]string{"color": "red"}, content} }
func blue(content string) State { return State{map[string]string{"color": "blue"}, content} }

func isRed(_ string, s State) bool { return s.Labels["color"] == "red" }

// good is a correct history with every kind of view in it. Each call makes it
// anew, for a test to spoil.
func good() *History {
	writes := []Write{
		{Key: "a", State: red("a1"), Revision: 10},
		{Key: "b", State: blue("b1"), Revision: 11},
		{Key: "a", State: blue("a2"), Revision: 12},
		{Key: "b", State: red("b2"), Revision: 14},
		{Key: "b", State: red("b3"), Revision: 15},
		{Key: "b", Deletes: true, After: 15, Before: 18},
		{Key: "a", State: red("a3"), Revision: 18},
	}
	a1 := Event{Added, "a", 10, red("a1")}
	b1 := Event{Added, "b", 11, blue("b1")}
	a2 := Event{Modified, "a", 12, blue("a2")}
	b2 := Event{Modified, "b", 14, red("b2")}
	b3 := Event{Modified, "b", 15, red("b3")}
	gone := Event{Deleted, "b", 17, red("b3")}
	a3 := Event{Modified, "a", 18, red("a3")}
	mark := func(at uint64) Event { return Event{Type: Bookmark, Revision: at} }
	return &History{Writes: writes, Until: 18, Views: []View{
		{Name: "whole", Segments: []Segment{{From: 9, Events: []Event{a1, b1, a2, b2, b3, gone, a3}}}},
		{Name: "listing", Segments: []Segment{{
			From: 13, Listed: true, Items: []Item{{"a", 12, blue("a2")}, {"b", 11, blue("b1")}},
			Events: []Event{b2, mark(14), b3, mark(16), gone, a3},
		}}},
		{Name: "resuming", Segments: []Segment{
			{From: 11, Listed: true, Items: []Item{{"a", 10, red("a1")}, {"b", 11, blue("b1")}}, Events: []Event{a2, mark(13)}},
			{From: 13, Events: []Event{b2, b3}},
			{From: 15, Events: []Event{gone, a3}},
		}},
		{Name: "red", Selects: isRed, Segments: []Segment{{From: 9, Events: []Event{
			a1, {Deleted, "a", 12, red("a1")}, {Added, "b", 14, red("b2")}, b3, gone, {Added, "a", 18, red("a3")},
		}}}},
	}}
}

func TestGoodHistory(t *testing.T) {
	for _, property := range Properties() {
		if v := property.Check(good()); v != nil {
			t.Errorf("%s: %s", property.Name, v)
		}
	}
	for _, property := range Properties() {
		if v := property.Check(&History{}); v != nil {
			t.Errorf("%s of nothing: %s", property.Name, v)
		}
	}
}

// TestBadHistories spoils the good history in one way at a time and names the
// property that has to notice. Others may notice, too.
func TestBadHistories(t *testing.T) {
	events := func(h *History, view, segment int) *[]Event { return &h.Views[view].Segments[segment].Events }
	for _, test := range []struct {
		name, property, shows string
		spoil                 func(h *History)
	}{
		{"swapped", "ordered", "a later event came first", func(h *History) {
			e := *events(h, 0, 0)
			e[1], e[2] = e[2], e[1]
		}},
		{"repeated", "unique", "shown twice", func(h *History) {
			e := events(h, 0, 0)
			*e = slices.Insert(*e, 2, (*e)[1])
		}},
		{"repeated after resuming", "unique", "shown twice", func(h *History) {
			e := events(h, 2, 2)
			*e = slices.Insert(*e, 0, (*events(h, 2, 1))[1])
		}},
		{"a shared version", "unique", "two objects share a version", func(h *History) {
			(*events(h, 0, 0))[3].Key = "c"
		}},
		{"dropped", "reliable", "missing @14 MODIFIED b", func(h *History) {
			e := events(h, 0, 0)
			*e = slices.Delete(*e, 3, 4)
		}},
		{"the last one dropped", "reliable", "missing @18", func(h *History) {
			e := events(h, 0, 0)
			*e = (*e)[:6]
		}},
		{"a deletion that no watcher saw", "reliable", "the deletion of b between the versions 15 and 18", func(h *History) {
			for i := range h.Views {
				for j := range h.Views[i].Segments {
					e := events(h, i, j)
					*e = slices.DeleteFunc(*e, func(e Event) bool { return e.Revision == 17 })
				}
			}
		}},
		{"a gap at a resumption", "resumable", "missing @14", func(h *History) {
			e := events(h, 2, 1)
			*e = (*e)[1:]
		}},
		{"a repetition at a resumption", "resumable", "shows what was before it", func(h *History) {
			e := events(h, 2, 2)
			*e = slices.Insert(*e, 0, (*events(h, 2, 1))[1])
		}},
		{"a gap behind a list", "atomic", "missing @14", func(h *History) {
			e := events(h, 1, 0)
			*e = (*e)[2:]
		}},
		{"a list without an object", "atomic", "lacks an object", func(h *History) {
			s := &h.Views[1].Segments[0]
			s.Items = s.Items[:1]
		}},
		{"a list with an older state", "atomic", "shows another state", func(h *History) {
			h.Views[1].Segments[0].Items[0] = Item{"a", 10, red("a1")}
		}},
		{"a bookmark too early", "bookmarkable", "a bookmark came before what it covers", func(h *History) {
			e := *events(h, 1, 0)
			e[1], e[2] = e[2], e[1]
			e[1], e[2], e[3] = e[3], e[1], e[2] // the one at 16 before b3 at 15
		}},
		{"a bookmark that goes back", "bookmarkable", "older than the event before it", func(h *History) {
			(*events(h, 1, 0))[3].Revision = 14
		}},
		{"an event behind its bookmark", "bookmarkable", "behind it", func(h *History) {
			e := events(h, 1, 0)
			*e = slices.Insert(*e, 4, (*e)[2])
		}},
		{"another content", "faithful", "expected @12", func(h *History) {
			(*events(h, 0, 0))[2].State = blue("a1")
		}},
		{"another type", "faithful", "expected @12 MODIFIED", func(h *History) {
			(*events(h, 0, 0))[2].Type = Added
		}},
		{"invented", "faithful", "not written", func(h *History) {
			e := events(h, 0, 0)
			*e = slices.Insert(*e, 3, Event{Modified, "a", 13, red("x")})
		}},
		{"left with the new content", "filtered", `expected @12 DELETED a "a1"`, func(h *History) {
			(*events(h, 3, 0))[1].State = blue("a2")
		}},
		{"left unseen", "filtered", "missing @12", func(h *History) {
			e := events(h, 3, 0)
			*e = slices.Delete(*e, 1, 2)
		}},
		{"entered as modified", "filtered", "expected @14 ADDED", func(h *History) {
			(*events(h, 3, 0))[2].Type = Modified
		}},
		{"shown what does not match", "filtered", "not asked for", func(h *History) {
			e := events(h, 3, 0)
			*e = slices.Insert(*e, 1, Event{Added, "b", 11, blue("b1")})
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := good()
			test.spoil(h)
			for _, property := range Properties() {
				if property.Name != test.property {
					continue
				}
				v := property.Check(h)
				if v == nil {
					t.Fatalf("%s did not notice", test.property)
				}
				if !strings.Contains(v.String(), test.shows) {
					t.Errorf("%s says %q, which does not show %q", test.property, v, test.shows)
				}
				if len(v.Excerpt) > 4 {
					t.Errorf("%d lines are not the smallest history: %s", len(v.Excerpt), v)
				}
				return
			}
			t.Fatalf("no property %s", test.property)
		})
	}
}

// TestRelistIsNoGap: a watcher that had to list again may have missed what was
// between.
func TestRelistIsNoGap(t *testing.T) {
	h := good()
	h.Views[2].Segments = []Segment{
		h.Views[2].Segments[0],
		{From: 16, Listed: true, Items: []Item{{"a", 12, blue("a2")}, {"b", 15, red("b3")}}, Events: h.Views[2].Segments[2].Events},
	}
	for _, property := range Properties() {
		if v := property.Check(h); v != nil {
			t.Errorf("%s: %s", property.Name, v)
		}
	}
}

// TestDeletionInAGap: when all watchers had to list again, no watcher may have
// seen a deletion; the lists show that it happened.
func TestDeletionInAGap(t *testing.T) {
	h := &History{Until: 13, Writes: []Write{
		{Key: "a", State: red("a1"), Revision: 10},
		{Key: "a", Deletes: true, After: 10, Before: 13},
		{Key: "b", State: red("b1"), Revision: 13},
	}, Views: []View{{Name: "cut off", Segments: []Segment{
		{From: 9, Events: []Event{{Added, "a", 10, red("a1")}}},
		{From: 12, Listed: true, Events: []Event{{Added, "b", 13, red("b1")}}},
	}}}}
	for _, property := range Properties() {
		if v := property.Check(h); v != nil {
			t.Errorf("%s: %s", property.Name, v)
		}
	}
	h.Views[0].Segments = []Segment{{From: 9, Events: []Event{{Added, "a", 10, red("a1")}, {Added, "b", 13, red("b1")}}}}
	if v := Reliable(h); v == nil || !strings.Contains(v.What, "the deletion of a") {
		t.Errorf("without a gap the deletion is missing: %v", v)
	}
}

// TestDeletionThatASelectionTells: no watcher saw the deletion, and the first
// list after it is one that is not of everything.
func TestDeletionThatASelectionTells(t *testing.T) {
	isBlue := func(_ string, s State) bool { return s.Labels["color"] == "blue" }
	h := &History{Until: 14, Writes: []Write{
		{Key: "a", State: red("a1"), Revision: 10},
		{Key: "a", Deletes: true, After: 10},
		{Key: "b", State: red("b1"), Revision: 14},
	}, Views: []View{
		{Name: "blue", Selects: isBlue, Segments: []Segment{{From: 11, Listed: true}}},
		{Name: "red", Selects: isRed, Segments: []Segment{{From: 12, Listed: true, Events: []Event{{Added, "b", 14, red("b1")}}}}},
		{Name: "whole", Segments: []Segment{{From: 13, Listed: true, Events: []Event{{Added, "b", 14, red("b1")}}}}},
	}}
	for _, property := range Properties() {
		if v := property.Check(h); v != nil {
			t.Errorf("%s: %s", property.Name, v)
		}
	}
	if writes, _ := h.resolve(); writes[1].Revision != 12 {
		t.Errorf("the deletion is taken to be %s, want it at 12", writes[1])
	}
}
