package workqueue

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestExponentialNeverOverflows(t *testing.T) {
	l := Exponential[int](time.Millisecond, time.Minute)
	last := time.Duration(0)
	for range 5000 {
		delay := l.When(1)
		if delay < last || delay > time.Minute {
			t.Fatalf("%v after %v", delay, last)
		}
		last = delay
	}
	if last != time.Minute || l.Requeues(1) != 5000 {
		t.Errorf("%v, %d requeues", last, l.Requeues(1))
	}
	if l.When(2) != time.Millisecond {
		t.Error("another key shares the history")
	}
}

func TestBucketLimitsAllKeysTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := Bucket[int](10, 3)
		for i, want := range []time.Duration{0, 0, 0, 100 * time.Millisecond, 200 * time.Millisecond} {
			if got := l.When(i); got.Round(time.Millisecond) != want {
				t.Errorf("key %d waits %v, want %v", i, got, want)
			}
		}
		time.Sleep(time.Second)
		if got := l.When(9); got != 0 {
			t.Errorf("after a pause: %v", got)
		}
	})
}

func TestMaxOfIsTheSlowest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := MaxOf(Exponential[int](time.Second, time.Hour), Bucket[int](1, 1))
		for i, want := range []time.Duration{1, 2, 4} {
			if got := l.When(1); got.Round(time.Millisecond) != want*time.Second {
				t.Errorf("attempt %d waits %v, want %d s", i, got, want)
			}
		}
		if got := l.When(2); got.Round(time.Millisecond) != 3*time.Second {
			t.Errorf("the bucket is not asked: %v", got)
		}
		l.Forget(1)
		if l.Requeues(1) != 0 || l.Requeues(2) != 1 {
			t.Errorf("requeues: %d, %d", l.Requeues(1), l.Requeues(2))
		}
	})
}

func TestDefaultRateLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Options[int]{})
		start := time.Now()
		q.AddRateLimited(1)
		if _, ok := q.Get(t.Context()); !ok || time.Since(start) != DefaultBaseDelay {
			t.Errorf("the first retry came after %v", time.Since(start))
		}
	})
}

// TestLimitersWithoutSense: a limiter that could only spin, or let nothing through, is not
// made.
func TestLimitersWithoutSense(t *testing.T) {
	for name, limiter := range map[string]func(){
		"workqueue.Bucket(0, 100)":        func() { Bucket[int](0, 100) },
		"workqueue.Bucket(NaN, 1)":        func() { Bucket[int](math.NaN(), 1) },
		"workqueue.Bucket(1, 0)":          func() { Bucket[int](1, 0) },
		"workqueue.Exponential(0s, 1m0s)": func() { Exponential[int](0, time.Minute) },
		"workqueue.Exponential(1s, 1ms)":  func() { Exponential[int](time.Second, time.Millisecond) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if reason := fmt.Sprint(recover()); !strings.HasPrefix(reason, name+": the ") {
					t.Errorf("it panics with %q", reason)
				}
			}()
			limiter()
		})
	}
}
