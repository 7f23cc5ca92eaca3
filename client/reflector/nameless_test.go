package reflector

import (
	"testing"
	"time"
)

// An object without a name is one that cannot be understood, wherever it is.
func TestObjectsWithoutNames(t *testing.T) {
	decodes := func(n int64) func(*testing.T, *script, Stats) {
		return func(t *testing.T, _ *script, s Stats) {
			t.Helper()
			if s.DecodeErrors != n {
				t.Errorf("%d decode errors, want %d", s.DecodeErrors, n)
			}
		}
	}
	relisted := map[ListCause]int64{ListInitial: 1, ListDecode: 1}
	repeated := map[ListCause]int64{ListInitial: 1, ListRepeated: 1}
	for _, bad := range []string{"ADDED - 6", "MODIFIED - 6", "DELETED - 6", "ADDED - -", "MODIFIED - -", "DELETED - -"} {
		scenario{name: bad + " is resumed from, then listed", opts: Options{PagedList: true},
			steps: []step{{"list 0", list("5", "a 3")}, {"watch 5", events(bad+",ADDED c 7", hold)}, {"watch 5", events(bad, hold)},
				{"list 5 NotOlderThan", list("8", "b 7")}, {"watch 8", hold}},
			store: "b:7", version: "8", lists: relisted, resumes: map[ResumeReason]int64{ResumeDecode: 1}, check: decodes(2)}.play(t)
		scenario{name: bad + " once", resumes: map[ResumeReason]int64{ResumeDecode: 1},
			steps: []step{{"stream", events(initial+","+bad, hold)}, {"watch 5", events("ADDED b 6", hold)}},
			store: "a:3 b:6", version: "6", check: decodes(1)}.play(t)
		scenario{name: bad + " in an answer to a poll", opts: Options{PollTimeout: 10 * time.Second}, resumes: map[ResumeReason]int64{ResumeDecode: 1},
			steps: []step{{"list 0", list("5", "a 3")}, {"watch 5", events("ADDED b 6,"+bad+",ADDED c 8", end)}, {"watch 6", events("ADDED c 8", hold)}},
			store: "a:3 b:6", version: "6", check: decodes(1)}.play(t)
		scenario{name: bad + " among the initial events", lists: repeated,
			steps: []step{{"stream", events("ADDED a 3,"+bad+",END 5", hold)}, {"stream", events(initial, hold)}},
			store: "a:3", version: "5", check: decodes(1)}.play(t)
	}
	for _, bad := range []string{"- 6", "- -"} {
		scenario{name: "item " + bad, opts: Options{PagedList: true}, lists: repeated,
			steps: []step{{"list 0", list("5", "a 3", bad)}, {"list 0", list("6", "b 4")}, {"watch 6", hold}},
			store: "b:4", version: "6", check: decodes(1)}.play(t)
		scenario{name: "item " + bad + " of a later page", opts: Options{PagedList: true},
			steps: []step{{"list 0", list("5 c1", "a 3")}, {"list - c1", list("5", bad)}, {"list 0 limit=", list("6", "b 4")}, {"watch 6", hold}},
			store: "b:4", version: "6", check: decodes(1)}.play(t)
	}
	scenario{name: "bookmarks have none", steps: []step{{"stream", events(initial+",BOOKMARK 9", hold)}}, store: "a:3", version: "9", check: decodes(0)}.play(t)
}
