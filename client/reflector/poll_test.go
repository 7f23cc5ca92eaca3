package reflector

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPolling(t *testing.T) {
	polling := Options{PollTimeout: 10 * time.Second}
	var many []string
	for i := range maxPolled + 10 {
		many = append(many, fmt.Sprint("MODIFIED a ", 6+i))
	}
	middle, last := fmt.Sprint(5+maxPolled), fmt.Sprint(5+len(many))
	for _, sc := range []scenario{
		{name: "each answer begins where the last ended", opts: polling,
			steps: []step{{"list 0", list("5", "a 3")},
				{"watch 5", events("ADDED b 6,BOOKMARK 8", after(10*time.Second, end))},
				{"watch 8", after(10*time.Second, end)},
				{"watch 8", events("MODIFIED a 9,DELETED b 10", after(10*time.Second, end))},
				{"watch 10", hold}},
			store: "a:9", version: "10",
			check: func(t *testing.T, s *script, stats Stats) {
				if stats.Polls != 4 || stats.Watches != 1 || stats.PagedLists != 1 || stats.Events != 3 || stats.Bookmarks != 1 {
					t.Errorf("%+v", stats)
				}
				for _, q := range s.queries[1:] {
					if q.Get("timeoutSeconds") != "10" || q.Get("allowWatchBookmarks") != "true" {
						t.Errorf("polled with %v", q)
					}
				}
				at(0, 0, 10_000, 20_000, 30_000)(t, s, stats)
			}},
		{name: "an expired resourceVersion", opts: polling,
			steps: []step{{"list 0", list("5")}, {"watch 5", events("ADDED a 6,ERROR 410", end)},
				{"list -", list("9", "c 7")}, {"watch 9", hold}},
			store: "c:7", version: "9", lists: map[ListCause]int64{ListInitial: 1, ListExpired: 1}},
		{name: "what came before a cut is kept", opts: polling,
			steps: []step{{"list 0", list("5")}, {"watch 5", events("ADDED a 6", after(time.Second, cut(0)))}, {"watch 6", hold}},
			store: "a:6", version: "6", resumes: map[ResumeReason]int64{ResumeCut: 1}},
		{name: "a refusal", opts: polling,
			steps:   []step{{"list 0", list("5")}, {"watch 5", refusal("429 3")}, {"watch 5", hold}},
			version: "5", resumes: map[ResumeReason]int64{ResumeBusy: 1}, check: at(0, 0, 3400)},
		{name: "a server that does not wait is not asked in a loop", opts: polling,
			steps: []step{{"list 0", list("5")}, {"watch 5", end}, {"watch 5", end}, {"watch 5", hold}}, version: "5",
			resumes: map[ResumeReason]int64{ResumeShort: 2}, check: at(0, 0, 400, 1200)},
		{name: "nor one that repeats what is known", opts: polling,
			steps: []step{{"list 0", list("5", "a 3")}, {"watch 5", events("BOOKMARK 5", end)}, {"watch 5", events("BOOKMARK 0,BOOKMARK 0", end)},
				{"watch 5", events("BOOKMARK 5", end)}, {"watch 5", events("MODIFIED a 2", end)}, {"watch 5", events("MODIFIED a 2,ADDED b 6", end)}, {"watch 6", hold}},
			store: "a:3 b:6", version: "6", any: true, check: at(0, 0, 400, 1200, 2800, 6000, 7000), getter: true},
		{name: "nor one that answers with each change", opts: polling,
			steps: []step{{"list 0", list("5")}, {"watch 5", events("ADDED a 6", end)}, {"watch 6", events("MODIFIED a 7", after(300*time.Millisecond, end))},
				{"watch 7", events("MODIFIED a 8", after(2*time.Second, end))}, {"watch 8", hold}},
			store: "a:8", version: "8", check: at(0, 0, 1000, 2000, 4000)},
		{name: "nor one that has more to repeat than is held", opts: polling,
			steps: join([]step{{"list 0", list("5", "a 3")}}, times(5, step{"watch 5", events(strings.Repeat("MODIFIED a 2,", maxPolled+10), end)}), []step{{"list -", list("8", "b 7")}, {"watch 8", hold}}),
			store: "b:7", version: "8", any: true, check: at(0, 0, 400, 1200, 2800, 6000, 12400, 12400), getter: true},
		{name: "an answer that does not come", opts: polling,
			steps: []step{{"list 0", list("5")}, {"watch 5", hold}, {"watch 5", hold}}, version: "5",
			resumes: map[ResumeReason]int64{ResumeCut: 1}, check: at(0, 0, 40_100)},
		{name: "a long answer is read in parts", opts: polling,
			steps: []step{{"list 0", list("5")}, {"watch 5", events(strings.Join(many, ","), after(10*time.Second, end))},
				{"watch " + middle, events(strings.Join(many[maxPolled:], ","), after(10*time.Second, end))}, {"watch " + last, hold}},
			store: "a:" + last, version: last, check: at(0, 0, 0, 10_000)},
	} {
		sc.play(t)
	}
}

func TestPollingNeedsAResourceVersion(t *testing.T) {
	p := &poller[*corev1.ConfigMap]{wait: time.Second}
	send := true
	for _, opts := range []metav1.ListOptions{{}, {ResourceVersion: "0"}, {ResourceVersion: "5", SendInitialEvents: &send}} {
		if s, err := p.Watch(context.Background(), opts); err == nil {
			t.Errorf("polls %+v", s)
		}
	}
	if err := (Options{PollTimeout: time.Millisecond}).Validate(); err == nil {
		t.Error("polls of a millisecond are taken for possible")
	}
}

// A poll that is refused is judged as the request for a stream is.
func TestPollsThatAreRefused(t *testing.T) {
	opts := Options{PollTimeout: 10 * time.Second}
	begin := []step{{"list 0", list("5", "a 3")}}
	quiet := step{"watch 5", after(10*time.Second, end)}
	for name, answers := range map[string][]answer{
		"by a server that is busy or starts": {refusal("429"), refusal("503"), page(502), refusal("401")},
		"as not found":                       {refusal("404")},
	} {
		var refused []step
		for n := range 12 {
			refused = append(refused, step{"watch 5", answers[n%len(answers)]})
		}
		opts := Options{PollTimeout: opts.PollTimeout, GoneAfter: -1}
		scenario{name: name, opts: opts, steps: join(begin, refused, []step{quiet, {"watch 5", hold}}), store: "a:3", version: "5", any: true}.play(t)
	}
	listed := []step{{"list 5 NotOlderThan", list("8", "b 7")}, {"watch 8", hold}}
	for name, steps := range map[string][]step{
		"for want of a right":                         {{"watch 5", refusal("403")}},
		"by a proxy":                                  times(5, step{"watch 5", page(405)}),
		"with errors within the server":               times(5, step{"watch 5", refusal("500")}),
		"for a minute, for want of a right withdrawn": join([]step{quiet}, times(10, step{"watch 5", refusal("403")})),
	} {
		scenario{name: name, opts: opts, steps: join(begin, steps, listed), store: "b:7", version: "8", any: true}.play(t)
	}
}
