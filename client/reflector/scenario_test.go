package reflector

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// at checks when requests came, in milliseconds since the start.
func at(want ...int64) func(*testing.T, *script, Stats) {
	return func(t *testing.T, s *script, _ Stats) {
		t.Helper()
		for i, ms := range want {
			if got := s.at[i].Milliseconds(); got != ms {
				t.Errorf("request %d came after %d ms, want %d: %v", i+1, got, ms, s.at)
				return
			}
		}
	}
}

// initial is a streaming list of one object at version 5.
const initial = "ADDED a 3,END 5"

func TestListing(t *testing.T) {
	for _, sc := range []scenario{
		{name: "a streaming list goes on as a watch",
			steps: []step{{"stream", events("ADDED a 3,ADDED b 4,END 5,MODIFIED a 6,DELETED b 7,ADDED c 8", hold)}},
			store: "a:6 c:8", version: "8",
			check: func(t *testing.T, _ *script, s Stats) {
				if s.StreamingLists != 1 || s.PagedLists != 0 || s.Watches != 1 || s.Events != 3 {
					t.Errorf("%+v", s)
				}
			}},
		{name: "initial events come in the order of keys, not of versions",
			steps: []step{{"stream", events("ADDED a 900,ADDED b 4,END 5", after(time.Minute, end))}, {"watch 5", hold}},
			store: "a:900 b:4", version: "5", resumes: map[ResumeReason]int64{ResumeEnded: 1}},
		{name: "changes among the initial events",
			steps: []step{{"stream", events("ADDED b 1,ADDED a 2,MODIFIED b 3,ADDED a 2,DELETED a 4,BOOKMARK 4,END 5", hold)}},
			store: "b:3", version: "5"},
		{name: "a server without streaming lists is asked once",
			steps: []step{{"stream", refusal("422")}, {"list 0", list("5", "a 3")}, {"watch 5", events("ERROR 410", end)},
				{"list -", list("9", "a 8")}, {"watch 9", hold}},
			store: "a:8", version: "9", lists: map[ListCause]int64{ListInitial: 1, ListExpired: 1},
			check: func(t *testing.T, _ *script, s Stats) {
				if s.StreamingFallbacks != 1 || s.PagedLists != 2 || s.Pages != 2 {
					t.Errorf("%+v", s)
				}
			}},
		{name: "streaming lists are switched off", opts: Options{PagedList: true, PageSize: 7},
			steps: []step{{"list 0 limit=7", list("5")}, {"watch 5", hold}}, version: "5"},
		{name: "no pages", opts: Options{PagedList: true, PageSize: -1},
			steps: []step{{"list 0 limit=", list("5")}, {"watch 5", hold}}, version: "5"},
		{name: "pages", opts: Options{PagedList: true},
			steps: []step{{"list 0", list("5 c1", "a 1")}, {"list - c1", list("5 c2", "b 2")}, {"list - c2", list("5", "c 3")}, {"watch 5", hold}},
			store: "a:1 b:2 c:3", version: "5"},
		{name: "the snapshot expires between pages", opts: Options{PagedList: true},
			steps: []step{{"list 0", list("5 c1", "a 1")}, {"list - c1", refusal("410")}, {"list - limit=", list("9", "b 2")}, {"watch 9", hold}},
			store: "b:2", version: "9"},
		{name: "the list's version is too large", opts: Options{PagedList: true},
			steps:   []step{{"list 0", refusal("504large")}, {"list -", list("6")}, {"watch 6", hold}},
			version: "6", lists: map[ListCause]int64{ListInitial: 1, ListRepeated: 1}, check: at(0, 1400)},
		{name: "null items", opts: Options{PagedList: true},
			steps:   []step{{"list 0", raw(`{"metadata":{"resourceVersion":"5"},"items":null}`)}, {"watch 5", hold}},
			version: "5"},
		{name: "a list without a version is none", opts: Options{PagedList: true},
			steps:   []step{{"list 0", list("")}, {"list 0", list("5")}, {"watch 5", hold}},
			version: "5", lists: map[ListCause]int64{ListInitial: 1, ListRepeated: 1}},
		{name: "a list that cannot be decoded", opts: Options{PagedList: true},
			steps:   []step{{"list 0", raw(`{"metadata":{"resourceVersion":"5"},"items":[1]}`)}, {"list 0", list("5")}, {"watch 5", hold}},
			version: "5", lists: map[ListCause]int64{ListInitial: 1, ListRepeated: 1},
			check: func(t *testing.T, _ *script, s Stats) {
				if s.DecodeErrors != 1 {
					t.Errorf("%+v", s)
				}
			}},
		{name: "the store is one that was saved", opts: Options{ResumeFrom: "40"},
			steps: []step{{"watch 40", events("ADDED a 41", hold)}},
			store: "a:41", version: "41", lists: map[ListCause]int64{}},
		{name: "the saved resourceVersion has expired", opts: Options{ResumeFrom: "40"},
			steps: []step{{"watch 40", refusal("410")}, {"stream", events("ADDED a 60,END 70", hold)}},
			store: "a:60", version: "70", lists: map[ListCause]int64{ListExpired: 1}},
	} {
		sc.play(t)
	}
}

func TestStreamingListsThatFail(t *testing.T) {
	for _, sc := range []scenario{
		{name: "the closing bookmark never comes", opts: Options{SilenceTimeout: -1},
			steps: []step{{"stream", events("ADDED a 3", hold)}, {"list - limit=1", list("4", "b 4")}, {"list 0", list("5", "b 4")}, {"watch 5", events("ERROR 410", end)},
				// The second time is not an accident any more.
				{"stream", events("ADDED a 3", hold)}, {"list - limit=1", list("6")}, {"list -", list("6")}, {"watch 6", events("ERROR 410", end)},
				{"list -", list("7")}, {"watch 7", hold}},
			version: "7", lists: map[ListCause]int64{ListInitial: 1, ListExpired: 2},
			check: func(t *testing.T, s *script, stats Stats) {
				if stats.StreamingFallbacks != 2 || stats.PagedLists != 3 {
					t.Errorf("%+v", stats)
				}
				at(0, 6000, 8000)(t, s, stats)
			}},
		{name: "a server that does not know of streaming lists",
			steps: []step{{"stream", events("", hold)}, {"list - limit=1", list("0")}, {"list 0", list("5", "b 4")}, {"watch 5", hold}},
			store: "b:4", version: "5", check: at(0, 6000, 8000)},
		{name: "a slow server has more time",
			steps: []step{{"stream", events("", hold)}, {"list - limit=1", after(2*time.Second, list("4"))}, {"list 0", list("5", "b 4")}, {"watch 5", hold}},
			store: "b:4", version: "5", check: at(0, 6000, 6000+2000+2000+4*2000)},
		{name: "a list is answered, and the stream goes on",
			steps: []step{{"stream", events("ADDED a 3", after(7*time.Second, events("END 5", after(time.Minute, end))))}, {"list - limit=1", list("5")}, {"watch 5", hold}},
			store: "a:3", version: "5", resumes: map[ResumeReason]int64{ResumeEnded: 1}, check: at(0, 6000, 67_100)},
		{name: "a list is asked for when the stream is silent again",
			steps: []step{{"stream", events("ADDED a 1", after(7*time.Second, events("ADDED b 2", hold)))}, {"list - limit=1", list("4")}, {"list - limit=1", list("4")},
				{"list 0", list("5", "b 4")}, {"watch 5", hold}},
			store: "b:4", version: "5", check: at(0, 6000, 13_000, 15_000)},
		{name: "neither is answered",
			steps: []step{{"stream", events("ADDED a 3", hold)}, {"list - limit=1", hold}, {"list 0", list("5", "b 4")}, {"watch 5", hold}},
			store: "b:4", version: "5", check: at(0, 6000, 37_500)},
		{name: "lists are refused meanwhile",
			steps: join([]step{{"stream", events("ADDED a 3", hold)}}, times(7, step{"list - limit=1", refusal("503")}), []step{{"list 0", list("5", "b 4")}, {"watch 5", hold}}),
			store: "b:4", version: "5", check: at(0, 6000, 11_000, 16_000, 21_000, 26_000, 31_000, 36_000, 37_500)},
		{name: "the deadline is an option", opts: Options{InitialEventsTimeout: 4 * time.Second},
			steps: []step{{"stream", events("ADDED a 3", hold)}, {"list 0", list("5", "b 4")}, {"watch 5", hold}},
			store: "b:4", version: "5", check: at(0, 5000)},
		{name: "no deadline", opts: Options{InitialEventsTimeout: -1},
			steps: []step{{"stream", events("ADDED a 3", after(time.Hour, events("END 5", hold)))}},
			store: "a:3", version: "5"}, // and no list is asked for
		{name: "slow is not silent", opts: Options{InitialEventsTimeout: 4 * time.Second},
			steps: []step{{"stream", events("ADDED a 1", after(3*time.Second, events("ADDED b 2", after(3*time.Second, events("END 5", hold)))))}},
			store: "a:1 b:2", version: "5"},
		{name: "cut among the initial events",
			steps: []step{{"stream", events("ADDED a 3", cut(0))}, {"stream", events("ADDED b 3,END 5", hold)}},
			store: "b:3", version: "5", lists: map[ListCause]int64{ListInitial: 1, ListRepeated: 1}},
		{name: "three cuts are a reason to ask for pages",
			steps: []step{{"stream", events("ADDED a 3", end)}, {"stream", events("ADDED a 3", end)}, {"stream", events("ADDED a 3", end)},
				{"list 0", list("5")}, {"watch 5", hold}},
			version: "5", lists: map[ListCause]int64{ListInitial: 1, ListRepeated: 2}},
		{name: "an error among the initial events",
			steps:   []step{{"stream", events("ADDED a 3,ERROR 500", end)}, {"list 0", list("5")}, {"watch 5", hold}},
			version: "5"},
		{name: "expired among the initial events",
			steps:   []step{{"stream", events("ADDED a 3,ERROR 410", end)}, {"stream", events("END 5", hold)}},
			version: "5", lists: map[ListCause]int64{ListInitial: 1, ListRepeated: 1}},
		{name: "busy",
			steps:   []step{{"stream", refusal("429 3")}, {"stream", events("END 5", hold)}},
			version: "5", lists: map[ListCause]int64{ListInitial: 1, ListRepeated: 1}, check: at(0, 3400)},
		{name: "expired again and again",
			steps: []step{{"stream", refusal("410")}, {"stream", events("ADDED a 3,ERROR 410", end)}, {"stream", refusal("504large")},
				{"list -", list("5", "a 3")}, {"watch 5", hold}},
			store: "a:3", version: "5", lists: map[ListCause]int64{ListInitial: 1, ListRepeated: 2}},
		{name: "a bookmark without a version",
			steps:   []step{{"stream", events("ADDED a 3,END", hold)}, {"list 0", list("5")}, {"watch 5", hold}},
			version: "5"},
		{name: "the server denies access",
			steps:   []step{{"stream", refusal("403")}, {"list 0", refusal("403")}, {"stream", events("END 5", hold)}},
			version: "5", lists: map[ListCause]int64{ListInitial: 1, ListRepeated: 1}},
		{name: "the server allows lists, and watches that are none",
			steps: []step{{"stream", refusal("403")}, {"list 0", list("5", "a 3")}, {"watch 5", events("ADDED b 6", hold)}},
			store: "a:3 b:6", version: "6"},
	} {
		sc.play(t)
	}
}

// What stands between a client and its server may know lists, and nothing of watches.
func TestStreamingListsThatAreAnsweredWithSomethingElse(t *testing.T) {
	for name, other := range map[string]answer{
		"a page":        page(200),
		"a page of 403": page(403),
		"a page of 404": page(404),
		"a page of 405": page(405),
		"nothing":       func(_ *script, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) },
		"404":           refusal("404"),
		"406":           refusal("406"),
		"409":           refusal("409"),
		"415":           refusal("415"),
		"no beginning":  hold,
	} {
		bad := step{"stream", other}
		scenario{name: name, steps: join(times(3, bad), []step{{"list 0", list("5", "a 3")}, {"watch 5", hold}}),
			store: "a:3", version: "5", lists: map[ListCause]int64{ListInitial: 1, ListRepeated: 2}}.play(t)
		scenario{name: name + " for a while", steps: join(times(2, bad), []step{{"stream", events(initial, hold)}}),
			store: "a:3", version: "5", lists: map[ListCause]int64{ListInitial: 1, ListRepeated: 2}}.play(t)
	}
	// Within the stream, an error is about the stream, whatever its code is.
	for _, code := range []string{"401", "404", "409", "429"} {
		bad := step{"stream", events("ADDED a 3,ERROR "+code, end)}
		scenario{name: code + " among the initial events", steps: join(times(3, bad), []step{{"list 0", list("5", "a 3")}, {"watch 5", hold}}),
			store: "a:3", version: "5", lists: map[ListCause]int64{ListInitial: 1, ListRepeated: 2}}.play(t)
	}
	// These say nothing about lists, or would be said of lists as well.
	for _, code := range []string{"401", "429"} {
		scenario{name: code, steps: join(times(4, step{"stream", refusal(code)}), []step{{"stream", events(initial, hold)}}),
			store: "a:3", version: "5", lists: map[ListCause]int64{ListInitial: 1, ListRepeated: 4}}.play(t)
	}
}

func TestResumingWithoutAList(t *testing.T) {
	for _, sc := range []scenario{
		// With half of what is random, watches are asked to last for 450 s, and the
		// wait after a first cut, or an early end, is half of 200 ms.
		{name: "clean end in due time, at once", resumes: map[ResumeReason]int64{ResumeEnded: 2},
			steps: []step{{"stream", events(initial+",BOOKMARK 9", after(150*time.Second, events("BOOKMARK 10", after(149*time.Second, events("BOOKMARK 11", after(150*time.Second, end))))))},
				{"watch 11", events("", after(150*time.Second, events("BOOKMARK 12", after(150*time.Second, events("BOOKMARK 13", after(150*time.Second, end))))))}, {"watch 13", hold}},
			store: "a:3", version: "13", check: at(0, 449_000, 899_000)},
		{name: "clean end, early", resumes: map[ResumeReason]int64{ResumeEnded: 2},
			steps: []step{{"stream", events(initial+",BOOKMARK 9", after(time.Minute, end))},
				{"watch 9", events("", after(time.Minute, end))}, {"watch 9", hold}},
			store: "a:3", version: "9", check: at(0, 60_100, 120_200)},
		{name: "cuts in a row", resumes: map[ResumeReason]int64{ResumeCut: 4},
			steps: []step{{"stream", events(initial, after(2*time.Second, cut(0)))}, {"watch 5", events("", after(2*time.Second, cut(0)))},
				{"watch 5", events("", after(2*time.Second, cut(0)))}, {"watch 5", events("", after(2*time.Second, cut(0)))}, {"watch 5", hold}},
			store: "a:3", version: "5", check: at(0, 2_100, 4_300, 6_700, 9_500)},
		{name: "clean ends, too early to be steady", resumes: map[ResumeReason]int64{ResumeEnded: 4},
			steps: []step{{"stream", events(initial, after(2*time.Second, end))}, {"watch 5", events("", after(2*time.Second, end))},
				{"watch 5", events("", after(2*time.Second, end))}, {"watch 5", events("", after(2*time.Second, end))}, {"watch 5", hold}},
			store: "a:3", version: "5", check: at(0, 2_100, 4_300, 6_700, 9_500)},
		{name: "an early end long after other failures", resumes: map[ResumeReason]int64{ResumeCut: 1, ResumeRefused: 3, ResumeEnded: 2}, opts: Options{SilenceTimeout: -1},
			steps: []step{{"stream", events(initial, after(time.Minute, cut(3)))}, {"watch 5", events("", after(449*time.Second, end))},
				{"watch 5", events("", after(2*time.Second, end))}, {"watch 5", hold}},
			store: "a:3", version: "5", check: at(0, 62_900, 511_900, 514_000)},
		{name: "cuts once a minute", resumes: map[ResumeReason]int64{ResumeCut: 3},
			steps: []step{{"stream", events(initial, after(time.Minute, cut(0)))}, {"watch 5", events("", after(time.Minute, cut(0)))},
				{"watch 5", events("", after(time.Minute, cut(0)))}, {"watch 5", hold}},
			store: "a:3", version: "5", check: at(0, 60_100, 120_200, 180_300)},
		{name: "cut, after a moment", resumes: map[ResumeReason]int64{ResumeCut: 1},
			steps: []step{{"stream", events(initial+",MODIFIED a 7", after(time.Minute, cut(0)))}, {"watch 7", events("MODIFIED a 8", hold)}},
			store: "a:8", version: "8", check: at(0, 60_100)},
		{name: "cut, then refused", resumes: map[ResumeReason]int64{ResumeCut: 1, ResumeRefused: 3},
			steps: []step{{"stream", events(initial, after(time.Minute, cut(3)))}, {"watch 5", hold}},
			// 100, 400, 800 and 1600 ms: half of the limit each time.
			store: "a:3", version: "5", check: at(0, 62_900)},
		{name: "busy, with Retry-After", resumes: map[ResumeReason]int64{ResumeEnded: 1, ResumeBusy: 1},
			steps: []step{{"stream", events(initial, after(time.Minute, end))}, {"watch 5", refusal("429 20")}, {"watch 5", hold}},
			store: "a:3", version: "5", check: at(0, 60_100, 80_500)},
		{name: "server errors", resumes: map[ResumeReason]int64{ResumeServer: 3},
			steps: []step{{"stream", events(initial+",ERROR 500", end)}, {"watch 5", refusal("503")}, {"watch 5", refusal("504large")}, {"watch 5", hold}},
			store: "a:3", version: "5"},
		{name: "servers that are behind", resumes: map[ResumeReason]int64{ResumeServer: 4, ResumeBusy: 1, ResumeEnded: 1},
			steps: []step{{"stream", events(initial, after(time.Minute, end))}, {"watch 5", refusal("504large")}, {"watch 5", events("ERROR 504large", end)},
				{"watch 5", events("BOOKMARK 6,ERROR 504large", end)}, {"watch 6", refusal("504large")}, {"watch 6", refusal("429 1")}, {"watch 6", hold}},
			store: "a:3", version: "6"},
		{name: "denied and gone resources", resumes: map[ResumeReason]int64{ResumeEnded: 1, ResumeDenied: 1, ResumeNotServed: 1},
			steps: []step{{"stream", events(initial, after(time.Minute, end))}, {"watch 5", refusal("403")}, {"watch 5", refusal("404")}, {"watch 5", hold}},
			store: "a:3", version: "5"},
		{name: "very short watches", resumes: map[ResumeReason]int64{ResumeEnded: 1, ResumeShort: 3},
			steps: []step{{"stream", events(initial, after(time.Minute, end))}, {"watch 5", end}, {"watch 5", end}, {"watch 5", end}, {"watch 5", hold}},
			store: "a:3", version: "5", check: at(0, 60_100, 60_500, 61_300, 62_900)},
		{name: "short watches that do say something", resumes: map[ResumeReason]int64{ResumeEnded: 2},
			steps: []step{{"stream", events(initial, end)}, {"watch 5", events("MODIFIED a 6", end)}, {"watch 6", hold}},
			store: "a:6", version: "6", check: at(0, 400, 1200)},
		{name: "silence", resumes: map[ResumeReason]int64{ResumeSilent: 1},
			steps: []step{{"stream", events(initial, hold)}, {"watch 5", hold}},
			store: "a:3", version: "5",
			check: func(t *testing.T, s *script, _ Stats) {
				if s.at[1] < 3*time.Minute || s.at[1] > 4*time.Minute {
					t.Errorf("replaced after %v", s.at[1])
				}
			}},
		{name: "bookmarks break the silence", resumes: map[ResumeReason]int64{ResumeEnded: 1},
			steps: []step{{"stream", events(initial, after(2*time.Minute, events("BOOKMARK 6", after(2*time.Minute, events("BOOKMARK 7", after(2*time.Minute, end))))))},
				{"watch 7", hold}},
			store: "a:3", version: "7", check: at(0, 360_100)},
		{name: "silence is allowed", opts: Options{SilenceTimeout: -1}, resumes: map[ResumeReason]int64{ResumeEnded: 1},
			steps: []step{{"stream", events(initial, after(time.Hour, end))}, {"watch 5", hold}},
			store: "a:3", version: "5", check: at(0, 3600_000)},
		{name: "an answer that does not begin", opts: Options{OpenTimeout: 10 * time.Second}, resumes: map[ResumeReason]int64{ResumeEnded: 1, ResumeRefused: 1},
			steps: []step{{"stream", events(initial, after(time.Minute, end))}, {"watch 5", hold}, {"watch 5", events("BOOKMARK 6", hold)}},
			store: "a:3", version: "6", check: at(0, 60_100, 70_500)},
		{name: "one event that cannot be decoded", resumes: map[ResumeReason]int64{ResumeDecode: 1},
			steps: []step{{"stream", events(initial+",GARBAGE", hold)}, {"watch 5", events("ADDED b 6", hold)}},
			store: "a:3 b:6", version: "6"},
		{name: "versions that are not numbers", resumes: map[ResumeReason]int64{ResumeEnded: 1},
			steps: []step{{"stream", events("ADDED a x9,END x5,MODIFIED a x2", after(time.Minute, end))}, {"watch x2", hold}},
			store: "a:x2", version: "x2"},
		{name: "events of another kind of version", opts: Options{PagedList: true}, resumes: map[ResumeReason]int64{ResumeCut: 2},
			steps: []step{{"list 0", list("5", "a 3", "b 4")}, {"watch 5", events("MODIFIED a abc,ADDED c -7", after(time.Minute, cut(0)))},
				{"watch 5", events("MODIFIED a 6,DELETED b x", after(time.Minute, cut(0)))}, {"watch 6", hold}},
			store: "a:6 c:-7", version: "6"},
		{name: "polled events of another kind of version", opts: Options{PollTimeout: 10 * time.Second},
			steps: []step{{"list 0", list("5", "a 3")}, {"watch 5", events("MODIFIED a abc", after(10*time.Second, end))}, {"watch 5", events("MODIFIED a 6", end)}, {"watch 6", hold}},
			store: "a:6", version: "6"},
		{name: "a bookmark of another kind of version", opts: Options{PagedList: true}, resumes: map[ResumeReason]int64{ResumeDecode: 1},
			steps: []step{{"list 0", list("5", "a 3")}, {"watch 5", events("BOOKMARK abc", hold)}, {"watch 5", events("ADDED b 6,BOOKMARK 7", hold)}},
			store: "a:3 b:6", version: "7", check: contactAt(400)},
		{name: "a bookmark of a number after others", opts: Options{PagedList: true}, resumes: map[ResumeReason]int64{ResumeDecode: 1},
			steps: []step{{"list 0", list("abc", "a 3")}, {"watch abc", events("BOOKMARK 1", hold)}, {"watch abc", events("BOOKMARK abd", hold)}},
			store: "a:3", version: "abd", check: contactAt(400)},
		{name: "bookmarks without a version", opts: Options{PagedList: true}, resumes: map[ResumeReason]int64{ResumeCut: 1},
			steps: []step{{"list 0", list("5", "a 3")}, {"watch 5", events("BOOKMARK 0,ADDED b 6", after(time.Minute, events("BOOKMARK 0", cut(0))))},
				{"watch 6", events("MODIFIED a 0,BOOKMARK 0", hold)}},
			store: "a:0 b:6", version: "6"},
	} {
		sc.play(t)
	}
}

func TestListingAgain(t *testing.T) {
	for _, sc := range []scenario{
		{name: "expired within the stream", lists: map[ListCause]int64{ListInitial: 1, ListExpired: 1},
			steps: []step{{"stream", events(initial+",ERROR 410", end)}, {"stream", events("ADDED b 8,END 9", hold)}},
			store: "b:8", version: "9"},
		{name: "expired as an answer", lists: map[ListCause]int64{ListInitial: 1, ListExpired: 1},
			resumes: map[ResumeReason]int64{ResumeEnded: 1},
			steps:   []step{{"stream", events(initial, after(time.Minute, end))}, {"watch 5", refusal("410")}, {"stream", events("ADDED b 8,END 9", hold)}},
			store:   "b:8", version: "9"},
		{name: "a version the server does not accept", lists: map[ListCause]int64{ListInitial: 1, ListRejected: 1},
			resumes: map[ResumeReason]int64{ResumeEnded: 1},
			steps:   []step{{"stream", events(initial, after(time.Minute, end))}, {"watch 5", refusal("400")}, {"stream", events("ADDED b 8,END 9", hold)}},
			store:   "b:8", version: "9"},
		{name: "events that cannot be decoded twice", opts: Options{PagedList: true}, lists: map[ListCause]int64{ListInitial: 1, ListDecode: 1},
			resumes: map[ResumeReason]int64{ResumeDecode: 1},
			steps: []step{{"list 0", list("5", "a 3")}, {"watch 5", events("GARBAGE", hold)}, {"watch 5", events("GARBAGE", hold)},
				{"list 5 NotOlderThan", list("8", "b 7")}, {"watch 8", hold}},
			store: "b:7", version: "8"},
		{name: "a list older than what has been seen", opts: Options{PagedList: true},
			lists:   map[ListCause]int64{ListInitial: 1, ListDecode: 1, ListRepeated: 1},
			resumes: map[ResumeReason]int64{ResumeDecode: 1},
			steps: []step{{"list 0", list("5", "a 3")}, {"watch 5", events("GARBAGE", hold)}, {"watch 5", events("GARBAGE", hold)},
				{"list 5 NotOlderThan", list("4", "old 1")}, {"list -", list("8", "b 7")}, {"watch 8", hold}},
			store: "b:7", version: "8",
			check: func(t *testing.T, _ *script, s Stats) {
				if s.Stale != 1 {
					t.Errorf("%+v", s)
				}
			}},
		{name: "events from the past are dropped, duplicates are not",
			steps: []step{{"stream", events(initial+",MODIFIED a 8,MODIFIED a 7,ADDED old 2,ADDED b 8", hold)}},
			store: "a:8 b:8", version: "8",
			check: func(t *testing.T, _ *script, s Stats) {
				if s.Stale != 2 {
					t.Errorf("%+v", s)
				}
			}},
		{name: "a server that was restored from a backup", lists: map[ListCause]int64{ListInitial: 1, ListRewound: 1},
			steps: []step{{"stream", events("ADDED a 90,END 95,BOOKMARK 20", hold)}, {"stream", events("ADDED b 15,END 21,ADDED c 22", hold)}},
			store: "b:15 c:22", version: "22"},
		{name: "another server, on a store that was restored", lists: map[ListCause]int64{ListInitial: 1, ListRewound: 1},
			resumes: map[ResumeReason]int64{ResumeEnded: 1, ResumeServer: 3},
			steps: []step{{"stream", events("ADDED a 90,END 95", after(time.Minute, end))}, {"watch 95", events("ERROR 504large", end)},
				{"watch 95", refusal("503")}, {"watch 95", events("ERROR 504large", end)}, {"watch 95", refusal("504large")}, {"stream", events("ADDED b 15,END 21,ADDED c 22", hold)}},
			store: "b:15 c:22", version: "22"},
		{name: "pages of a store that was restored", opts: Options{PagedList: true}, lists: map[ListCause]int64{ListInitial: 1, ListRewound: 1},
			resumes: map[ResumeReason]int64{ResumeServer: 2},
			steps: []step{{"list 0", list("95", "a 90")}, {"watch 95", refusal("504large")}, {"watch 95", refusal("504large")}, {"watch 95", refusal("504large")},
				{"list -", list("21", "b 15")}, {"watch 21", hold}},
			store: "b:15", version: "21"},
	} {
		sc.play(t)
	}
}

// The server is asked for five to ten minutes, at random.
func TestWatchTimeoutIsRandom(t *testing.T) {
	for random, want := range map[float64]string{0: "300", 0.5: "450", 0.999999: "599"} {
		scenario{name: want, opts: Options{Rand: func() float64 { return random }},
			steps: []step{{"stream", events(initial, hold)}}, store: "a:3", version: "5",
			check: func(t *testing.T, s *script, _ Stats) {
				if q := s.queries[0]; q.Get("timeoutSeconds") != want || q.Get("allowWatchBookmarks") != "true" {
					t.Errorf("asked for %v", q)
				}
			}}.play(t)
	}
	scenario{name: "an option", opts: Options{WatchTimeout: time.Minute, Rand: func() float64 { return 0 }},
		steps: []step{{"stream", events(initial, hold)}}, store: "a:3", version: "5",
		check: func(t *testing.T, s *script, _ Stats) {
			if got := s.queries[0].Get("timeoutSeconds"); got != "60" {
				t.Errorf("asked for %s", got)
			}
		}}.play(t)
}

// What may be listed and not watched is listed again and again.
func TestListingWhatCannotBeWatched(t *testing.T) {
	for _, code := range []string{"403", "405", "501"} {
		var reported int
		scenario{name: "refused by " + code, opts: Options{Name: "things", OnError: func(name string, _ error) {
			if name == "things" {
				reported++
			}
		}},
			steps: []step{{"stream", refusal(code)}, {"list 0", list("5", "a 3")}, {"watch 5", refusal(code)},
				{"list 5 NotOlderThan", list("8", "b 7")}, {"watch 8", refusal(code)},
				{"list 8 NotOlderThan", refusal("503")}, {"stream", refusal(code)},
				{"list 8 NotOlderThan", list("9", "b 7", "c 9")}, {"watch 9", events("ADDED d 10", hold)}},
			store: "b:7 c:9 d:10", version: "10", lists: map[ListCause]int64{ListInitial: 1, ListUnwatched: 2, ListRepeated: 1},
			check: func(t *testing.T, s *script, stats Stats) {
				if reported != 3 || stats.LastError != nil {
					t.Errorf("reported %d errors, the last is %v", reported, stats.LastError)
				}
				reported = 0
				at(0, 0, 0, 400, 400, 1200, 2800, 2800, 2800)(t, s, stats)
			}}.play(t)
	}
	for _, sc := range []scenario{
		{name: "of pages", opts: Options{PagedList: true},
			steps: []step{{"list 0", list("5", "a 3")}, {"watch 5", refusal("403")}, {"list 5 NotOlderThan", list("8", "b 7")}, {"watch 8", hold}},
			store: "b:7", version: "8", lists: map[ListCause]int64{ListInitial: 1, ListUnwatched: 1}},
		{name: "by polling", opts: Options{PollTimeout: 10 * time.Second},
			steps: []step{{"list 0", list("5", "a 3")}, {"watch 5", refusal("403")}, {"list 5 NotOlderThan", list("8", "b 7")}, {"watch 8", hold}},
			store: "b:7", version: "8", lists: map[ListCause]int64{ListInitial: 1, ListUnwatched: 1}},
		{name: "from disk", opts: Options{ResumeFrom: "40"},
			steps: []step{{"watch 40", refusal("403")}, {"list 40 NotOlderThan", list("50", "b 7")}, {"watch 50", hold}},
			store: "b:7", version: "50", lists: map[ListCause]int64{ListUnwatched: 1}},
		{name: "if a proxy says so, it is not listed at first", opts: Options{PagedList: true},
			steps: []step{{"list 0", list("5", "a 3")}, {"watch 5", page(403)}, {"watch 5", page(405)}, {"watch 5", hold}},
			store: "a:3", version: "5", resumes: map[ResumeReason]int64{ResumeDenied: 2}},
		{name: "what was watched for a while, and then is refused for a minute", opts: Options{PagedList: true},
			steps: join([]step{{"list 0", list("5", "a 3")}, {"watch 5", events("MODIFIED a 6", after(time.Minute, end))}}, times(10, step{"watch 6", refusal("403")}),
				[]step{{"list 6 NotOlderThan", list("8", "b 7")}, {"watch 8", refusal("403")}, {"list 8 NotOlderThan", list("9", "c 9")}, {"watch 9", hold}}),
			store: "c:9", version: "9", lists: map[ListCause]int64{ListInitial: 1, ListUnwatched: 2}, resumes: map[ResumeReason]int64{ResumeEnded: 1, ResumeDenied: 9}},
		{name: "watches in between", opts: Options{PagedList: true},
			steps: join([]step{{"list 0", list("5", "a 3")}, {"watch 5", events("MODIFIED a 6", after(time.Minute, end))}}, times(9, step{"watch 6", refusal("403")}),
				[]step{{"watch 6", events("", after(time.Minute, end))}}, times(4, step{"watch 6", refusal("403")}), []step{{"watch 6", hold}}),
			store: "a:6", version: "6", any: true, check: func(t *testing.T, _ *script, s Stats) {
				if s.Lists[ListUnwatched] != 0 {
					t.Errorf("%+v", s)
				}
			}},
		{name: "what has been watched is not listed", opts: Options{PagedList: true},
			steps: []step{{"list 0", list("5", "a 3")}, {"watch 5", events("", after(time.Minute, end))}, {"watch 5", refusal("403")}, {"watch 5", refusal("403")}, {"watch 5", hold}},
			store: "a:3", version: "5", resumes: map[ResumeReason]int64{ResumeEnded: 1, ResumeDenied: 2}},
	} {
		sc.play(t)
	}
}

// Where something else than the server answers each request for a watch, and never one for a
// list, lists stand for the watch, too: once that is believed, after each answer.
func TestListingWhatSomethingElseRefusesToWatch(t *testing.T) {
	for name, other := range map[string]answer{"403": page(403), "405": page(405), "501": page(501), "a page": page(200),
		"no text": func(_ *script, w http.ResponseWriter, _ *http.Request) {
			w.Header().Del("Content-Type")
			w.WriteHeader(http.StatusMethodNotAllowed)
		}} {
		scenario{name: name, opts: Options{PagedList: true}, any: true,
			steps: join([]step{{"list 0", list("5", "a 3")}}, times(5, step{"watch 5", other}),
				[]step{{"list 5 NotOlderThan", list("8", "b 7")}, {"watch 8", other}, {"list 8 NotOlderThan", list("9", "c 9")},
					{"watch 9", events("", after(time.Minute, end))}}, times(3, step{"watch 9", other}), []step{{"watch 9", hold}}),
			store: "c:9", version: "9", check: func(t *testing.T, _ *script, s Stats) {
				if s.Lists[ListUnwatched] != 2 {
					t.Errorf("%+v", s)
				}
			}}.play(t)
		scenario{name: name + ", and the server in between", opts: Options{PagedList: true}, any: true,
			steps: join([]step{{"list 0", list("5", "a 3")}}, times(4, step{"watch 5", other}), []step{{"watch 5", end}}, times(4, step{"watch 5", other}), []step{{"watch 5", hold}}),
			store: "a:3", version: "5"}.play(t)
	}
}

// TestWithdrawnRight: a watch that the server ends for want of a right is resumed when the
// right is back, without a list, however short it was and whether it had events or not. The
// waits grow meanwhile.
func TestWithdrawnRight(t *testing.T) {
	lists := map[ListCause]int64{ListInitial: 1}
	for _, sc := range []scenario{
		{name: "at once", steps: []step{{"list 0", list("5", "a 3")}, {"watch 5", events("ERROR 403withdrawn", end)},
			{"watch 5", refusal("403")}, {"watch 5", refusal("403")}, {"watch 5", events("ADDED b 6", hold)}},
			store: "a:3 b:6", version: "6", resumes: map[ResumeReason]int64{ResumeDenied: 3},
			check: at(0, 0, 400, 1200, 2800)},
		{name: "after a quiet minute, by a server that says no more than 403",
			steps: []step{{"list 0", list("5", "a 3")}, {"watch 5", events("", after(time.Minute, events("ERROR 403", end)))},
				{"watch 5", refusal("403")}, {"watch 5", hold}},
			store: "a:3", version: "5", resumes: map[ResumeReason]int64{ResumeDenied: 2}},
		{name: "after an event",
			steps: []step{{"list 0", list("5", "a 3")}, {"watch 5", events("ADDED b 6,ERROR 403", end)},
				{"watch 6", refusal("403")}, {"watch 6", hold}},
			store: "a:3 b:6", version: "6", resumes: map[ResumeReason]int64{ResumeDenied: 2}},
	} {
		sc.opts.PagedList, sc.lists = true, lists
		sc.play(t)
	}
	scenario{name: "of a streaming list", steps: []step{{"stream", events("ADDED a 3,END 5,ERROR 403withdrawn", end)},
		{"watch 5", refusal("403")}, {"watch 5", hold}},
		store: "a:3", version: "5", resumes: map[ResumeReason]int64{ResumeDenied: 2}, lists: lists}.play(t)
	scenario{name: "a refusal at once is none", opts: Options{PagedList: true},
		steps: []step{{"list 0", list("5", "a 3")}, {"watch 5", events("ERROR 403", end)}, {"list 5 NotOlderThan", list("8", "b 7")}, {"watch 8", hold}},
		store: "b:7", version: "8", lists: map[ListCause]int64{ListInitial: 1, ListUnwatched: 1}}.play(t)
}

// Versions may have up to 128 bits (KEP-5504), and apimachinery compares longer ones, too: they are
// followed, compared and sent back as others are.
func TestLongVersions(t *testing.T) {
	for _, digits := range []string{"99999999999999999999999999", "340282366920938463463374607431768211455", strings.Repeat("7", 60)} {
		long := func(last string) string { return digits[:len(digits)-1] + last }
		for name, sc := range map[string]scenario{
			"a list and events": {steps: []step{{"list 0", list(long("1"), "a "+long("0"))}, {"watch " + long("1"), events("ADDED b "+long("3")+",MODIFIED a "+long("4")+",BOOKMARK "+long("5"), end)},
				{"watch " + long("5"), hold}}, store: "a:" + long("4") + " b:" + long("3"), version: long("5")},
			"a bookmark after a short one": {steps: []step{{"list 0", list("5", "a 3")}, {"watch 5", events("BOOKMARK "+long("5"), end)}, {"watch " + long("5"), hold}},
				store: "a:3", version: long("5")},
			"an event that is older": {steps: []step{{"list 0", list(long("5"), "a "+long("5"))}, {"watch " + long("5"), events("MODIFIED a "+long("4"), hold)}},
				store: "a:" + long("5"), version: long("5")},
			"a list that is older": {steps: []step{{"list 0", list(long("5"), "a 3")}, {"watch " + long("5"), refusal("400")}, {"list -", list(long("4"), "a 3")}, {"watch " + long("4"), hold}},
				store: "a:3", version: long("4")},
			// A server that has said it once by mistake goes back, as far as one can tell.
			"a bookmark before shorter versions": {steps: []step{{"list 0", list("5", "a 3")}, {"watch 5", events("BOOKMARK "+long("5")+",BOOKMARK 7", end)},
				{"list -", list("8", "b 7")}, {"watch 8", hold}}, store: "b:7", version: "8"},
		} {
			sc.name, sc.opts, sc.any = fmt.Sprintf("%s of %d digits", name, len(digits)), Options{PagedList: true}, true
			sc.play(t)
		}
	}
}
