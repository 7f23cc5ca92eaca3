package reflector

import (
	"testing"
)

// A page that cannot be one of its list must not delete what is behind it.
func TestLaterPagesThatAreNone(t *testing.T) {
	const relist = "BOOKMARK 7,ERROR 410"
	for name, page := range map[string]answer{
		"nothing":                    raw(`{}`),
		"another document":           raw(`{"status":"maintenance"}`),
		"an object":                  raw(`{"kind":"ConfigMap","metadata":{"name":"x","resourceVersion":"50"}}`),
		"a Status that says Success": raw(`{"kind":"Status","status":"Success"}`),
		"a list without a version":   raw(`{"kind":"ConfigMapList","metadata":{}}`),
		"items without a version":    list("", "b 4"),
		"a list without items":       raw(`{"kind":"ConfigMapList","metadata":{"resourceVersion":"50"}}`),
		"null items":                 raw(`{"kind":"ConfigMapList","metadata":{"resourceVersion":"50"},"items":null}`),
		"empty items":                list("50"),
		"another version":            list("77", "b 4"),
		"an older version":           list("5", "b 4"),
		"text":                       raw(`maintenance`),
	} {
		begin := []step{{"list 0", list("5 c1", "a 3")}, {"list - c1", list("5", "b 4")}, {"watch 5", events(relist, end)},
			{"list -", list("50 c2", "a 30")}, {"list - c2", page}}
		scenario{name: name, opts: Options{PagedList: true},
			steps: join(begin, []step{{"list - limit=", list("52", "a 30", "b 4", "c 51")}, {"watch 52", hold}}),
			store: "a:30 b:4 c:51", version: "52", lists: map[ListCause]int64{ListInitial: 1, ListExpired: 1},
			check: func(t *testing.T, _ *script, s Stats) {
				if s.DecodeErrors != 1 {
					t.Errorf("%+v", s)
				}
			}}.play(t)
		// A server that divides what was to come at once, and breaks that, too.
		scenario{name: name + ", twice", opts: Options{PagedList: true},
			steps: join(begin, []step{{"list - limit=", list("52 c3", "a 30")}, {"list - c3 limit=", page}, {"list -", hold}}),
			store: "a:3 b:4", version: "7", lists: map[ListCause]int64{ListInitial: 1, ListExpired: 1, ListRepeated: 1}}.play(t)
	}
}
