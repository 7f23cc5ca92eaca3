package reflector

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// slowly writes a text in so many parts, and waits before each but the first. Then it does
// what comes last.
func slowly(text string, parts int, wait time.Duration, last answer) answer {
	return func(s *script, w http.ResponseWriter, r *http.Request) {
		for n := range parts {
			if n > 0 {
				select {
				case <-time.After(wait):
				case <-r.Context().Done():
					return
				}
			}
			_, _ = io.WriteString(w, text[len(text)*n/parts:len(text)*(n+1)/parts])
			_ = http.NewResponseController(w).Flush()
		}
		last(s, w, r)
	}
}

// What arrives more slowly than SilenceTimeout, ListTimeout or InitialEventsTimeout, and arrives,
// is used.
func TestSlowAnswers(t *testing.T) {
	begin := step{"list 0", list("5", "a 3")}
	slowEvent := slowly(event("ADDED b 6")+"\n", 15, 30*time.Second, hold)
	pages := Options{PagedList: true}
	none := map[ResumeReason]int64{}
	for _, sc := range []scenario{
		{name: "an event", opts: pages, steps: []step{begin, {"watch 5", slowEvent}}, store: "a:3 b:6", version: "6", resumes: none, check: contactAt(0)},
		{name: "an event behind another", opts: pages,
			steps: []step{begin, {"watch 5", events("MODIFIED a 6", slowly(event("ADDED b 7")+"\n", 15, 30*time.Second, hold))}},
			store: "a:6 b:7", version: "7", resumes: none, check: contactAt(0)},
		{name: "an event after a quiet while", opts: pages,
			steps: []step{begin, {"watch 5", events("", after(2*time.Minute, slowly(event("ADDED b 6")+"\n", 10, 30*time.Second, hold)))}},
			store: "a:3 b:6", version: "6", resumes: none, check: contactAt(120_000)},
		{name: "an event, again after a cut", opts: pages,
			steps: []step{begin, {"watch 5", slowly(event("ADDED b 6")[:40], 9, 30*time.Second, cut(0))}, {"watch 5", slowEvent}},
			store: "a:3 b:6", version: "6", resumes: map[ResumeReason]int64{ResumeCut: 1}},
		{name: "an error", opts: pages,
			steps:   []step{begin, {"watch 5", slowly(event("ERROR 410"), 9, 30*time.Second, end)}, {"list -", list("8")}, {"watch 8", hold}},
			version: "8", any: true},
		{name: "an initial event", steps: []step{{"stream", slowly(event("ADDED b 6")+"\n", 20, 20*time.Second, events("END 7", hold))}},
			store: "b:6", version: "7", resumes: none},
		{name: "a page", opts: pages, steps: []step{{"list 0", slowList("5", 15)}, {"watch 5", hold}}, store: "a:3", version: "5", resumes: none, check: contactAt(0)},
		{name: "a later page", opts: pages,
			steps: []step{{"list 0", list("5 c1", "A 3")}, {"list - c1", slowList("5", 15)}, {"watch 5", hold}}, store: "A:3 a:3", version: "5", resumes: none},
		{name: "an event in a poll that breaks off later", opts: Options{PollTimeout: 10 * time.Second},
			steps: []step{begin, {"watch 5", events("ADDED b 6", slowly(event("ADDED c 7")[:40], 15, 9*time.Second, hold))}, {"watch 6", hold}},
			store: "a:3 b:6", version: "6", any: true, check: contactAt(0)},
		{name: "an event in a poll", opts: Options{PollTimeout: 10 * time.Second},
			steps: []step{begin, {"watch 5", slowly(event("ADDED b 6")+"\n", 15, 9*time.Second, end)}, {"watch 6", hold}}, store: "a:3 b:6", version: "6", resumes: none},
	} {
		sc.play(t)
	}
}

func slowList(version string, parts int) answer {
	return slowly(`{"kind":"ConfigMapList","metadata":{"resourceVersion":"`+version+`"},"items":[`+object("a", "3")+`]}`, parts, 30*time.Second, end)
}

// What comes drop by drop, or stops in the middle, ends, and is no sign that the store is
// complete. At one version it is tried twice, and then listed.
func TestAnswersThatDoNotEnd(t *testing.T) {
	begin := step{"list 0", list("5", "a 3")}
	text := event("ADDED b 6")
	drip := slowly(text[:60], 60, time.Minute, hold)
	half := slowly(text[:60], 1, 0, hold)
	behind := slowly(event("BOOKMARK 5")+"\n"+text[:60], 1, 0, hold)
	relisted := map[ListCause]int64{ListInitial: 1, ListStuck: 1}
	pages := Options{PagedList: true}
	for name, answer := range map[string]answer{"drop by drop": drip, "by half": half, "behind a bookmark": behind} {
		slow := step{"watch 5", answer}
		scenario{name: "an event " + name, opts: pages,
			steps: []step{begin, slow, slow, {"list 5 NotOlderThan", list("8", "b 7")}, {"watch 8", hold}},
			store: "b:7", version: "8", lists: relisted, resumes: map[ResumeReason]int64{ResumeSilent: 1}}.play(t)
		scenario{name: "an event " + name + ", and a list that does not help", opts: pages,
			steps: []step{begin, slow, slow, {"list 5 NotOlderThan", list("5", "a 3")}, slow, slow, {"list -", list("5", "a 3")}, {"watch 5", hold}},
			store: "a:3", version: "5", lists: map[ListCause]int64{ListInitial: 1, ListStuck: 2}, resumes: map[ResumeReason]int64{ResumeSilent: 2},
			check: contactBefore(time.Second)}.play(t)
		scenario{name: "an event " + name + ", and another in between", opts: pages,
			steps: []step{begin, slow, {"watch 5", events("MODIFIED a 6", end)}, {"watch 6", drip}, {"watch 6", hold}},
			store: "a:6", version: "6", any: true}.play(t)
		scenario{name: "an event in a poll " + name, opts: Options{PollTimeout: 10 * time.Second},
			steps: []step{begin, slow, slow, {"list 5 NotOlderThan", list("8", "b 7")}, {"watch 8", hold}},
			store: "b:7", version: "8", any: true}.play(t)
		scenario{name: "an initial event " + name, steps: []step{{"stream", answer}, {"list 0", list("5", "a 3")}, {"watch 5", hold}},
			store: "a:3", version: "5"}.play(t)
	}
	spaces := strings.Repeat("\n", 60)
	scenario{name: "white space between events", opts: pages,
		steps: []step{begin, {"watch 5", slowly(spaces, 60, time.Minute, hold)}, {"watch 5", hold}},
		store: "a:3", version: "5", resumes: map[ResumeReason]int64{ResumeSilent: 1}}.play(t)
	scenario{name: "a page drop by drop", opts: pages,
		steps: []step{{"list 0", slowly(spaces, 60, time.Minute, hold)}, {"list 0", list("5", "a 3")}, {"watch 5", hold}},
		store: "a:3", version: "5", lists: map[ListCause]int64{ListInitial: 1, ListRepeated: 1}, check: endedBetween(1, 8*time.Minute, 10*time.Minute)}.play(t)
	scenario{name: "half a page", opts: pages,
		steps: []step{{"list 0", slowly(spaces, 1, 0, hold)}, {"list 0", list("5", "a 3")}, {"watch 5", hold}},
		store: "a:3", version: "5", lists: map[ListCause]int64{ListInitial: 1, ListRepeated: 1}, check: endedBetween(1, 2*time.Minute, 3*time.Minute)}.play(t)
}

// contactBefore checks that nothing was learned after a moment since the start.
func contactBefore(d time.Duration) func(*testing.T, *script, Stats) {
	return func(t *testing.T, s *script, stats Stats) {
		t.Helper()
		if got := stats.LastContact.Sub(s.start); got > d {
			t.Errorf("last contact after %v; requests %v", got, s.at)
		}
	}
}

// endedBetween checks when a request followed the one before it.
func endedBetween(n int, least, most time.Duration) func(*testing.T, *script, Stats) {
	return func(t *testing.T, s *script, _ Stats) {
		t.Helper()
		if at := s.at[n] - s.at[n-1]; at < least || at > most {
			t.Errorf("request %d came %v after the one before it", n+1, at)
		}
	}
}
