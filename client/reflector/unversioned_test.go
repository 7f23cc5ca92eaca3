package reflector

import (
	"testing"
	"time"
)

// Lists without a resourceVersion, as of some aggregated servers, are followed by watches
// of the state of the moment, and those by lists.
func TestListsWithoutAVersion(t *testing.T) {
	none := func(objects ...string) answer { return list("", objects...) }
	begin := []step{{"list 0", none("a -")}, {"list 0", none("a -")}}
	pages := Options{PagedList: true}
	kindOnly := raw(`{"kind":"ConfigMapList","apiVersion":"v1","metadata":{}}`)
	for _, sc := range []scenario{
		{name: "the second in a row is believed", opts: pages,
			steps: join(begin, []step{{"watch -", events("ADDED a -,ADDED b -,MODIFIED a -", hold)}}),
			store: "a: b:", lists: map[ListCause]int64{ListInitial: 1, ListRepeated: 1}, check: contactAt(400)},
		{name: "a watch shows nothing of what was before it", opts: pages,
			steps: join(begin, []step{{"watch -", events("ADDED b -,BOOKMARK -", after(40*time.Second, events("ADDED c -", hold)))}}),
			store: "a: b: c:", lists: map[ListCause]int64{ListInitial: 1, ListRepeated: 1}, check: func(t *testing.T, s *script, stats Stats) {
				contactAt(400)(t, s, stats)
				if timeout := s.queries[2].Get("timeoutSeconds"); timeout != "45" {
					t.Errorf("a watch of %s seconds", timeout)
				}
			}},
		{name: "a list follows each watch", opts: pages, resumes: map[ResumeReason]int64{},
			steps: join(begin, []step{{"watch -", events("ADDED a -,ADDED b -", after(time.Minute, end))}, {"list -", none("b -")},
				{"watch -", events("", after(time.Minute, cut(0)))}, {"list -", none("c -")}, {"watch -", hold}}),
			store: "c:", lists: map[ListCause]int64{ListInitial: 1, ListRepeated: 1, ListUnversioned: 2}},
		{name: "versions of objects are none to resume from", opts: pages,
			steps: join(begin, []step{{"watch -", events("ADDED a 3,MODIFIED a 4,DELETED b 2,BOOKMARK 9", after(time.Minute, end))}, {"list -", none("b 1")}, {"watch -", hold}}),
			store: "b:1", any: true},
		{name: "a watch that says nothing useful is not asked for in a loop", opts: pages,
			steps: join(begin, []step{{"watch -", end}, {"list -", none("b -")}, {"watch -", end}, {"list -", none("c -")}, {"watch -", hold}}),
			store: "c:", any: true, check: at(0, 400, 400, 1200, 1200, 2800, 2800)},
		{name: "and watches that are refused", opts: pages,
			steps: join(begin, []step{{"watch -", refusal("405")}, {"list -", none("b -")}, {"watch -", refusal("405")}, {"list -", none("c -")}, {"watch -", hold}}),
			store: "c:", lists: map[ListCause]int64{ListInitial: 1, ListRepeated: 1, ListUnwatched: 2}, check: at(0, 400, 400, 1200, 1200, 2800, 2800)},
		{name: "by polling", opts: Options{PollTimeout: 10 * time.Second},
			steps: join(begin, []step{{"list -", none("b -")}, {"list -", none("c -")}, {"list -", hold}}),
			store: "c:", any: true},
		// A watch from "0" begins with the state of the moment, too.
		{name: "0 is none", opts: pages,
			steps: []step{{"list 0", list("0", "a 3")}, {"list 0", list("0", "a 3", "b 4")}, {"watch -", events("ADDED a 3,BOOKMARK 0", after(time.Minute, end))},
				{"list -", list("0", "c 1")}, {"watch -", hold}},
			store: "c:1", any: true},
		{name: "0 without objects", opts: pages,
			steps: []step{{"list 0", list("0")}, {"watch 0", events("ADDED a 9,ADDED b 7", after(time.Minute, cut(0)))},
				{"list -", list("0", "b 7")}, {"list -", list("0", "b 7")}, {"watch -", hold}},
			store: "b:7", any: true},
		{name: "0 until there is a version", opts: pages,
			steps: []step{{"list 0", list("0")}, {"watch 0", events("ADDED a 9,BOOKMARK 9,ADDED c 10", after(time.Minute, cut(0)))}, {"watch 10", hold}},
			store: "a:9 c:10", version: "10", any: true},
		{name: "0 by polling", opts: Options{PollTimeout: 10 * time.Second},
			steps: []step{{"list 0", list("0", "a 3")}, {"list 0", list("0", "b 3")}, {"list -", list("0", "c 3")}, {"list -", hold}},
			store: "c:3", any: true},
		{name: "0 at the end of initial events", steps: []step{{"stream", events("ADDED a 3,END 0", hold)}, {"list 0", list("5", "a 3")}, {"watch 5", hold}},
			store: "a:3", version: "5", any: true},
		{name: "0 once", opts: pages,
			steps: []step{{"list 0", list("5", "a 3")}, {"watch 5", events("ERROR 410", end)}, {"list -", list("0")}, {"list -", list("8", "b 7")}, {"watch 8", hold}},
			store: "b:7", version: "8", any: true},
		{name: "a streaming list", steps: []step{{"stream", events("ADDED a -,END", hold)}, {"list 0", none("a -")}, {"list 0", none("a -")}, {"watch -", hold}},
			store: "a:", any: true},
		{name: "pages", opts: pages,
			steps: []step{{"list 0", none("a -")}, {"list 0", list(" c1", "a -")}, {"list - c1", none("b -")}, {"watch -", hold}}, store: "a: b:", any: true},
		{name: "a list with a version later", opts: pages,
			steps: join(begin, []step{{"watch -", events("ADDED a -", after(time.Minute, end))}, {"list -", list("7", "b 6")}, {"watch 7", events("ADDED c 8", after(time.Minute, end))}, {"watch 8", hold}}),
			store: "b:6 c:8", version: "8", any: true},
		{name: "a list that fails", opts: pages,
			steps: join(begin, []step{{"watch -", after(20*time.Second, end)}, {"list -", refusal("503")}, {"list -", none("b -")}, {"watch -", hold}}),
			store: "b:", any: true},
		{name: "a resource that is gone", opts: Options{PagedList: true, GoneAfter: time.Millisecond},
			steps: join(begin, []step{{"watch -", refusal("404")}, {"list -", refusal("404")}, {"list -", hold}}), any: true, check: goneAt(true)},
		// client-go believes the first, and even {}: the cache of a resource without objects,
		// as that of metrics is at first, has to be complete some time.
		{name: "empty ones", opts: pages, steps: []step{{"list 0", none()}, {"list 0", none()}, {"watch -", hold}},
			lists: map[ListCause]int64{ListInitial: 1, ListRepeated: 1}, check: contactAt(400)},
		{name: "empty ones, and then others", opts: pages,
			steps: []step{{"list 0", none()}, {"list 0", none()}, {"watch -", refusal("405")}, {"list -", none("a -")}, {"watch -", refusal("405")}, {"list -", hold}},
			store: "a:", lists: map[ListCause]int64{ListInitial: 1, ListRepeated: 1, ListUnwatched: 2}},
		{name: "not if nothing but the kind says that they are lists", opts: pages,
			steps: []step{{"list 0", kindOnly}, {"list 0", kindOnly}, {"list -", kindOnly}, {"list -", kindOnly}, {"list -", hold}},
			lists: map[ListCause]int64{ListInitial: 1, ListRepeated: 4}, check: neverContacted},
		{name: "not if others are in between", opts: pages,
			steps: []step{{"list 0", none()}, {"list 0", raw(`{}`)}, {"list 0", none()}, {"list 0", page(502)}, {"list 0", none()}, {"list 0", hold}},
			any:   true, check: neverContacted},
		{name: "not if a list had a version before", opts: pages,
			steps: []step{{"list 0", list("5", "a 3")}, {"watch 5", events("ERROR 410", end)}, {"list -", none()}, {"list -", none()}, {"list -", none()}, {"list -", list("8", "b 7")}, {"watch 8", hold}},
			store: "b:7", version: "8", lists: map[ListCause]int64{ListInitial: 1, ListExpired: 1, ListRepeated: 3}},
		{name: "not if the cache came from disk", opts: Options{PagedList: true, ResumeFrom: "5"},
			steps: []step{{"watch 5", refusal("410")}, {"list -", none()}, {"list -", none()}, {"list -", hold}}, version: "5", any: true},
	} {
		sc.play(t)
	}
}

// neverContacted checks that the store was never taken for complete.
func neverContacted(t *testing.T, s *script, stats Stats) {
	t.Helper()
	if !stats.LastContact.IsZero() {
		t.Errorf("the store was complete after %v; requests at %v", stats.LastContact.Sub(s.start), s.at)
	}
}
