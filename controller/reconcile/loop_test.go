package reconcile

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// runLoop runs fn in a loop for a time of the bubble's clock.
func runLoop(t *testing.T, d time.Duration, fn Func) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), d)
		defer cancel()
		loop := NewLoop("test", 2, slog.New(slog.DiscardHandler), fn)
		loop.Add(key)
		loop.Run(ctx)
	})
}

func TestLoopTriesAgain(t *testing.T) {
	calls := 0
	runLoop(t, time.Minute, func(context.Context, Key) (time.Duration, error) {
		calls++
		if calls == 1 {
			panic("a bug over one object")
		}
		if calls < 5 {
			return 0, errors.New("not yet")
		}
		return 0, nil
	})
	if calls != 5 {
		t.Errorf("called %d times, want until it succeeds", calls)
	}
}

func TestLoopBacksOffNoLongerThanHalfAMinute(t *testing.T) {
	var last time.Time
	var longest time.Duration
	runLoop(t, time.Hour, func(context.Context, Key) (time.Duration, error) {
		now := time.Now()
		if !last.IsZero() {
			longest = max(longest, now.Sub(last))
		}
		last = now
		return 0, errors.New("the server is away")
	})
	if longest != longestRetry {
		t.Errorf("the longest pause is %s, want %s", longest, longestRetry)
	}
}

func TestLoopComesBackWhenAsked(t *testing.T) {
	var at []time.Duration
	start := time.Time{}
	runLoop(t, 25*time.Second, func(context.Context, Key) (time.Duration, error) {
		if start.IsZero() {
			start = time.Now()
		}
		at = append(at, time.Since(start))
		return 10 * time.Second, nil
	})
	if len(at) != 3 || at[1] != 10*time.Second || at[2] != 20*time.Second {
		t.Errorf("called at %v", at)
	}
}

func TestVersionsHideTheStateBeforeAWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pod := func(version string) *corev1.Pod {
			return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "1", ResourceVersion: version}}
		}
		v := NewVersions()
		if v.Behind(pod("5")) {
			t.Error("behind without a write")
		}
		v.Wrote(pod("10"))
		if !v.Behind(pod("9")) {
			t.Error("9 is not behind 10") // as text it is greater
		}
		if v.Behind(pod("10")) || v.Behind(pod("9")) {
			t.Error("the write is remembered after it was seen")
		}
		v.Wrote(pod("20"))
		time.Sleep(expectationTimeout)
		if v.Behind(pod("19")) {
			t.Error("waits for ever")
		}
	})
}

func TestSooner(t *testing.T) {
	for _, c := range [][3]time.Duration{{0, 0, 0}, {0, 5, 5}, {5, 0, 5}, {3, 5, 3}, {5, 3, 3}} {
		if got := Sooner(c[0], c[1]); got != c[2] {
			t.Errorf("Sooner(%d, %d) = %d", c[0], c[1], got)
		}
	}
}
