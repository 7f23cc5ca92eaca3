package reflector

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/levelwire/levelwire/client"
)

// A server that is back, and has lost the version, is listed soon: the limit that has grown
// while it was away counts no more.
func TestListSoonAfterAnOutage(t *testing.T) {
	down := events(initial, after(time.Minute, cut(12)))
	turns := []step{
		{"stream", page(503)}, {"stream", refusal("410")}, {"stream", page(503)}, {"list -", refusal("410")}, {"stream", page(503)}, {"stream", refusal("410")},
	}
	for _, sc := range []struct {
		scenario
		wait time.Duration // between the last two requests
	}{
		{scenario{name: "the version has expired",
			steps: []step{{"stream", down}, {"watch 5", refusal("410")}, {"stream", events("ADDED b 7,END 8", hold)}},
			store: "b:7", version: "8"}, 400 * time.Millisecond},
		{scenario{name: "the version is none of the server's",
			steps: join([]step{{"stream", down}}, times(3, step{"watch 5", refusal("504large")}), []step{{"stream", events("ADDED b 1,END 2", hold)}}),
			store: "b:1", version: "2"}, time.Second + 1600*time.Millisecond},
		{scenario{name: "a proxy answers for the server, and then it is back",
			steps: join([]step{{"stream", events(initial, after(time.Minute, end))}}, times(12, step{"watch 5", page(503)}),
				[]step{{"watch 5", refusal("410")}, {"stream", events("ADDED b 7,END 8", hold)}}),
			store: "b:7", version: "8"}, 400 * time.Millisecond},
		{scenario{name: "not if the server loses it again and again",
			steps: join([]step{{"stream", down}}, times(1, step{"watch 5", refusal("410")}), times(6, step{"stream", refusal("429")}),
				[]step{{"stream", events("ADDED b 7,END 8", hold)}}),
			store: "b:7", version: "8"}, 15 * time.Second},
		{scenario{name: "not again and again if a proxy and the server take turns",
			steps: join([]step{{"stream", down}, {"watch 5", refusal("410")}}, turns,
				[]step{{"stream", events("ADDED b 7,END 8", hold)}}),
			store: "b:7", version: "8"}, 12800 * time.Millisecond},
	} {
		sc.any = true
		sc.check = func(t *testing.T, s *script, _ Stats) {
			t.Helper()
			if got := s.at[len(s.at)-1] - s.at[len(s.at)-2]; got != sc.wait {
				t.Errorf("the last request came %v after the one before, want %v: %v", got, sc.wait, s.at)
			}
		}
		sc.play(t)
	}
}

// What passes by itself is a warning if it does not, and then not at each attempt.
func TestOutagesThatLast(t *testing.T) {
	for name, c := range map[string]struct {
		opts  Options
		steps []step
		warns []time.Duration // since the first failure, at the earliest
	}{
		"half an hour": {Options{}, []step{{"stream", events(initial, after(time.Minute, cut(125)))}, {"watch 5", hold}},
			[]time.Duration{time.Minute, 11 * time.Minute, 21 * time.Minute}},
		"half a minute": {Options{}, []step{{"stream", events(initial, after(time.Minute, cut(7)))}, {"watch 5", hold}}, nil},
		"two short ones": {Options{}, []step{{"stream", events(initial, after(time.Minute, cut(7)))},
			{"watch 5", events("", after(time.Minute, cut(7)))}, {"watch 5", hold}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log warnings
				c.opts.Logger = slog.New(&log)
				scenario{name: name, opts: c.opts, steps: c.steps, store: "a:3", version: "5", any: true}.run(t, client.Options{ForceHTTP1: true})
				if len(log.after) != len(c.warns) {
					t.Fatalf("warned after %v, want after %v", log.after, c.warns)
				}
				for i, want := range c.warns {
					if late := log.after[i] - want; late < 0 || late > 30*time.Second*time.Duration(i+1) {
						t.Errorf("warning %d came after %v, want it soon after %v", i+1, log.after[i], want)
					}
				}
			})
		})
	}
}

// warnings keeps what each warning says of how long attempts have failed; it is written by one
// goroutine.
type warnings struct{ after []time.Duration }

func (w *warnings) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }
func (w *warnings) WithAttrs([]slog.Attr) slog.Handler               { return w }
func (w *warnings) WithGroup(string) slog.Handler                    { return w }
func (w *warnings) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "failingFor" {
			w.after = append(w.after, a.Value.Duration())
		}
		return true
	})
	return nil
}
