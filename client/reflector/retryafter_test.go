package reflector

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A server that asks for more time than Backoff.Max gets that, whatever it is and
// wherever it stands. It is logged as a warning.
func TestRetryAfterIsBounded(t *testing.T) {
	body := func(code int, seconds string) string {
		return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"details":{"retryAfterSeconds":%s}}`, code, seconds)
	}
	inBody := func(code int, seconds string) answer {
		return func(_ *script, w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body(code, seconds))
		}
	}
	const short, long = 400, 30_400 // half of the first limit, alone and after Backoff.Max
	for _, test := range []struct {
		name     string
		answer   answer
		inStream bool // possible within a stream only
		then     int64
		warned   bool
	}{
		{"a header of a day", refusal("429 86400"), false, long, true},
		{"a header of ages", refusal("503 99999999999999999999"), false, short, false}, // no number that anybody can read
		{"a header of a date", refusal("503 Fri, 31 Dec 1999 00:00:00 GMT"), false, short, false},
		{"a header of a date to come", refusal("503 Sun, 31 Dec 2000 00:00:00 GMT"), false, long, true},
		{"a page of a proxy", page(503, "86400"), false, long, true},
		{"a body of ages", inBody(429, "2147483647"), false, long, true},
		{"a body of ages with another code", inBody(500, "2147483647"), false, long, true},
		{"a negative body", inBody(429, "-5"), false, short, false},
		{"a negative header", refusal("429 -5"), false, short, false},
		{"in time", refusal("429 2"), false, short + 2000, false},
		{"in the stream, of ages", inStreamError(body(500, "2147483647")), true, long, true},
		{"in the stream, busy", inStreamError(body(429, "86400")), true, long, true},
		{"in the stream, negative", inStreamError(body(429, "-2147483648")), true, short, false},
	} {
		var logged bytes.Buffer
		check := func(t *testing.T, s *script, stats Stats) {
			t.Helper()
			first := len(s.at) - 2
			if first < 0 {
				return // the script was not played to its end
			}
			if got := s.at[first+1] - s.at[first]; got.Milliseconds() != test.then {
				t.Errorf("asked again after %v, want %d ms", got, test.then)
			}
			if warned := strings.Contains(logged.String(), "level=WARN") && strings.Contains(logged.String(), "retryAfter="); test.warned && !warned {
				t.Errorf("logged: %s", logged.String())
			}
			logged.Reset()
		}
		opts := func(paged bool) Options {
			return Options{PagedList: paged, Logger: slog.New(slog.NewTextHandler(&logged, nil))}
		}
		scenario{name: test.name + ", of a watch", opts: opts(true), any: true,
			steps: []step{{"list 0", list("5", "a 3")}, {"watch 5", test.answer}, {"watch 5", hold}},
			store: "a:3", version: "5", check: check}.play(t)
		polling := opts(false)
		polling.PollTimeout = 10 * time.Second
		scenario{name: test.name + ", of a poll", opts: polling, any: true,
			steps: []step{{"list 0", list("5", "a 3")}, {"watch 5", test.answer}, {"watch 5", hold}},
			store: "a:3", version: "5", check: check}.play(t)
		if test.inStream {
			continue
		}
		scenario{name: test.name + ", of a list", opts: opts(true), any: true,
			steps: []step{{"list 0", test.answer}, {"list 0", hold}}, check: check}.play(t)
		scenario{name: test.name + ", of a later page", opts: opts(true), any: true,
			steps: []step{{"list 0", list("5 c1", "a 3")}, {"list - c1", test.answer}, {"list 0", hold}}, check: check}.play(t)
	}
	// The option is the bound, and what is asked for within it is no warning.
	var logged bytes.Buffer
	warns := slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelWarn}))
	scenario{name: "an option", opts: Options{PagedList: true, Logger: warns, Backoff: Backoff{Max: time.Hour}}, any: true,
		steps: []step{{"list 0", list("5")}, {"watch 5", refusal("429 3000")}, {"watch 5", hold}}, version: "5",
		check: func(t *testing.T, s *script, stats Stats) {
			at(0, 0, 3000_400)(t, s, stats)
			if logged.Len() > 0 {
				t.Errorf("logged: %s", logged.String())
			}
		}}.play(t)
}
