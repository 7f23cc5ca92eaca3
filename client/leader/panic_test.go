package leader

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// OnNewLeader panics each time, also between a write of the Lease and what follows it: the candidate
// leads, renews and releases as others do.
func TestOnNewLeaderPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		var log bytes.Buffer
		e := candidate(t, "a", line{store: s}, func(o *Options) {
			o.OnNewLeader = func(string) { panic("report") }
			o.Logger = slog.New(slog.NewTextHandler(&log, nil))
		})
		ctx, cancel := context.WithCancel(t.Context())
		started, ended := campaign(ctx, e, untilEnd)
		<-started
		time.Sleep(time.Minute)
		if got := e.Stats(); !got.Leading || got.Panics != 1 || got.Renewals < 10 || e.Leader() != "a" {
			t.Errorf("%+v", got)
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) && err != nil {
			t.Error(err)
		}
		if lease, err := s.get(); err != nil || holder(lease) != "" {
			t.Errorf("the lease is held by %q, %v", holder(lease), err)
		}
		if !strings.Contains(log.String(), "OnNewLeader panicked: report") || !strings.Contains(log.String(), "panic_test.go") {
			t.Errorf("logged %s", log.String())
		}
	})
}

// The function that leads panics, or ends its goroutine: its context ends, Run returns that, and another
// candidate leads when the Lease has run out, and not before.
func TestLeadingFails(t *testing.T) {
	for name, test := range map[string]struct {
		fail func()
		says string
	}{
		"it panics":                  {func() { panic("work") }, "panic_test.go"},
		"it panics with nil":         {func() { panic(nil) }, "panic_test.go"},
		"it ends its goroutine":      {runtime.Goexit, "runtime.Goexit"},
		"it panics and then ends it": {func() { defer runtime.Goexit(); panic("work") }, "runtime.Goexit"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &store{}
				var log bytes.Buffer
				e := candidate(t, "a", line{store: s}, func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
				other := candidate(t, "b", line{store: s})
				var leading context.Context
				started, ended := campaign(t.Context(), e, func(ctx context.Context) error {
					leading = ctx
					time.Sleep(time.Second)
					test.fail()
					return nil
				})
				<-started
				ctx, cancel := context.WithCancel(t.Context())
				begun := time.Now()
				leads, otherEnded := campaign(ctx, other, untilEnd)
				err := <-ended
				if !errors.Is(err, ErrPanicked) || !errors.Is(err, ErrNotReleased) || !strings.Contains(err.Error(), test.says) {
					t.Errorf("Run returned %v", err)
				}
				if !strings.Contains(log.String(), "level=ERROR") || !strings.Contains(log.String(), test.says) {
					t.Errorf("logged %s", log.String())
				}
				if leading.Err() == nil || !errors.Is(context.Cause(leading), ErrPanicked) || e.IsLeader() {
					t.Errorf("cause %v, leads %v", context.Cause(leading), e.IsLeader())
				}
				<-leads
				if after := time.Since(begun); after < DefaultLeaseDuration {
					t.Errorf("another one leads after %v", after)
				}
				cancel()
				<-otherEnded
			})
		})
	}
}
