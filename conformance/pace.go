package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// How long a check waits follows from how long the server takes for simple requests. A
// server under load is slower in everything, and slow is not broken.
const (
	limitFactor   = 50               // an event may take as long as so many simple requests
	shortestLimit = 10 * time.Second // and this long, however fast the server is
	longestLimit  = time.Minute      // and no longer than this, however slow it is
	// requestFactor is how many times as long as an event a whole answer may take.
	requestFactor = 3
	// decisiveFactor is how many simple requests the server has to have had the time
	// for before something that did not come counts against it.
	decisiveFactor = 10
)

// pace is how long simple requests have taken the server, at most. All checks of a run
// measure it, from its beginning to its end.
type pace struct {
	mu      sync.Mutex
	slowest time.Duration // 0: nothing was measured
}

func (p *pace) measured(took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.slowest = max(p.slowest, took, 1) // not 0, whatever the clock's resolution
}

func (p *pace) get() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.slowest
}

// limit is how long a check waits for what should happen at once: the longest limit until
// the server has been measured.
func (p *pace) limit() time.Duration {
	slowest := p.get()
	if slowest == 0 {
		return longestLimit
	}
	return min(max(limitFactor*slowest, shortestLimit), longestLimit)
}

func (e *Env) limit() time.Duration { return e.server.pace.limit() }

// briefly is the timeoutSeconds of a watch that a check waits for the end of. In half a limit,
// a server has the time to send events and to place a bookmark before the end.
func (e *Env) briefly() time.Duration { return (e.limit() / 2).Round(time.Second) }

// brief is the part of a query that begins such a watch at a version.
func (e *Env) brief(version string) string {
	return fmt.Sprintf("timeoutSeconds=%.0f&resourceVersion=%s", e.briefly().Seconds(), version)
}

// tooSlow is why a check could not be decided: the server, or what is between, did not get
// to what the check is about.
type tooSlow struct{ reason string }

func (s *tooSlow) Error() string { return s.reason }

// busy is the error of a request that the server had no time for.
func busy(r request, a *answer) error {
	return &tooSlow{fmt.Sprintf("%s %s: the server is too busy: %s", r.verb(), r.path, a)}
}

// undecided says whether an error is about time, and not about what the server did.
func undecided(err error) bool {
	var slow *tooSlow
	return errors.As(err, &slow) || errors.Is(err, context.DeadlineExceeded)
}

// measure has the server create, list and delete an object, and takes the time. No check watches
// the kind that it uses. What the server answers does not matter here.
func (e *Env) measure(ctx context.Context) {
	name := e.unique()
	secrets := "/api/v1/namespaces/" + e.namespace + "/secrets"
	e.remember(secrets + "/" + name)
	for _, r := range []request{
		{method: http.MethodPost, path: secrets, body: `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"` + name + `"}}`},
		{path: secrets + "?limit=1"},
		{method: http.MethodDelete, path: secrets + "/" + name},
	} {
		limit := requestFactor * e.limit()
		within, cancel := context.WithTimeout(ctx, limit)
		begin := time.Now()
		a, err := e.converse(within, r)
		cancel()
		if ctx.Err() != nil {
			return
		}
		if took := time.Since(begin); err == nil || took >= limit {
			e.server.pace.measured(took)
		}
		if err == nil && r.method == http.MethodDelete && a.code < 300 {
			e.forget(secrets + "/" + name)
		}
	}
}

// judge decides what it means that something did not come within a time. It measures the server
// anew, and returns a *tooSlow if the time was too short for a server as slow as this one, or
// nil: then the server is to blame.
func (e *Env) judge(ctx context.Context, within time.Duration) error {
	e.measure(ctx)
	if err := ctx.Err(); err != nil {
		return err
	}
	if slowest := e.server.pace.get(); decisiveFactor*slowest > within {
		return &tooSlow{fmt.Sprintf("it had %s, and a simple request took %s", roundTime(within), roundTime(slowest))}
	}
	return nil
}

// late ends the check because something did not come within a time. The server does not keep the
// guarantee if it was fast enough meanwhile.
func (e *Env) late(within time.Duration, format string, args ...any) {
	if err := e.judge(e.ctx, within); err != nil {
		e.end(NotDecided, "%s: %v", fmt.Sprintf(format, args...), err)
	}
	e.failf(format, args...)
}

// arrived ends the check if a stream that lasts for a time has ended, or said nothing for it, before
// what was read from it came.
func (e *Env) arrived(err error, within time.Duration) {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, context.DeadlineExceeded) {
		e.late(within, "an event was expected within %s: %v", roundTime(within), err.Error())
	}
	e.must(err)
}

// overdue is the error of a request that was not answered within a time.
func (e *Env) overdue(ctx context.Context, r *request, within time.Duration) error {
	what := fmt.Sprintf("%s %s: no answer within %s", r.verb(), r.path, roundTime(within))
	e.note("%s", what)
	if err := e.judge(ctx, within); err != nil {
		return &tooSlow{fmt.Sprintf("%s: %v", what, err)}
	}
	return errors.New(what + ", while simple requests are answered")
}
