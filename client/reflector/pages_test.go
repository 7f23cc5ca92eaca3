package reflector

import (
	"net/http"
	"testing"
)

// Pages that repeat others lack what would have been in their place, and may never end.
func TestPagesThatRepeatOthers(t *testing.T) {
	first := step{"list 0", list("5 c1", "a 3", "c 1")}
	for name, later := range map[string][]step{
		"the token that led to the page":           {{"list - c1", list("5 c1", "d 4")}},
		"a token of an earlier page":               {{"list - c1", list("5 c2", "d 4")}, {"list - c2", list("5 c1", "e 4")}, {"list - c1", list("5 c2", "f 4")}},
		"the whole first page":                     {{"list - c1", list("5 c2", "a 3", "c 1")}},
		"the whole first page, and the last":       {{"list - c1", list("5", "a 3", "c 1")}},
		"one object of it":                         {{"list - c1", list("5", "d 4", "c 1")}},
		"an object of a page that is out of order": {{"list - c1", list("5 c2", "z 4", "b 2")}, {"list - c2", list("5", "zz 4", "b 2")}},
	} {
		scenario{name: name, opts: Options{PagedList: true},
			steps: join([]step{first}, later, []step{{"list 0 limit=", list("6", "a 3", "b 4", "c 1")}, {"watch 6", hold}}),
			store: "a:3 b:4 c:1", version: "6", check: func(t *testing.T, _ *script, s Stats) {
				if s.DecodeErrors != 1 {
					t.Errorf("%+v", s)
				}
			}}.play(t)
	}
	scenario{name: "pages in no order", opts: Options{PagedList: true},
		steps: []step{first, {"list - c1", list("5 c2", "b 4")}, {"list - c2", list("5", "d 2", "aa 1")}, {"watch 5", hold}},
		store: "a:3 aa:1 b:4 c:1 d:2", version: "5"}.play(t)
	// A server that divides what was to come at once must come to an end, too.
	all := step{"list 0 limit=", list("6 d1", "a 3")}
	for name, later := range map[string][]step{
		"tokens in turn":       {{"list - d1 limit=", list("6 d2", "b 3")}, {"list - d2 limit=", list("6 d1", "c 3")}, {"list - d1 limit=", list("6 d2", "d 3")}},
		"empty pages for ever": {{"list - d1 limit=", list("6 d2")}},
		"objects once more":    {{"list - d1 limit=", list("6", "a 3")}},
	} {
		scenario{name: "everything at once: " + name, opts: Options{PagedList: true},
			steps: join([]step{first, {"list - c1", list("5 c1", "d 4")}, all}, later, []step{{"list 0", list("7", "a 7")}, {"watch 7", hold}}),
			store: "a:7", version: "7", lists: map[ListCause]int64{ListInitial: 1, ListRepeated: 1}}.play(t)
	}
}

// A server that pages by itself, and ended its first list with an empty page, may do so again.
func TestServersWhoseLastPageIsEmpty(t *testing.T) {
	begin := []step{{"list 0", list("5 c1", "a 3", "b 4")}, {"list - c1", list("5")}, {"list 0 limit=", list("5 c1", "a 3", "b 4")}, {"list - c1 limit=", list("5")},
		{"watch 5", events("ERROR 410", end)}, {"list -", list("9 c2", "a 3")}, {"list - c2", list("9")}, {"list - limit=", list("9 c2", "a 3")}}
	scenario{name: "again", opts: Options{PagedList: true}, steps: join(begin, []step{{"list - c2 limit=", list("9")}, {"watch 9", hold}}),
		store: "a:3", version: "9", any: true}.play(t)
	scenario{name: "in the middle", opts: Options{PagedList: true}, steps: join(begin, []step{{"list - c2 limit=", list("9 c3")}, {"list -", hold}}),
		store: "a:3 b:4", version: "5", any: true}.play(t)
}

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
		"a part":                     coded(http.StatusPartialContent, list("50", "b 4")),
		"a copy":                     coded(http.StatusNonAuthoritativeInfo, list("50", "b 4")),
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
		// A server that divides what was to come at once, and breaks that, too, in the same way.
		scenario{name: name + ", each time", opts: Options{PagedList: true},
			steps: join(begin, []step{{"list - limit=", list("50 c2", "a 30")}, {"list - c2 limit=", page}, {"list -", hold}}),
			store: "a:3 b:4", version: "7", lists: map[ListCause]int64{ListInitial: 1, ListExpired: 1, ListRepeated: 1}}.play(t)
		scenario{name: name + ", twice", opts: Options{PagedList: true},
			steps: join(begin, []step{{"list - limit=", list("52 c3", "a 30")}, {"list - c3 limit=", page}, {"list -", hold}}),
			store: "a:3 b:4", version: "7", lists: map[ListCause]int64{ListInitial: 1, ListExpired: 1, ListRepeated: 1}}.play(t)
	}
}

// A list that has a version, and lacks the member items, is none: an empty one has it, as null or [].
func TestListsWithoutItems(t *testing.T) {
	begin := []step{{"list 0", list("5", "a 3")}, {"watch 5", events("BOOKMARK 7,ERROR 410", end)}}
	scenario{name: "absent", opts: Options{PagedList: true},
		steps: join(begin, []step{{"list -", raw(`{"kind":"ConfigMapList","metadata":{"resourceVersion":"50"}}`)}, {"list -", hold}}),
		store: "a:3", version: "7", any: true, check: func(t *testing.T, _ *script, s Stats) {
			if s.DecodeErrors != 1 {
				t.Errorf("%+v", s)
			}
		}}.play(t)
	for name, items := range map[string]string{"null": "null", "empty": "[]"} {
		scenario{name: name, opts: Options{PagedList: true},
			steps: join(begin, []step{{"list -", raw(`{"kind":"ConfigMapList","metadata":{"resourceVersion":"50"},"items":` + items + `}`)}, {"watch 50", hold}}),
			store: "", version: "50", any: true}.play(t)
	}
}

// A continue token that the server does not accept is asked for once: what follows is a list from its first
// page, after a delay, and the error is reported.
func TestContinueTokensThatAreRefused(t *testing.T) {
	for _, code := range []string{"400", "422"} {
		var reported []error
		opts := Options{PagedList: true, OnError: func(_ string, err error) { reported = append(reported, err) }}
		scenario{name: code, opts: opts,
			steps: []step{{"list 0", list("5 c1", "a 3")}, {"list - c1", refusal(code)}, {"list -", list("6 c2", "a 3")}, {"list - c2", refusal(code)},
				{"list -", list("7 c3", "a 3")}, {"list - c3", list("7", "b 4")}, {"watch 7", hold}},
			store: "a:3 b:4", version: "7", lists: map[ListCause]int64{ListInitial: 1, ListRepeated: 2},
			check: func(t *testing.T, s *script, stats Stats) {
				if len(reported) != 2 || !hasCode(reported[0], http.StatusBadRequest, http.StatusUnprocessableEntity) {
					t.Errorf("reported %v", reported)
				}
				at(0, 0, 400, 400, 1200, 1200, 1200)(t, s, stats)
				reported = nil
			}}.play(t)
	}
}
