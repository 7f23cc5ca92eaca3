package workqueue

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// panicking is a RateLimiter that panics while it is told to, and has keys wait an hour otherwise.
type panicking struct{ panics bool }

func (p *panicking) check() {
	if p.panics {
		panic("limiter")
	}
}

func (p *panicking) When(string) time.Duration { p.check(); return time.Hour }
func (p *panicking) Forget(string)             { p.check() }
func (p *panicking) Requeues(string) int       { p.check(); return 0 }

// A RateLimiter that panics does not end the process, nor lose a key: the key waits for a bounded
// time, which Forget ends.
func TestRateLimitersThatPanic(t *testing.T) {
	for name, of := range map[string]func(*panicking) RateLimiter[string]{
		"alone":      func(p *panicking) RateLimiter[string] { return p },
		"among some": func(p *panicking) RateLimiter[string] { return MaxOf[string](p, Bucket[string](1, 1)) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				limiter := &panicking{panics: true}
				q := New(Options[string]{RateLimiter: of(limiter), Logger: slog.New(slog.NewTextHandler(&log, nil))})
				waits := func(want time.Duration) {
					t.Helper()
					begun := time.Now()
					q.AddRateLimited("a")
					if _, ok := q.Get(t.Context()); !ok || time.Since(begun) != want {
						t.Errorf("the key waited %v, want %v", time.Since(begun), want)
					}
					q.Done("a")
				}
				for delay := DefaultBaseDelay; delay < maxFallbackDelay; delay *= 2 {
					waits(delay)
				}
				waits(maxFallbackDelay)
				waits(maxFallbackDelay)
				if got := q.NumRequeues("a"); got != 15 {
					t.Errorf("%d requeues", got)
				}
				q.Forget("a")
				if got := q.NumRequeues("a"); got != 0 {
					t.Errorf("%d requeues after Forget", got)
				}
				waits(DefaultBaseDelay)
				limiter.panics = false
				waits(time.Hour)
				if got := q.Stats().Panics; got != 16+1+2 {
					t.Errorf("%d panics", got)
				}
				if said := log.String(); strings.Count(said, "panicked: limiter") != 2 || !strings.Contains(said, "containedlimiter_test.go") {
					t.Errorf("logged %s", said)
				}
			})
		})
	}
}
