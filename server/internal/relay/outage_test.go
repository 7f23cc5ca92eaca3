package relay

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestOutageIsLogged: with why, so that an operator sees which part of the kubeconfig is wrong;
// not for one probe that is lost; and not once for each probe.
func TestOutageIsLogged(t *testing.T) {
	for name, test := range map[string]struct {
		answers []int // to probes, a second after another
		logged  string
	}{
		"never there":          {[]int{503, 503, 503}, "does not answer for=0s answers 503"},
		"wrong credentials":    {[]int{401, 401}, "does not answer for=0s answers 401"},
		"one lost probe":       {[]int{200, 503, 200}, ""},
		"lost and found":       {[]int{200, 503, 503, 503, 503, 200, 200}, "does not answer for=2s answers 503; answers the relay again after=4s"},
		"late, but then there": {[]int{503, 200}, "does not answer for=0s answers 503"},
		"forbidden is there":   {[]int{403, 403}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			code := 0
			r := relayOf(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) })
			var log bytes.Buffer
			r.opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
			now := time.Unix(1_000_000, 0)
			r.contact.now = func() time.Time { return now }
			for _, code = range test.answers {
				r.probeOnce(context.Background())
				now = now.Add(time.Second)
			}
			if got := outagesIn(log.String()); got != test.logged {
				t.Errorf("logged %q, want %q\n%s", got, test.logged, log.String())
			}
		})
	}
}

// outagesIn shortens a log to what the test is about.
func outagesIn(log string) string {
	var found []string
	for line := range strings.Lines(log) {
		var words []string
		for _, word := range []string{"does not answer", "answers the relay again", "for=0s", "for=2s", "after=4s", "answers 401", "answers 503"} {
			if strings.Contains(line, word) {
				words = append(words, word)
			}
		}
		found = append(found, strings.Join(words, " "))
	}
	return strings.Join(found, "; ")
}

// TestOutageIsLoggedAgain once a minute while it goes on.
func TestOutageIsLoggedAgain(t *testing.T) {
	r := relayOf(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	var log bytes.Buffer
	r.opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
	now := time.Unix(1_000_000, 0)
	r.contact.now = func() time.Time { return now }
	for range 125 {
		r.probeOnce(context.Background())
		now = now.Add(time.Second)
	}
	if lines := strings.Count(log.String(), "\n"); lines != 3 {
		t.Errorf("%d lines in two minutes, want 3\n%s", lines, log.String())
	}
}

// TestSilence: an upstream that has never answered is silent since the relay's start, although
// there is no cache then whose age would be known.
func TestSilence(t *testing.T) {
	code := http.StatusServiceUnavailable
	r := relayOf(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) })
	now := r.contact.begun
	r.contact.now = func() time.Time { return now }
	for _, step := range []struct {
		answer int
		after  time.Duration
		want   time.Duration
	}{
		{http.StatusServiceUnavailable, 90 * time.Second, 90 * time.Second}, {http.StatusUnauthorized, 30 * time.Second, 2 * time.Minute},
		{http.StatusOK, time.Second, 0}, {http.StatusServiceUnavailable, 10 * time.Second, 10 * time.Second}, {http.StatusOK, time.Second, 0},
	} {
		now, code = now.Add(step.after), step.answer
		r.probeOnce(context.Background())
		if got := r.silence(); got != step.want {
			t.Errorf("answered %d: silent for %s, want %s", step.answer, got, step.want)
		}
	}
}

// TestRefusedCredentials: a relay is not ready that the upstream does not accept, from the first
// moment if it never has, and otherwise from --max-staleness on.
func TestRefusedCredentials(t *testing.T) {
	code := http.StatusUnauthorized
	r := relayOf(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) })
	now := time.Unix(1_000_000, 0)
	r.contact.now = func() time.Time { return now }
	check := func(what string, answer int, after time.Duration, want string) {
		t.Helper()
		now, code = now.Add(after), answer
		r.probeOnce(context.Background())
		got := ""
		if err := r.CheckUpstream(context.Background()); err != nil {
			got = err.Error()
		}
		if got == "" != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	check("at first", http.StatusUnauthorized, 0, "credentials")
	check("accepted", http.StatusOK, time.Second, "")
	check("refused", http.StatusUnauthorized, time.Second, "")
	check("refused for long", http.StatusUnauthorized, 2*time.Minute, "credentials")
	check("not there", http.StatusServiceUnavailable, time.Second, "has not answered for")
	check("accepted again", http.StatusOK, time.Second, "")
}
