package conformance

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/levelwiretest"
	"github.com/levelwire/levelwire/server"
)

// hindrance is what is between the checks and a good server, and makes it late or wrong.
type hindrance struct {
	// slow says how long an answer, or the headers of a stream, take. Nil is no time.
	slow func(r *http.Request) time.Duration
	// refuse says whether a request is answered with 504.
	refuse func(r *http.Request) bool
	// late says how long after the headers the events of a watch come.
	late time.Duration
	// hold is in the first event of each watch that never comes.
	hold string
	// events, if set, changes what is read of a watch.
	events func(b []byte) []byte
	next   http.RoundTripper
}

func (h *hindrance) RoundTrip(r *http.Request) (*http.Response, error) {
	if h.slow != nil {
		if err := sleep(r.Context(), h.slow(r)); err != nil {
			return nil, err
		}
	}
	if h.refuse != nil && h.refuse(r) {
		refusal := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Timeout","details":{"retryAfterSeconds":1},"code":504}`
		return &http.Response{StatusCode: http.StatusGatewayTimeout, Body: io.NopCloser(strings.NewReader(refusal)), Request: r}, nil
	}
	response, err := h.next.RoundTrip(r)
	if err == nil && isWatch(r) && response.StatusCode == http.StatusOK {
		response.Body = &hinderedBody{ReadCloser: response.Body, ctx: r.Context(), h: h}
	}
	return response, err
}

type hinderedBody struct {
	io.ReadCloser
	ctx  context.Context
	h    *hindrance
	wait sync.Once
}

func (b *hinderedBody) Read(p []byte) (n int, err error) {
	b.wait.Do(func() { err = sleep(b.ctx, b.h.late) })
	if err != nil {
		return 0, err
	}
	n, err = b.ReadCloser.Read(p)
	if b.h.hold != "" && bytes.Contains(p[:n], []byte(b.h.hold)) {
		<-b.ctx.Done()
		return 0, b.ctx.Err()
	}
	if b.h.events != nil {
		n = copy(p, b.h.events(p[:n]))
	}
	return n, err
}

// verifyHindered runs some guarantees against a good server, one at a time, with something in between,
// and returns the results by name. It has to run in a bubble, whose time it takes.
func verifyHindered(t *testing.T, h *hindrance, run string) map[string]Result {
	t.Helper()
	s := levelwiretest.StartInMemory(t, func(c *server.Config) { c.Storage = server.Memory })
	config := rest.CopyConfig(s.Config())
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		with := *h
		with.next = next
		return &with
	})
	report, err := Run(t.Context(), config, Options{Run: regexp.MustCompile(run), Parallel: 1})
	if report == nil {
		t.Fatal(err)
	}
	results := map[string]Result{}
	for _, result := range report.Results {
		results[result.Name] = result
	}
	return results
}

func always(d time.Duration) func(*http.Request) time.Duration {
	return func(*http.Request) time.Duration { return d }
}

// to is for requests whose method and URI have a part.
func to(part string, d time.Duration) func(*http.Request) time.Duration {
	return func(r *http.Request) time.Duration {
		if strings.Contains(r.Method+" "+r.URL.RequestURI(), part) {
			return d
		}
		return 0
	}
}

// upTo is for requests whose method and URI have a part, for so long after the first of them.
func upTo(end time.Duration, part string) func(*http.Request) bool {
	first, fits := sync.OnceValue(time.Now), to(part, 1)
	return func(r *http.Request) bool { return fits(r) > 0 && time.Since(first()) < end }
}

// after is for all requests behind the first one to which fits.
func after(part string, d time.Duration) func(*http.Request) time.Duration {
	var begun bool
	var mu sync.Mutex
	fits := to(part, d)
	return func(r *http.Request) time.Duration {
		mu.Lock()
		defer mu.Unlock()
		if begun {
			return d
		}
		begun = fits(r) > 0
		return 0
	}
}

// from is for all requests from so long after the first one.
func from(begin, d time.Duration) func(*http.Request) time.Duration {
	first := sync.OnceValue(time.Now)
	return func(*http.Request) time.Duration {
		if time.Since(first()) < begin {
			return 0
		}
		return d
	}
}

const never = time.Hour

// TestSlowIsNotBroken: a server that is slow throughout keeps its guarantees, one that is too slow for
// a check leaves it undecided, and only one that is fast and still does not do what it promised
// fails.
func TestSlowIsNotBroken(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, run string
		h         hindrance
		want      Verdict
		reason    string // has to be in the result's
	}{
		{"nothing hinders it", "^watch/after-version$", hindrance{}, Pass, ""},
		{"all takes a second, and events thirty", "^watch/after-version$",
			hindrance{slow: always(time.Second), late: 30 * time.Second}, Pass, ""},
		{"a fast server keeps its events for thirty seconds", "^watch/after-version$",
			hindrance{late: 30 * time.Second}, Fail, "nothing arrived within 10s"},
		{"a fast server never sends an event", "^watch/initial-events-any$",
			hindrance{late: never}, Fail, "nothing arrived within 10s"},
		{"it becomes slow while an event is awaited, which comes", "^watch/after-version$",
			hindrance{slow: after("watch=true", time.Second), late: 30 * time.Second}, Pass, ""},
		{"it stands still while an event is awaited", "^watch/after-version$",
			hindrance{slow: after("watch=true", never), late: never}, NotDecided, "no answer within"},
		{"requests take eight seconds and events never come", "^watch/initial-events-any$",
			hindrance{slow: always(8 * time.Second), late: never}, NotDecided, "a simple request took 8s"},
		{"one kind of request is never answered", "^list/any-at-rv-0$",
			hindrance{slow: to("resourceVersion=0", never)}, Fail, "no answer within 30s, while simple requests are answered"},
		{"nothing is ever answered", "^list/any-at-rv-0$",
			hindrance{slow: always(never)}, NotDecided, "POST /api/v1/namespaces: no answer within 3m0s"},
		{"nothing is answered after the beginning", "^list/any-at-rv-0$",
			hindrance{slow: after("POST /api/v1/namespaces/", never)}, NotDecided, "no answer within"},
		{"a write outlasts the watch that should show it", "^bookmark/before-deadline$",
			hindrance{slow: to("PUT ", 4*time.Second)}, NotDecided, "a write took 4s of the watch's 5s"},
		{"a version is not awaited for ever", "^list/version-too-large$",
			hindrance{slow: to("resourceVersion=10", 20*time.Second)}, Fail, "the answer took 2"},
		{"a version is not awaited for ever, but all is slow", "^list/version-too-large$",
			hindrance{slow: always(12 * time.Second)}, Pass, ""},
		{"lists come too early at first", "^list/consistent$",
			hindrance{refuse: upTo(5*time.Second, "GET ")}, Pass, ""},
		{"a fast server always refuses lists", "^list/consistent$",
			hindrance{refuse: upTo(never, "GET ")}, Fail, "was refused: 504"},
		{"a slow server always refuses lists", "^list/consistent$",
			hindrance{slow: always(8 * time.Second), refuse: upTo(never, "GET ")}, NotDecided, "was refused: 504"},
		{"a write is refused for want of time", "^list/consistent$",
			hindrance{refuse: upTo(never, "/configmaps")}, NotDecided, "the server is too busy: 504"},
		{"an event is wrong, and all is slow", "^watch/after-version$",
			hindrance{slow: always(8 * time.Second), events: replacing("ADDED", "OTHER")}, Fail, "OTHER"},
		{"what a check has made is not removed in time", "^watch/after-version$",
			hindrance{slow: to("gracePeriodSeconds=0", never)}, NotDecided, "cleaning up"},
		{"an event is wrong, and what the check has made is not removed in time", "^watch/after-version$",
			hindrance{slow: to("gracePeriodSeconds=0", never), events: replacing("ADDED", "OTHER")}, Fail, "OTHER"},
		{"watchers of a fast server are not shown the end", "^stream/reliable$",
			hindrance{hold: "end-"}, Fail, "an event is missing"},
		{"watchers of a slow server are not shown the end", "^stream/(reliable|filtered|ordered)$",
			hindrance{slow: from(8*time.Second, 10*time.Second), hold: "end-"}, NotDecided, "was not shown the end: it had 1m0s, and a simple request took 10s"},
		{"watchers of a slow server are shown something else", "^stream/faithful$",
			hindrance{slow: from(8*time.Second, 10*time.Second), hold: "end-", events: replacing(`"0.7"`, `"0.x"`)}, Fail, "an event is not what was written"},
		{"nothing is answered in the middle of a recording", "^stream/(reliable|unique)$",
			hindrance{slow: from(2*time.Second, never)}, NotDecided, "no answer within"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				for name, result := range verifyHindered(t, &row.h, row.run) {
					if result.Verdict != row.want || !strings.Contains(result.Reason, row.reason) {
						t.Errorf("%s: %s: %s, want %s with %q", name, result.Verdict, result.Reason, row.want, row.reason)
					}
				}
			})
		})
	}
}

// replacing makes of each old text the one behind it, which is not longer.
func replacing(texts ...string) func([]byte) []byte {
	r := strings.NewReplacer(texts...)
	return func(b []byte) []byte { return []byte(r.Replace(string(b))) }
}
