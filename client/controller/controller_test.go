package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/client/leader"
	"github.com/levelwire/levelwire/client/workqueue"
	_ "github.com/levelwire/levelwire/internal/testwatchdog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func made(t *testing.T, fn ReconcileFunc, opts Options) *Controller {
	t.Helper()
	if opts.Name == "" {
		opts.Name = "test"
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	c, err := New(fn, opts)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// runFor runs fn, which is called with key, for a time of the bubble's clock.
func runFor(t *testing.T, d time.Duration, opts Options, fn ReconcileFunc) (stats Stats) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), d)
		defer cancel()
		c := made(t, fn, opts)
		c.Add(key)
		if err := c.Run(ctx); err != nil {
			t.Error(err)
		}
		stats = c.Stats()
	})
	return stats
}

func TestFailuresAndPanicsAreTriedAgain(t *testing.T) {
	calls := 0
	stats := runFor(t, time.Minute, Options{Workers: 2}, func(context.Context, Key) (Result, error) {
		calls++
		switch calls {
		case 1:
			panic("a bug over one object")
		case 2:
			runtime.Goexit()
		case 3:
			return Result{}, apierrors.NewConflict(schema.GroupResource{}, "it", errors.New("changed"))
		case 4:
			return Result{RequeueAfter: time.Hour}, errors.New("not yet")
		}
		return Result{}, nil
	})
	if stats.Calls != 5 || stats.Failures != 4 || stats.Panics != 2 || stats.Conflicts != 1 || stats.Requeues != 0 || stats.Queue.Delayed != 0 {
		t.Errorf("%+v", stats)
	}
}

// A call that ends its goroutine must not cost the controller a worker.
func TestEndedGoroutinesAreReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		seen := map[Key]bool{}
		c := made(t, func(_ context.Context, key Key) (Result, error) {
			if !seen[key] {
				seen[key] = true
				runtime.Goexit()
			}
			return Result{}, nil
		}, Options{})
		for n := range 10 {
			c.Add(Key{Name: fmt.Sprint(n)})
		}
		if err := c.Run(ctx); err != nil {
			t.Error(err)
		}
		if s := c.Stats(); s.Calls != 20 || s.Panics != 10 || s.Queue.Working != 0 {
			t.Errorf("%+v", s)
		}
	})
}

func TestTerminalErrorsWaitForAChange(t *testing.T) {
	stats := runFor(t, time.Hour, Options{}, func(context.Context, Key) (Result, error) {
		return Result{}, fmt.Errorf("in vain: %w", TerminalError(errors.New("no such image")))
	})
	if stats.Calls != 1 || stats.Failures != 1 {
		t.Errorf("%+v", stats)
	}
	if TerminalError(nil) != nil {
		t.Error("nothing has failed")
	}
}

func TestBackOff(t *testing.T) {
	for _, c := range []struct {
		opts           Options
		first, longest time.Duration
	}{
		{Options{}, DefaultBackoff, DefaultMaxBackoff},
		{Options{Backoff: time.Second, MaxBackoff: 3 * time.Second}, time.Second, 3 * time.Second},
		{Options{Backoff: time.Minute}, time.Minute, time.Minute},
		{Options{RateLimiter: workqueue.Exponential[Key](time.Millisecond, time.Second)}, time.Millisecond, time.Second},
	} {
		var last time.Time
		var first, longest time.Duration
		runFor(t, time.Hour, c.opts, func(context.Context, Key) (Result, error) {
			now := time.Now()
			if pause := now.Sub(last); !last.IsZero() {
				if first == 0 {
					first = pause
				}
				longest = max(longest, pause)
			}
			last = now
			return Result{}, errors.New("the server is away")
		})
		if first != c.first || longest != c.longest {
			t.Errorf("%+v: pauses from %v to %v, want %v to %v", c.opts, first, longest, c.first, c.longest)
		}
	}
}

func TestComesBackWhenAsked(t *testing.T) {
	var at []time.Duration
	var start time.Time
	stats := runFor(t, 25*time.Second, Options{}, func(context.Context, Key) (Result, error) {
		if start.IsZero() {
			start = time.Now()
		}
		at = append(at, time.Since(start))
		return Result{RequeueAfter: 10 * time.Second}, nil
	})
	if len(at) != 3 || at[1] != 10*time.Second || at[2] != 20*time.Second || stats.Requeues != 3 {
		t.Errorf("called at %v; %+v", at, stats)
	}
}

func TestSooner(t *testing.T) {
	for _, c := range [][3]time.Duration{{0, 0, 0}, {0, 5, 5}, {5, 0, 5}, {3, 5, 3}, {5, 3, 3}} {
		if got := Sooner(c[0], c[1]); got != c[2] {
			t.Errorf("Sooner(%d, %d) = %d", c[0], c[1], got)
		}
	}
}

func TestTimeoutEndsACall(t *testing.T) {
	var cause error
	stats := runFor(t, 2*time.Second, Options{Timeout: time.Second, Backoff: time.Hour}, func(ctx context.Context, _ Key) (Result, error) {
		<-ctx.Done()
		cause = context.Cause(ctx)
		return Result{}, ctx.Err()
	})
	if stats.Failures != 1 || stats.Timeouts != 1 || cause == nil || !strings.Contains(cause.Error(), "1s") {
		t.Errorf("%+v, cause %v", stats, cause)
	}
}

// Only the end of the call's own time is a timeout.
func TestTimeoutsAreCounted(t *testing.T) {
	for name, test := range map[string]struct {
		fn   ReconcileFunc
		want uint64
	}{
		"in time":          {func(context.Context, Key) (Result, error) { return Result{}, nil }, 0},
		"an error in time": {func(context.Context, Key) (Result, error) { return Result{}, context.DeadlineExceeded }, 0},
		"success too late": {func(context.Context, Key) (Result, error) { time.Sleep(time.Minute); return Result{}, nil }, 1},
		"a panic too late": {func(context.Context, Key) (Result, error) { time.Sleep(time.Minute); panic("a bug") }, 1},
		"stopped with Run": {func(ctx context.Context, _ Key) (Result, error) { <-ctx.Done(); return Result{}, ctx.Err() }, 0},
		"a shorter time of it": {func(ctx context.Context, _ Key) (Result, error) {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			<-ctx.Done()
			return Result{}, ctx.Err()
		}, 0},
	} {
		limit := 30 * time.Second
		if name == "stopped with Run" {
			limit = time.Hour
		}
		if stats := runFor(t, 2*time.Minute, Options{Timeout: limit, Backoff: time.Hour, Logger: slog.New(slog.DiscardHandler)}, test.fn); stats.Timeouts != test.want {
			t.Errorf("%s: %d timeouts, want %d", name, stats.Timeouts, test.want)
		}
	}
}

func TestOneKeyIsNeverWithTwoWorkersAndAllWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var mu sync.Mutex
		with, most := map[Key]bool{}, 0
		c := made(t, func(_ context.Context, key Key) (Result, error) {
			mu.Lock()
			if with[key] {
				t.Errorf("%s is with two workers", key)
			}
			with[key] = true
			most = max(most, len(with))
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			delete(with, key)
			mu.Unlock()
			return Result{RequeueAfter: time.Millisecond}, nil
		}, Options{Workers: 4})
		for n := range 6 {
			c.Add(Key{Name: fmt.Sprint(n)})
			c.AddAfter(Key{Name: fmt.Sprint(n)}, 1500*time.Millisecond) // while a worker has it
		}
		if err := c.Run(ctx); err != nil {
			t.Error(err)
		}
		if most != 4 {
			t.Errorf("%d workers worked at once, want 4", most)
		}
	})
}

func TestWhatWasThereBeforeWaitsForWhatChanges(t *testing.T) {
	for _, c := range []struct {
		share int
		want  string
	}{{-1, "[old-0 new-0 new-1 new-2 new-3 old-1 old-2]"}, {2, "[old-0 new-0 old-1 new-1 old-2 new-2 new-3]"}} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var order []string
			var ctl *Controller
			ctl = made(t, func(_ context.Context, key Key) (Result, error) {
				if len(order) == 0 { // it runs, so what comes now is fresh
					for n := range 4 {
						ctl.Add(Key{Name: fmt.Sprint("new-", n)})
					}
				}
				order = append(order, key.Name)
				return Result{}, nil
			}, Options{FairShare: c.share})
			for n := range 3 {
				ctl.Add(Key{Name: fmt.Sprint("old-", n)})
			}
			if err := ctl.Run(ctx); err != nil {
				t.Error(err)
			}
			if got := fmt.Sprint(order); got != c.want {
				t.Errorf("share %d: %s, want %s", c.share, got, c.want)
			}
		})
	}
}

// What a call has begun fails after it has returned, twice, and then succeeds.
func TestPendingCallsKeepTheirBackOff(t *testing.T) {
	var at []time.Duration
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		var c *Controller
		var later sync.WaitGroup
		c = made(t, func(_ context.Context, key Key) (Result, error) {
			at = append(at, time.Since(start))
			if n := len(at); n < 5 {
				later.Go(func() {
					time.Sleep(time.Millisecond)
					if n == 3 {
						c.Forget(key)
					}
					c.Retry(key)
				})
			}
			return Result{Pending: true}, nil
		}, Options{Backoff: time.Second})
		c.Add(key)
		if err := c.Run(ctx); err != nil {
			t.Error(err)
		}
		later.Wait()
	})
	want := []time.Duration{0, 1001 * time.Millisecond, 3002 * time.Millisecond, 4003 * time.Millisecond, 6004 * time.Millisecond}
	if !slices.Equal(at, want) {
		t.Errorf("called at %v, want %v", at, want)
	}
}

func TestGraceForCallsThatRun(t *testing.T) {
	for _, c := range []struct {
		name  string
		grace time.Duration
		cause error
		want  time.Duration
	}{
		{"none", 0, context.Canceled, 0},
		{"some", 10 * time.Second, context.Canceled, 10 * time.Second},
		{"enough", time.Hour, context.Canceled, time.Minute},
		{"another leads", time.Hour, leader.ErrLost, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				var began time.Time
				var took time.Duration
				ctl := made(t, func(ctx context.Context, _ Key) (Result, error) {
					began = time.Now()
					cancel(c.cause)
					select {
					case <-ctx.Done():
					case <-time.After(time.Minute): // done with what it had to do
					}
					took = time.Since(began)
					return Result{RequeueAfter: time.Second}, nil
				}, Options{StopGrace: c.grace})
				ctl.Add(key)
				ctl.AddAfter(Key{Name: "another"}, time.Second)
				if err := ctl.Run(ctx); err != nil {
					t.Error(err)
				}
				if s := ctl.Stats(); took != c.want || s.Calls != 1 || s.Queue.Working != 0 {
					t.Errorf("the call ended after %v, want %v; %+v", took, c.want, s)
				}
			})
		})
	}
}

func TestUnhealthyWhenACallDoesNotReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		stuck := func(ctx context.Context, _ Key) (Result, error) { <-ctx.Done(); return Result{}, nil }
		ended := make(chan error, 3)
		health := map[string]*Controller{}
		for name, after := range map[string]time.Duration{"default": 0, "sooner": time.Minute, "never": -1} {
			c := made(t, stuck, Options{Name: name, StuckAfter: after})
			c.Add(key)
			health[name] = c
			go func() { ended <- c.Run(ctx) }()
		}
		expect := func(after time.Duration, ill ...string) {
			t.Helper()
			time.Sleep(after)
			for name, c := range health {
				if err := c.Healthy(); (err != nil) != strings.Contains(fmt.Sprint(ill), name) {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
		expect(time.Second)
		expect(time.Minute, "sooner")
		expect(time.Hour, "sooner", "default")
		cancel()
		for range 3 {
			<-ended
		}
		expect(0)
	})
}

func TestOptionsAreChecked(t *testing.T) {
	fn := func(context.Context, Key) (Result, error) { return Result{}, nil }
	for name, opts := range map[string]Options{
		"no name":          {},
		"negative workers": {Name: "a", Workers: -1},
		"negative timeout": {Name: "a", Timeout: -1},
		"negative grace":   {Name: "a", StopGrace: -1},
		"negative backoff": {Name: "a", Backoff: -1},
		"limit too short":  {Name: "a", Backoff: 2 * time.Second, MaxBackoff: time.Second},
		"two back-offs":    {Name: "a", MaxBackoff: time.Minute, RateLimiter: workqueue.DefaultRateLimiter[Key]()},
	} {
		if _, err := New(fn, opts); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	for name, opts := range map[string]Options{
		"Timeout 30ns": {Timeout: 30}, "StopGrace 5ns": {StopGrace: 5}, "SyncTimeout 120ns": {SyncTimeout: 120},
		"StuckAfter 600ns": {StuckAfter: 600}, "Backoff 5ns": {Backoff: 5}, "MaxBackoff 30ns": {MaxBackoff: 30},
	} {
		opts.Name = "a"
		if _, err := New(fn, opts); err == nil || !strings.Contains(err.Error(), name+" is below") {
			t.Errorf("%s, a number without a unit: %v", name, err)
		}
	}
	if _, err := New(nil, Options{Name: "a"}); err == nil {
		t.Error("a controller of nothing: accepted")
	}
}

func TestLoggerHearsOfFailuresAndNotOfConflicts(t *testing.T) {
	var text strings.Builder
	calls := 0
	runFor(t, time.Minute, Options{Name: "widgets", Logger: slog.New(slog.NewTextHandler(&text, nil))}, func(context.Context, Key) (Result, error) {
		switch calls++; calls {
		case 1:
			return Result{}, errors.New("no room")
		case 2:
			return Result{}, apierrors.NewConflict(schema.GroupResource{}, "it", errors.New("changed"))
		}
		return Result{}, nil
	})
	if log := text.String(); strings.Count(log, "\n") != 1 || !strings.Contains(log, "no room") || !strings.Contains(log, "controller=widgets") || !strings.Contains(log, key.String()) {
		t.Errorf("logged %q", log)
	}
}

func TestRunsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		c := made(t, func(context.Context, Key) (Result, error) { return Result{}, nil }, Options{})
		ended := make(chan error, 1)
		go func() { ended <- c.Run(ctx) }()
		<-c.Synced()
		if err := c.Run(ctx); err == nil {
			t.Error("ran twice at once")
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := c.Run(t.Context()); err == nil {
			t.Error("ran again")
		}
	})
}

// never is a source that is not synced.
type never struct{}

func (never) Synced() <-chan struct{} { return nil }

func TestNothingIsCalledBeforeAllIsThere(t *testing.T) {
	fn := func(context.Context, Key) (Result, error) { t.Error("called"); return Result{}, nil }
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		c := made(t, fn, Options{})
		c.RequireSync("the other cache", never{})
		c.Add(key)
		if err := c.Run(ctx); err != nil || c.HasSynced() {
			t.Errorf("%v, synced %v", err, c.HasSynced())
		}
	})
	synctest.Test(t, func(t *testing.T) {
		c := made(t, fn, Options{SyncTimeout: time.Minute})
		c.RequireSync("the other cache", never{})
		if err := c.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "the other cache") {
			t.Errorf("got %v", err)
		}
	})
}
