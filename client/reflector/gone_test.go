package reflector

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/levelwire/levelwire/client"
)

// goneAt checks whether the resource counts as gone at the script's end.
func goneAt(want bool) func(*testing.T, *script, Stats) {
	return func(t *testing.T, _ *script, s Stats) {
		t.Helper()
		if s.GoneSince.IsZero() == want {
			t.Errorf("gone since %v, want gone: %v", s.GoneSince, want)
		}
	}
}

// times repeats a step.
func times(n int, s step) (steps []step) {
	for range n {
		steps = append(steps, s)
	}
	return steps
}

func join(parts ...[]step) (steps []step) {
	for _, part := range parts {
		steps = append(steps, part...)
	}
	return steps
}

// Half of a limit of 800 ms, doubling, is 400, 800, 1600, 3200, 6400, 12800 and
// 15000 ms: the eighth 404 comes 40.2 s after the first.
func TestResourcesThatAreGone(t *testing.T) {
	lost := events(initial, after(time.Minute, end))
	missing := step{"watch 5", refusal("404")}
	for _, sc := range []scenario{
		{name: "gone after a while, and back", opts: Options{GoneAfter: 30 * time.Second},
			steps: join([]step{{"stream", lost}}, times(8, missing),
				[]step{{"stream", refusal("404")}, {"stream", refusal("404")}, {"stream", events("ADDED b 2,END 7,ADDED c 8", hold)}}),
			store: "b:2 c:8", version: "8", lists: map[ListCause]int64{ListInitial: 1, ListReturned: 1},
			resumes: map[ResumeReason]int64{ResumeEnded: 1, ResumeNotServed: 8}, check: goneAt(false)},
		{name: "gone, and what was known with it", opts: Options{GoneAfter: 30 * time.Second},
			steps:   join([]step{{"stream", lost}}, times(8, missing), []step{{"stream", refusal("404")}}),
			version: "", resumes: map[ResumeReason]int64{ResumeEnded: 1, ResumeNotServed: 8}, check: goneAt(true)},
		{name: "not if a proxy says so", opts: Options{GoneAfter: 30 * time.Second},
			steps: join([]step{{"stream", lost}}, times(20, step{"watch 5", page(404)}), []step{{"watch 5", hold}}),
			store: "a:3", version: "5", resumes: map[ResumeReason]int64{ResumeEnded: 1, ResumeDenied: 20}, check: goneAt(false)},
		{name: "not while discovery has it", opts: Options{GoneAfter: 30 * time.Second},
			discovery: raw(`{"kind":"APIResourceList","resources":[{"name":"configmaps"}]}`),
			steps:     join([]step{{"stream", lost}}, times(20, missing), []step{{"watch 5", hold}}),
			store:     "a:3", version: "5", resumes: map[ResumeReason]int64{ResumeEnded: 1, ResumeNotServed: 20}, check: goneAt(false)},
		{name: "not while discovery cannot be asked", opts: Options{GoneAfter: 30 * time.Second},
			discovery: page(404),
			steps:     join([]step{{"stream", lost}}, times(20, missing), []step{{"watch 5", hold}}),
			store:     "a:3", version: "5", resumes: map[ResumeReason]int64{ResumeEnded: 1, ResumeNotServed: 20}, check: goneAt(false)},
		{name: "pages of other codes cause no list", opts: Options{},
			steps: []step{{"stream", lost}, {"watch 5", page(400)}, {"watch 5", page(410)}, {"watch 5", page(422)}, {"watch 5", hold}},
			store: "a:3", version: "5", resumes: map[ResumeReason]int64{ResumeEnded: 1, ResumeDenied: 3}},
		{name: "nor an end of streaming lists", opts: Options{},
			steps: []step{{"stream", page(400)}, {"stream", events(initial, hold)}},
			store: "a:3", version: "5", any: true},
		{name: "not for long enough", opts: Options{GoneAfter: time.Hour},
			steps: join([]step{{"stream", lost}}, times(8, missing), []step{{"watch 5", hold}}),
			store: "a:3", version: "5", resumes: map[ResumeReason]int64{ResumeEnded: 1, ResumeNotServed: 8}, check: goneAt(false)},
		{name: "never, if so asked", opts: Options{GoneAfter: -1},
			steps: join([]step{{"stream", lost}}, times(20, missing), []step{{"watch 5", hold}}),
			store: "a:3", version: "5", resumes: map[ResumeReason]int64{ResumeEnded: 1, ResumeNotServed: 20}, check: goneAt(false)},
		{name: "not if it was there in between", opts: Options{GoneAfter: 30 * time.Second},
			steps: join([]step{{"stream", lost}}, times(6, missing), []step{{"watch 5", events("MODIFIED a 6", end)}},
				times(2, step{"watch 6", refusal("404")}), []step{{"watch 6", hold}}),
			store: "a:6", version: "6", resumes: map[ResumeReason]int64{ResumeEnded: 2, ResumeNotServed: 8}, check: goneAt(false)},
		{name: "not if the server has said something else in between", opts: Options{GoneAfter: 30 * time.Second},
			steps: join([]step{{"stream", lost}}, times(4, missing), []step{{"watch 5", refusal("503")}}, times(3, missing), []step{{"watch 5", hold}}),
			store: "a:3", version: "5", resumes: map[ResumeReason]int64{ResumeEnded: 1, ResumeNotServed: 7, ResumeServer: 1}, check: goneAt(false)},
		{name: "nor if it could not be reached in between", opts: Options{GoneAfter: 30 * time.Second},
			steps: join([]step{{"stream", lost}}, times(4, missing), []step{{"watch 5", cut(3)}}, times(2, missing), []step{{"watch 5", hold}}),
			store: "a:3", version: "5", any: true, check: goneAt(false)},
		{name: "nor if a proxy has answered in between", opts: Options{GoneAfter: 30 * time.Second},
			steps: join([]step{{"stream", lost}}, times(4, missing), []step{{"watch 5", page(502)}}, times(3, missing), []step{{"watch 5", hold}}),
			store: "a:3", version: "5", any: true, check: goneAt(false)},
		{name: "other refusals do not mean it", opts: Options{GoneAfter: 30 * time.Second},
			steps: join([]step{{"stream", lost}}, times(9, step{"watch 5", refusal("403")}), []step{{"watch 5", hold}}),
			store: "a:3", version: "5", resumes: map[ResumeReason]int64{ResumeEnded: 1, ResumeDenied: 9}, check: goneAt(false)},
		{name: "it never was there", opts: Options{GoneAfter: 30 * time.Second, PagedList: true},
			steps: join(times(8, step{"list 0", refusal("404")}),
				[]step{{"list -", refusal("404")}, {"list -", list("9", "a 8")}, {"watch 9", hold}}),
			store: "a:8", version: "9", lists: map[ListCause]int64{ListInitial: 1, ListRepeated: 7, ListReturned: 1}, check: goneAt(false)},
		{name: "a replica that lags cannot bring back what was", opts: Options{GoneAfter: 30 * time.Second, PagedList: true},
			steps: join([]step{{"list 0", list("5", "a 3")}}, times(8, missing), []step{{"list -", list("9", "b 8")}, {"watch 9", hold}}),
			store: "b:8", version: "9", lists: map[ListCause]int64{ListInitial: 1, ListReturned: 1},
			resumes: map[ResumeReason]int64{ResumeNotServed: 8}},
	} {
		sc.play(t)
	}
}

func TestLastErrorIsForgottenWhenThingsGoWell(t *testing.T) {
	last := func(want bool) func(*testing.T, *script, Stats) {
		return func(t *testing.T, _ *script, s Stats) {
			t.Helper()
			if (s.LastError != nil) != want {
				t.Errorf("last error %v", s.LastError)
			}
		}
	}
	scenario{name: "well again", steps: []step{{"stream", refusal("403")}, {"list 0", refusal("403")}, {"stream", events("END 5", hold)}},
		version: "5", lists: map[ListCause]int64{ListInitial: 1, ListRepeated: 1}, check: last(false)}.play(t)
	scenario{name: "not well", steps: []step{{"stream", refusal("403")}, {"list 0", refusal("403")}},
		version: "", check: last(true)}.play(t)
}

// A watch that is cut is an error like others, though it is opened again soon.
func TestCutWatchesAreReported(t *testing.T) {
	for name, last := range map[string]answer{"cut": after(time.Minute, cut(0)), "silent": hold, "ended early": after(2*time.Second, end)} {
		var reported []error
		opts := Options{OnError: func(_ string, err error) { reported = append(reported, err) }}
		scenario{name: name, opts: opts, steps: []step{{"stream", events(initial, last)}, {"watch 5", events("", hold)}},
			store: "a:3", version: "5", any: true, check: func(t *testing.T, _ *script, s Stats) {
				if len(reported) != 1 || s.LastError != nil {
					t.Errorf("reported %v, last error after the next watch is open: %v", reported, s.LastError)
				}
				reported = nil
			}}.play(t)
	}
	scenario{name: "and no other can be opened", steps: []step{{"stream", events(initial, after(time.Minute, cut(100)))}},
		store: "a:3", version: "5", any: true, check: func(t *testing.T, _ *script, s Stats) {
			if s.LastError == nil {
				t.Error("no last error after a cut")
			}
		}}.play(t)
}

func TestOptionsThatCannotBeUsedAreNamed(t *testing.T) {
	for name, opts := range map[string]Options{
		"Options.WatchTimeout": {WatchTimeout: -1},
		"Options.PollTimeout":  {PollTimeout: time.Millisecond},
		"Options.Backoff":      {Backoff: Backoff{Max: -1}},
		"Options.Backoff.Max":  {Backoff: Backoff{Base: time.Minute, Max: time.Second}},
		"Options.ResumeFrom":   {ResumeFrom: "0"},

		"Options.InitialEventsTimeout 30ns": {InitialEventsTimeout: 30},
		"Options.SilenceTimeout 180ns":      {SilenceTimeout: 180},
		"Options.OpenTimeout 30ns":          {OpenTimeout: 30},
		"Options.ListTimeout 120ns":         {ListTimeout: 120},
		"Options.GoneAfter 60ns":            {GoneAfter: 60},
		"Options.Backoff.Base 1ns":          {Backoff: Backoff{Base: 1}},
		"Options.Backoff.Max 30ns":          {Backoff: Backoff{Max: 30}},
		"Options.Backoff.Reset 2ns":         {Backoff: Backoff{Reset: 2}},

		"Options.InitialEventsTimeout": {PagedList: true, InitialEventsTimeout: time.Second},
		"Options.SilenceTimeout":       {PollTimeout: time.Second, SilenceTimeout: time.Second},
		"Options.WatchTimeout is":      {PollTimeout: time.Second, WatchTimeout: time.Second},
	} {
		if err := opts.Validate(); err == nil || err.Error()[:len(name)] != name {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Each log line has the level that says whether an operator has to look.
func TestLogLevels(t *testing.T) {
	const failed = "list or watch failed"
	for _, c := range []struct {
		name    string
		opts    Options
		steps   []step
		want    []string
		version string
	}{
		{"what passes by itself", Options{}, []step{{"stream", events("END 5", after(time.Minute, cut(1)))}, {"watch 5", hold}},
			[]string{"DEBUG listed", "INFO " + failed, "INFO " + failed}, "5"},
		{"no list", Options{}, []step{{"stream", refusal("429")}, {"stream", events("END 5", hold)}},
			[]string{"WARN " + failed, "DEBUG listed"}, "5"},
		{"another list", Options{}, []step{{"stream", events("END 5,ERROR 410", end)}, {"stream", events("END 6", hold)}},
			[]string{"DEBUG listed", "WARN " + failed, "DEBUG listed"}, "6"},
		{"denied", Options{}, []step{{"stream", events("END 5", after(time.Minute, end))}, {"watch 5", refusal("403")}, {"watch 5", hold}},
			[]string{"DEBUG listed", "DEBUG opening the watch again", "WARN " + failed}, "5"},
		{"neither streams nor pages", Options{}, []step{{"stream", refusal("403")}, {"list 0", refusal("403")}, {"stream", refusal("403")}, {"list 0", refusal("403")}, {"stream", events("END 5", hold)}},
			[]string{"INFO asking for pages in place of a streaming list", "WARN " + failed, "DEBUG asking for pages in place of a streaming list", "WARN " + failed, "DEBUG listed"}, "5"},
		{"not served", Options{}, []step{{"stream", refusal("404")}, {"stream", refusal("404")}, {"stream", refusal("503")}, {"list 0", refusal("503")}, {"stream", refusal("404")}, {"stream", events("END 5", hold)}},
			[]string{"WARN " + failed, "DEBUG " + failed, "INFO asking for pages in place of a streaming list", "WARN " + failed, "WARN " + failed, "DEBUG listed"}, "5"},
		{"gone", Options{GoneAfter: time.Millisecond}, []step{{"stream", refusal("404")}, {"stream", refusal("404")}, {"stream", refusal("404")}, {"list -", refusal("404")}, {"stream", events("END 5", hold)}},
			[]string{"WARN " + failed, "WARN the server does not have the resource; it is asked on until it has", "DEBUG " + failed,
				"INFO asking for pages in place of a streaming list", "DEBUG " + failed, "DEBUG listed", "INFO the resource is back"}, "5"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log lines
				c.opts.Logger = slog.New(&log)
				scenario{name: c.name, opts: c.opts, steps: c.steps, version: c.version, any: true}.run(t, client.Options{ForceHTTP1: true})
				if !slices.Equal(log.said, c.want) {
					t.Errorf("logged\n got %q\nwant %q", log.said, c.want)
				}
			})
		})
	}
}

// lines keeps level and message of each line; it is written by one goroutine.
type lines struct{ said []string }

func (l *lines) Enabled(context.Context, slog.Level) bool { return true }
func (l *lines) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *lines) WithGroup(string) slog.Handler            { return l }
func (l *lines) Handle(_ context.Context, r slog.Record) error {
	l.said = append(l.said, r.Level.String()+" "+r.Message)
	return nil
}
