package reflector

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// contactAt checks when the store was last known to be complete, in milliseconds since the start.
func contactAt(ms int64) func(*testing.T, *script, Stats) {
	return func(t *testing.T, s *script, stats Stats) {
		t.Helper()
		if got := stats.LastContact.Sub(s.start).Milliseconds(); got != ms {
			t.Errorf("last contact after %d ms, want %d; requests %v", got, ms, s.at)
		}
	}
}

func inStreamError(object string) answer {
	return raw(`{"type":"ERROR","object":` + object + "}\n")
}

// What a server sends after one version, and the client cannot read, ends in a list after
// the second time.
func TestWatchesThatCannotBeRead(t *testing.T) {
	for name, bad := range map[string]answer{
		"an event over the limit": raw(fmt.Sprintf(`{"type":"ADDED","object":{"metadata":{"name":"b","resourceVersion":"6","annotations":{"x":%q}}}}`, strings.Repeat("y", 100<<10))),
		"an empty error":          inStreamError(`{}`),
		"no error":                inStreamError(`null`),
		"an object as an error":   inStreamError(`{"kind":"ConfigMap","metadata":{"name":"a"}}`),
		"a text as an error":      inStreamError(`"broken"`),
		"a Status without a code": inStreamError(`{"kind":"Status","status":"Failure","message":"too old resource version: 5 (50)"}`),
		"a code that is a text":   inStreamError(`{"kind":"Status","status":"Failure","code":"500"}`),
		"another apiVersion":      raw(`{"type":"ADDED","object":{"kind":"ConfigMap","apiVersion":"example.com/v1","metadata":{"name":"b","resourceVersion":"6"}}}`),
		"a bookmark of another":   raw(`{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"example.com/v1","metadata":{"resourceVersion":"6"}}}`),
		"an unknown type":         raw(`{"type":"SYNC","object":{"metadata":{"name":"a"}}}`),
		"no type":                 raw(`{"object":{"metadata":{"name":"a"}}}`),
		"no object":               raw(`{"type":"ADDED"}`),
		"text":                    raw("maintenance"),
	} {
		bad := step{"watch 5", bad}
		begin := step{"list 0", list("5", "a 3")}
		pages := Options{PagedList: true}
		scenario{name: name, opts: pages, maxFrame: 64 << 10,
			steps: []step{begin, bad, bad, {"list 5 NotOlderThan", list("8", "b 7")}, {"watch 8", hold}},
			store: "b:7", version: "8", lists: map[ListCause]int64{ListInitial: 1, ListDecode: 1}, resumes: map[ResumeReason]int64{ResumeDecode: 1},
			check: contactAt(1200)}.play(t)
		scenario{name: name + ", once", opts: pages, maxFrame: 64 << 10,
			steps: []step{begin, bad, {"watch 5", events("ADDED b 6", hold)}},
			store: "a:3 b:6", version: "6", resumes: map[ResumeReason]int64{ResumeDecode: 1}, check: contactAt(400)}.play(t)
		scenario{name: name + ", and a refusal in between", opts: pages, maxFrame: 64 << 10,
			steps: []step{begin, bad, {"watch 5", refusal("503")}, bad, {"list 5 NotOlderThan", list("8", "b 7")}, {"watch 8", hold}},
			store: "b:7", version: "8", lists: map[ListCause]int64{ListInitial: 1, ListDecode: 1}, resumes: map[ResumeReason]int64{ResumeDecode: 1, ResumeServer: 1}}.play(t)
		// A list of the same version, of a replica that lags, say, teaches nothing.
		scenario{name: name + ", and a list that does not help", opts: pages, maxFrame: 64 << 10,
			steps: []step{begin, bad, bad, {"list 5 NotOlderThan", list("5", "a 3")}, bad, bad, {"list -", list("5", "a 3")}, {"watch 5", hold}},
			store: "a:3", version: "5", lists: map[ListCause]int64{ListInitial: 1, ListDecode: 2}, resumes: map[ResumeReason]int64{ResumeDecode: 2},
			check: contactAt(0)}.play(t)
		scenario{name: name + " among the initial events", maxFrame: 64 << 10,
			steps: []step{{"stream", bad.answer}, {"stream", bad.answer}, {"stream", bad.answer}, {"list -", list("5", "a 3")}, {"watch 5", hold}},
			store: "a:3", version: "5", lists: map[ListCause]int64{ListInitial: 1, ListRepeated: 2}}.play(t)
		scenario{name: name + " in answers to polls", opts: Options{PollTimeout: 10 * time.Second}, maxFrame: 64 << 10,
			steps: []step{begin, bad, bad, {"list 5 NotOlderThan", list("8", "b 7")}, {"watch 8", hold}},
			store: "b:7", version: "8", lists: map[ListCause]int64{ListInitial: 1, ListDecode: 1}, resumes: map[ResumeReason]int64{ResumeDecode: 1}}.play(t)
	}
	scenario{name: "a list over the limit", opts: Options{PagedList: true}, maxFrame: 64 << 10,
		steps:   []step{{"list 0", list("5", strings.Repeat("y", 100<<10)+" 3")}, {"list 0", list("6")}, {"watch 6", hold}},
		version: "6", lists: map[ListCause]int64{ListInitial: 1, ListRepeated: 1}, check: contactAt(400)}.play(t)
	scenario{name: "an error that has only a reason", opts: Options{PagedList: true},
		steps:   []step{{"list 0", list("5", "a 3")}, {"watch 5", inStreamError(`{"kind":"Status","reason":"Expired"}`)}, {"list -", list("8")}, {"watch 8", hold}},
		version: "8", lists: map[ListCause]int64{ListInitial: 1, ListExpired: 1}}.play(t)
}

// Watches that are opened and fail at once, from one version, end in a list after the fifth
// time. An opened watch is no sign that the store is complete.
func TestWatchesThatFailAtOnce(t *testing.T) {
	begin := step{"list 0", list("5", "a 3")}
	dropped := events("", after(time.Millisecond, cut(0))) // when the client has the answer's header
	relisted := map[ListCause]int64{ListInitial: 1, ListStuck: 1}
	for _, test := range []struct {
		name    string
		answer  answer
		resumes map[ResumeReason]int64
		more    int // times; streams that break off must do so for a minute
	}{
		{"with the same error", events("ERROR 500", end), map[ResumeReason]int64{ResumeServer: 4}, 0},
		{"with the same error after a while", after(3*time.Second, events("ERROR 500", end)), map[ResumeReason]int64{ResumeServer: 4}, 0},
		{"with the same conflict", events("ERROR 409", end), map[ResumeReason]int64{ResumeDenied: 4}, 0},
		{"with the same 401", events("ERROR 401", end), map[ResumeReason]int64{ResumeDenied: 4}, 0},
		{"with the same 404", events("ERROR 404", end), map[ResumeReason]int64{ResumeNotServed: 4}, 0},
		{"with a 404 that has only a reason", inStreamError(`{"kind":"Status","status":"Failure","reason":"NotFound"}`), map[ResumeReason]int64{ResumeNotServed: 4}, 0},
		{"with an old event and the same 403", events("MODIFIED a 2,ERROR 403", end), map[ResumeReason]int64{ResumeDenied: 4}, 0},
		{"for want of a right each time", events("ERROR 403withdrawn", end), map[ResumeReason]int64{ResumeDenied: 4}, 0},
		{"with success", inStreamError(`{"kind":"Status","status":"Success","code":200}`), map[ResumeReason]int64{ResumeServer: 4}, 0},
		{"as busy", events("ERROR 429", end), map[ResumeReason]int64{ResumeBusy: 9}, 5},
		{"empty", end, map[ResumeReason]int64{ResumeShort: 4}, 0},
		{"cut", dropped, map[ResumeReason]int64{ResumeCut: 9}, 5},
		{"with an old event", events("MODIFIED a 2", end), map[ResumeReason]int64{ResumeEnded: 4}, 0},
		{"with an event that breaks off", raw(`{"type":"ADDED","obj`), map[ResumeReason]int64{ResumeCut: 9}, 5},
	} {
		bad := step{"watch 5", test.answer}
		scenario{name: test.name, opts: Options{PagedList: true},
			steps: join([]step{begin}, times(5+test.more, bad), []step{{"list -", list("8", "b 7")}, {"watch 8", hold}}),
			store: "b:7", version: "8", lists: relisted, resumes: test.resumes}.play(t)
		scenario{name: test.name + ", and once more", opts: Options{PagedList: true},
			steps: join([]step{begin}, times(4, bad), []step{{"watch 5", events("MODIFIED a 6", end)}, {"watch 6", test.answer}, {"watch 6", hold}}),
			store: "a:6", version: "6", any: true}.play(t)
	}
	// A request for a watch that is answered with an error within the server, again and
	// again, ends in a list that may be of any state; other errors never do.
	refused := func(n int, answers ...answer) (steps []step) {
		for i := range n {
			steps = append(steps, step{"watch 5", answers[i%len(answers)]})
		}
		return steps
	}
	scenario{name: "refused", opts: Options{PagedList: true},
		steps: join([]step{begin}, refused(5, refusal("500")), []step{{"list 5 NotOlderThan", list("8", "b 7")}, {"watch 8", hold}}),
		store: "b:7", version: "8", lists: relisted, resumes: map[ResumeReason]int64{ResumeServer: 4}}.play(t)
	scenario{name: "refused, and a list of the same version", opts: Options{PagedList: true},
		steps: join([]step{begin}, refused(5, refusal("500")), []step{{"list 5 NotOlderThan", list("5", "a 3")}}, refused(5, refusal("500")),
			[]step{{"list -", list("5", "a 3")}, {"watch 5", hold}}),
		store: "a:3", version: "5", any: true, check: contactAt(0)}.play(t)
	scenario{name: "refused in between", opts: Options{PagedList: true},
		steps: join([]step{begin}, refused(4, refusal("500"), end), []step{{"watch 5", refusal("500")}, {"list 5 NotOlderThan", list("8", "b 7")}, {"watch 8", hold}}),
		store: "b:7", version: "8", any: true}.play(t)
	scenario{name: "refused by others", opts: Options{PagedList: true},
		steps: join([]step{begin}, refused(40, refusal("502"), refusal("503"), refusal("429"), refusal("401"), page(500)), []step{{"watch 5", hold}}),
		store: "a:3", version: "5", any: true}.play(t)
	scenario{name: "lists that are refused", opts: Options{PagedList: true},
		steps: join(times(12, step{"list 0", refusal("500")}), []step{{"list 0", list("5", "a 3")}}, refused(4, refusal("500")), []step{{"watch 5", hold}}),
		store: "a:3", version: "5", any: true}.play(t)
	scenario{name: "nothing was learned", opts: Options{PagedList: true},
		steps: join([]step{begin}, times(4, step{"watch 5", end}), []step{{"watch 5", hold}}),
		store: "a:3", version: "5", resumes: map[ResumeReason]int64{ResumeShort: 4}, check: contactAt(0)}.play(t)
	scenario{name: "a list of the same version", opts: Options{PagedList: true},
		steps: join([]step{begin}, times(5, step{"watch 5", events("ERROR 500", end)}), []step{{"list -", list("5", "a 3")}, {"watch 5", hold}}),
		store: "a:3", version: "5", lists: relisted, resumes: map[ResumeReason]int64{ResumeServer: 4}, check: contactAt(0)}.play(t)
	scenario{name: "different errors", opts: Options{PagedList: true},
		steps: []step{begin, {"watch 5", end}, {"watch 5", events("ERROR 500", end)}, {"watch 5", dropped}, {"watch 5", events("BOOKMARK 5,ERROR 503", end)}, {"watch 5", end},
			{"list -", list("8", "b 7")}, {"watch 8", hold}},
		store: "b:7", version: "8", lists: relisted, any: true}.play(t)
	scenario{name: "steady watches between them", opts: Options{PagedList: true},
		steps: join([]step{begin}, times(4, step{"watch 5", end}), []step{{"watch 5", events("", after(time.Minute, events("ERROR 500", end)))}},
			times(4, step{"watch 5", end}), []step{{"watch 5", hold}}),
		store: "a:3", version: "5", any: true}.play(t)
}

func TestLastContact(t *testing.T) {
	const began = 0
	begin := step{"list 0", list("5", "a 3")}
	scenario{name: "an event without a version after a while", opts: Options{PagedList: true},
		steps: []step{begin, {"watch 5", events("", after(20*time.Second, events("MODIFIED a -", after(time.Second, cut(0)))))}, {"watch 5", hold}},
		store: "a:", version: "5", any: true, check: contactAt(20_000)}.play(t)
	for _, sc := range []scenario{
		{name: "an opened watch teaches nothing at first", opts: Options{PagedList: true},
			steps: []step{begin, {"watch 5", events("", after(20*time.Second, cut(0)))}, {"watch 5", hold}}, check: contactAt(began)},
		{name: "streams that begin with what was there", opts: Options{PagedList: true},
			steps: []step{begin, {"watch 5", events("BOOKMARK 5", cut(0))}, {"watch 5", events("BOOKMARK 5", cut(0))}, {"watch 5", hold}}, check: contactAt(began)},
		{name: "streams that begin with it twice", opts: Options{PagedList: true},
			steps: join([]step{begin}, times(5, step{"watch 5", events("BOOKMARK 5,BOOKMARK 5,ERROR 500", end)}), []step{{"list -", list("5", "a 3")}, {"watch 5", hold}}), check: contactAt(began)},
		{name: "streams that begin with an old event and a bookmark", opts: Options{PagedList: true},
			steps: join([]step{begin}, times(2, step{"watch 5", events("MODIFIED a 2,BOOKMARK 5,GARBAGE", end)}), []step{{"list 5 NotOlderThan", list("5", "a 3")}, {"watch 5", hold}}), check: contactAt(began)},
		{name: "streams that begin with an event without a version", opts: Options{PagedList: true},
			steps: join([]step{begin}, times(2, step{"watch 5", events("MODIFIED a -,GARBAGE", end)}), []step{{"list 5 NotOlderThan", list("5", "a 3")}, {"watch 5", hold}}), check: contactAt(began)},
		{name: "streams that begin with an event of another kind of version", opts: Options{PagedList: true},
			steps: join([]step{begin}, times(2, step{"watch 5", events("MODIFIED a x,GARBAGE", end)}), []step{{"list 5 NotOlderThan", list("5", "a 3")}, {"watch 5", hold}}), check: contactAt(began)},
		{name: "a watch that was quiet for long enough", opts: Options{PagedList: true},
			steps: []step{begin, {"watch 5", events("", after(20*time.Second, end))}, {"watch 5", events("", after(40*time.Second, end))}, {"watch 5", hold}}, check: contactAt(20_100)},
		{name: "silence", opts: Options{PagedList: true},
			steps: []step{begin, {"watch 5", events("", after(20*time.Second, end))}, {"watch 5", events("", hold)}, {"watch 5", hold}}, check: contactAt(20_100)},
		{name: "a bookmark", opts: Options{PagedList: true},
			steps: []step{begin, {"watch 5", events("", after(20*time.Second, events("BOOKMARK 5", after(time.Second, cut(0)))))}, {"watch 5", hold}}, check: contactAt(20_000)},
		{name: "events that are dropped", opts: Options{PagedList: true},
			steps: []step{begin, {"watch 5", events("", after(20*time.Second, events("MODIFIED a 2", after(time.Second, cut(0)))))}, {"watch 5", hold}}, check: contactAt(began)},
		{name: "lists that fail", opts: Options{PagedList: true},
			steps: []step{begin, {"watch 5", after(20*time.Second, events("ERROR 410", end))}, {"list -", list("")}, {"list -", list("7 c1", "a 3")}, {"list - c1", refusal("500")}, {"list -", hold}}, any: true, check: contactAt(began)},
		{name: "polls that find nothing", opts: Options{PollTimeout: 10 * time.Second},
			steps: []step{begin, {"watch 5", after(10*time.Second, end)}, {"watch 5", hold}}, check: contactAt(10_000)},
		{name: "polls that fail", opts: Options{PollTimeout: 10 * time.Second},
			steps: []step{begin, {"watch 5", hold}, {"watch 5", hold}}, check: contactAt(began)},
	} {
		sc.store, sc.version, sc.any = "a:3", "5", true
		sc.play(t)
	}
}
