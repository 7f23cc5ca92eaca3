package leader

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	_ "github.com/levelwire/levelwire/internal/testwatchdog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func candidate(t *testing.T, identity string, api leases, change ...func(*Options)) *Elector {
	t.Helper()
	opts := Options{Namespace: "ns", Name: "it", Identity: identity}
	for _, f := range change {
		f(&opts)
	}
	if err := opts.complete(); err != nil {
		t.Fatal(err)
	}
	return newElector(api, opts)
}

// untilEnd is work that goes on until its context ends.
func untilEnd(ctx context.Context) error { <-ctx.Done(); return nil }

// campaign runs a candidate in the background. started is closed when it
// leads for the first time, ended gives what Run returned.
func campaign(ctx context.Context, e *Elector, work func(context.Context) error) (started <-chan struct{}, ended <-chan error) {
	leads, result := make(chan struct{}), make(chan error, 1)
	go func() {
		result <- e.Run(ctx, func(ctx context.Context) error {
			close(leads)
			return work(ctx)
		})
	}()
	return leads, result
}

// TestResourceVersionOfALeader: the leader's context has the version of the Lease with which it has won, in each term, and no other
// context has.
func TestResourceVersionOfALeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		for _, identity := range []string{"a", "b", "a"} {
			e := candidate(t, identity, line{store: s})
			err := e.Run(t.Context(), func(ctx context.Context) error {
				won, err := s.get()
				if err != nil {
					return err
				}
				if err := wait(ctx, time.Minute); err != nil { // it is renewed meanwhile
					return err
				}
				if got := ResourceVersion(ctx); got != won.ResourceVersion {
					t.Errorf("%s has won with version %q, and its context says %q", identity, won.ResourceVersion, got)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		}
		if got := ResourceVersion(t.Context()); got != "" {
			t.Errorf("a context of no leader has version %q", got)
		}
	})
}

// admission is a server that puts another name into each Lease that is written.
type admission struct{ line }

func (a admission) Create(ctx context.Context, lease *coordinationv1.Lease, opts metav1.CreateOptions) (*coordinationv1.Lease, error) {
	return a.line.Create(ctx, renamed(lease), opts)
}

func (a admission) Update(ctx context.Context, lease *coordinationv1.Lease, opts metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	return a.line.Update(ctx, renamed(lease), opts)
}

func renamed(lease *coordinationv1.Lease) *coordinationv1.Lease {
	lease = lease.DeepCopy()
	other := "other"
	lease.Spec.HolderIdentity = &other
	return lease
}

// A candidate does not lead with a Lease that was written, and has another name.
func TestAnswerWithAnotherHolder(t *testing.T) {
	for name, before := range map[string]*coordinationv1.Lease{
		"the lease is made":  nil,
		"the lease is taken": {ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "it", ResourceVersion: "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				defer cancel()
				e := candidate(t, "a", admission{line{store: &store{lease: before}}})
				err := e.Run(ctx, func(context.Context) error {
					t.Error("it leads")
					return nil
				})
				if stats := e.Stats(); err != nil || stats.Acquired != 0 || stats.Failures == 0 || stats.Leader != "other" {
					t.Errorf("%v, %+v", err, stats)
				}
			})
		})
	}
}

// TestNeverTwoLeaders runs three candidates for hours behind bad lines. Each
// ends its work the moment its context ends.
func TestNeverTwoLeaders(t *testing.T) {
	for seed := range uint64(6) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 8*time.Hour)
			defer cancel()
			s := &store{}
			var mu sync.Mutex
			leading, count := "", 0
			var group sync.WaitGroup
			for n := range 3 {
				terms := rand.New(rand.NewPCG(seed, uint64(n)))
				e := candidate(t, fmt.Sprint("candidate-", n), line{s, weather(rand.New(rand.NewPCG(uint64(n), seed)))})
				group.Go(func() {
					for ctx.Err() == nil {
						err := e.Run(ctx, func(ctx context.Context) error {
							mu.Lock()
							if leading != "" {
								t.Errorf("seed %d: %s leads while %s does", seed, e.Identity(), leading)
							}
							leading = e.Identity()
							count++
							mu.Unlock()
							err := wait(ctx, time.Duration(terms.Int64N(int64(10*time.Minute))))
							mu.Lock()
							leading = ""
							mu.Unlock()
							return err
						})
						if err != nil && ctx.Err() == nil && !errors.Is(err, ErrLost) && !errors.Is(err, ErrNotReleased) {
							t.Errorf("seed %d: %v", seed, err)
						}
					}
				})
			}
			group.Wait()
			if count < 20 {
				t.Errorf("seed %d: %d terms in eight hours", seed, count)
			}
		})
	}
}

func TestOthersLeadOnlyAfterTheLeaseOfADeadLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		// A leader that died at once: it renewed when it took the Lease.
		dead := candidate(t, "dead", line{store: s})
		if held, err := dead.try(t.Context()); !held || err != nil {
			t.Fatal(held, err)
		}
		start := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		next := candidate(t, "next", line{store: s})
		started, ended := campaign(ctx, next, untilEnd)
		<-started
		if took := time.Since(start); took < DefaultLeaseDuration || took > DefaultLeaseDuration+DefaultRetryPeriod/2 {
			t.Errorf("took over after %v, want soon after %v", took, DefaultLeaseDuration)
		}
		if lease, _ := s.get(); *lease.Spec.LeaseTransitions != 1 || *lease.Spec.HolderIdentity != "next" || !lease.Spec.AcquireTime.Time.Equal(lease.Spec.RenewTime.Time) {
			t.Errorf("lease %+v", lease.Spec)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// The clock of the leader's machine shows any time: only how long the Lease
// does not change counts.
func TestTimesInTheLeaseAreNotCompared(t *testing.T) {
	for _, shift := range []time.Duration{-24 * time.Hour, 24 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			s := &store{}
			odd := candidate(t, "odd", line{store: s})
			odd.wall = func() time.Time { return time.Now().Add(shift) }
			ctx, cancel := context.WithCancel(t.Context())
			started, ended := campaign(ctx, odd, untilEnd)
			<-started
			waiting, stopWaiting := context.WithTimeout(t.Context(), time.Hour)
			defer stopWaiting()
			early, earlyEnded := campaign(waiting, candidate(t, "other", line{store: s}), untilEnd)
			<-earlyEnded
			select {
			case <-early:
				t.Errorf("clock off by %v: another led beside it", shift)
			default:
			}
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

func TestLeaderStopsWhenItCannotRenew(t *testing.T) {
	for name, bad := range map[string]trouble{"refused": {lostThere: true}, "hangs": {hangs: true}, "answers are lost": {lostBack: true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var cut bool
				var mu sync.Mutex
				s := &store{}
				e := candidate(t, "a", line{s, func() trouble {
					mu.Lock()
					defer mu.Unlock()
					if cut {
						return bad
					}
					return trouble{}
				}})
				var cause error
				started, ended := campaign(t.Context(), e, func(ctx context.Context) error {
					<-ctx.Done()
					cause = context.Cause(ctx)
					return ctx.Err()
				})
				<-started
				time.Sleep(time.Minute + DefaultRetryPeriod/2)
				if !e.IsLeader() || e.Leader() != "a" {
					t.Error("does not lead")
				}
				mu.Lock()
				cut = true
				mu.Unlock()
				renewed := e.Stats().Renewed
				err := <-ended
				if !errors.Is(err, ErrLost) || !errors.Is(cause, ErrLost) || e.IsLeader() {
					t.Errorf("Run returned %v, the context ended with %v, leading %v", err, cause, e.IsLeader())
				}
				if took := time.Since(renewed); took != DefaultRenewDeadline {
					t.Errorf("stopped %v after the last renewal, want %v", took, DefaultRenewDeadline)
				}
				if s := e.Stats(); s.Lost != 1 || s.Acquired != 1 || s.Failures == 0 {
					t.Errorf("%+v", s)
				}
			})
		})
	}
}

func TestLeaderGivesInToAnotherName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		e := candidate(t, "a", line{store: s})
		started, ended := campaign(t.Context(), e, untilEnd)
		<-started
		lease, _ := s.get()
		other := "thief"
		lease.Spec.HolderIdentity = &other
		if _, err := s.put(lease); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if err := <-ended; !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "thief") {
			t.Errorf("got %v", err)
		}
		if took := time.Since(start); took > DefaultRetryPeriod {
			t.Errorf("noticed after %v", took)
		}
		if lease, _ := s.get(); *lease.Spec.HolderIdentity != "thief" {
			t.Error("released what was another's")
		}
	})
}

// A machine that was suspended finds its monotonic clock where it was; the
// wall clock knows better.
func TestSuspendedLeaderNoticesByTheWallClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		slept := time.Duration(0)
		e := candidate(t, "a", line{store: &store{}})
		e.wall = func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return time.Now().Add(slept)
		}
		started, ended := campaign(t.Context(), e, untilEnd)
		<-started
		mu.Lock()
		slept = time.Minute
		mu.Unlock()
		start := time.Now()
		if err := <-ended; !errors.Is(err, ErrLost) || time.Since(start) > DefaultRetryPeriod {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
	})
}

func TestWallClockSetBackCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := candidate(t, "a", line{store: &store{}})
		e.wall = func() time.Time { return time.Now().Add(-time.Since(time.Unix(0, 0))) }
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := e.Run(ctx, untilEnd); err != nil {
			t.Error(err)
		}
		if s := e.Stats(); s.Lost != 0 || s.Renewals < 1000 {
			t.Errorf("%+v", s)
		}
	})
}

func TestReleasedLeaseIsTakenWithoutWaiting(t *testing.T) {
	for _, keep := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := &store{}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			first := candidate(t, "first", line{store: s}, func(o *Options) { o.KeepOnStop = keep })
			release := make(chan struct{})
			failure := errors.New("done")
			started, firstEnded := campaign(ctx, first, func(context.Context) error { <-release; return failure })
			<-started
			next, nextEnded := campaign(ctx, candidate(t, "next", line{store: s}), untilEnd)
			time.Sleep(time.Minute)
			start := time.Now()
			close(release)
			<-next
			if err := <-firstEnded; !errors.Is(err, failure) {
				t.Errorf("Run returned %v, want what the work did", err)
			}
			if took := time.Since(start); keep == (took < DefaultLeaseDuration-DefaultRetryPeriod) {
				t.Errorf("kept: %v; taken after %v", keep, took)
			}
			cancel()
			<-nextEnded
		})
	}
}

// A renewal whose answer the leader did not wait for may still have been
// written.
func TestReleaseOvertakesARenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		e := candidate(t, "a", line{store: s, trouble: func() trouble { return trouble{back: time.Second / 2} }})
		release := make(chan struct{})
		started, ended := campaign(t.Context(), e, func(context.Context) error { <-release; return nil })
		<-started
		before, _ := s.get()
		for now := before; now.ResourceVersion == before.ResourceVersion; now, _ = s.get() {
			time.Sleep(DefaultRetryPeriod / 100)
		}
		close(release) // the server has renewed, and its answer is on the way
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if lease, _ := s.get(); holder(lease) != "" {
			t.Errorf("%q still holds the lease", holder(lease))
		}
	})
}

// The Lease is kept until the work has stopped, and released only then.
func TestLeaseIsHeldUntilTheWorkHasStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		stopping, stopFirst := context.WithCancel(t.Context())
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var stopped time.Time
		first := candidate(t, "first", line{store: s})
		started, firstEnded := campaign(stopping, first, func(ctx context.Context) error {
			<-ctx.Done()
			time.Sleep(5 * DefaultLeaseDuration) // a long goodbye
			stopped = time.Now()
			return nil
		})
		<-started
		next, nextEnded := campaign(ctx, candidate(t, "next", line{store: s}), untilEnd)
		stopFirst()
		if err := <-firstEnded; err != nil {
			t.Error(err)
		}
		<-next
		if time.Now().Before(stopped) || time.Since(stopped) > 2*DefaultRetryPeriod {
			t.Errorf("the next leads %v after the first has stopped", time.Since(stopped))
		}
		cancel()
		<-nextEnded
	})
}

func TestLeaseThatCannotBeReleasedRunsOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		requests := 0
		e := candidate(t, "a", line{&store{}, func() trouble { requests++; return trouble{hangs: requests > 2} }})
		start := time.Now()
		err := e.Run(t.Context(), func(context.Context) error { return nil })
		if !errors.Is(err, ErrNotReleased) || time.Since(start) != releaseTimeout {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
	})
}

func TestAFunctionOfNilIsRefusedBeforeTheLeaseIsTaken(t *testing.T) {
	s := &store{}
	if err := candidate(t, "a", line{store: s}).Run(t.Context(), nil); err == nil {
		t.Error("accepted")
	}
	if lease, _ := s.get(); lease != nil {
		t.Errorf("the Lease was taken: %v", lease)
	}
}

func TestSameIdentityLeadsAgainAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		killed := candidate(t, "pod-0", line{store: s})
		if held, err := killed.try(t.Context()); !held || err != nil {
			t.Fatal(held, err)
		}
		acquired, _ := s.get()
		start := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		started, ended := campaign(ctx, candidate(t, "pod-0", line{store: s}), untilEnd)
		<-started
		if took := time.Since(start); took != 0 {
			t.Errorf("waited %v", took)
		}
		if lease, _ := s.get(); *lease.Spec.LeaseTransitions != 0 || !lease.Spec.AcquireTime.Equal(acquired.Spec.AcquireTime) {
			t.Errorf("lease %+v", lease.Spec)
		}
		cancel()
		<-ended
	})
}

func TestCandidateWithoutAServerEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := candidate(t, "a", line{&store{}, func() trouble { return trouble{hangs: true} }})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := e.Run(ctx, func(context.Context) error { t.Error("led"); return nil }); err != nil {
			t.Error(err)
		}
		if e.Stats().Failures < 100 {
			t.Errorf("%+v", e.Stats())
		}
	})
}

func TestRunIsNotForTwo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := candidate(t, "a", line{store: &store{}})
		ctx, cancel := context.WithCancel(t.Context())
		started, ended := campaign(ctx, e, untilEnd)
		<-started
		if err := e.Run(ctx, untilEnd); err == nil {
			t.Error("one candidate ran twice")
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := e.Run(ctx, untilEnd); err != nil { // ended at once
			t.Error(err)
		}
	})
}

func TestUnhealthyWhileTheWorkIgnoresTheLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		requests := 0
		e := candidate(t, "a", line{&store{}, func() trouble { requests++; return trouble{lostThere: requests > 2} }})
		_, ended := campaign(t.Context(), e, func(context.Context) error { time.Sleep(time.Minute); return nil })
		time.Sleep(DefaultRenewDeadline - time.Second)
		if err := e.Healthy(); err != nil {
			t.Error(err)
		}
		time.Sleep(2 * time.Second)
		if err := e.Healthy(); !errors.Is(err, ErrLost) {
			t.Errorf("got %v", err)
		}
		<-ended
		if err := e.Healthy(); err != nil {
			t.Errorf("after the end: %v", err)
		}
	})
}

func TestOtherFieldsOfTheLeaseStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		strategy := coordinationv1.OldestEmulationVersion
		s := &store{}
		if _, err := s.put(&coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: "it", Labels: map[string]string{"a": "b"}},
			Spec:       coordinationv1.LeaseSpec{Strategy: &strategy},
		}); err != nil {
			t.Fatal(err)
		}
		var seen []string
		e := candidate(t, "a", line{store: s}, func(o *Options) { o.OnNewLeader = func(identity string) { seen = append(seen, identity) } })
		if err := e.Run(t.Context(), func(context.Context) error { time.Sleep(time.Minute); return nil }); err != nil {
			t.Fatal(err)
		}
		lease, _ := s.get()
		if lease.Labels["a"] != "b" || lease.Spec.Strategy == nil || *lease.Spec.Strategy != strategy || lease.Spec.HolderIdentity != nil {
			t.Errorf("%+v", lease)
		}
		if len(seen) != 1 || seen[0] != "a" {
			t.Errorf("OnNewLeader got %q", seen)
		}
	})
}

// A leader that finds the Lease written by another client reads it and renews all the
// same. That is counted: each time costs two requests more.
func TestRenewalsThatHadToReadFirstAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		label := func(value string) {
			lease, err := s.get()
			if err == nil {
				lease.Labels = map[string]string{"written": value}
				_, err = s.put(lease)
			}
			if err != nil {
				t.Error(err)
			}
		}
		e := candidate(t, "a", line{store: s})
		if held, err := e.try(t.Context()); !held || err != nil {
			t.Fatal(held, err)
		}
		label("before the start") // an acquisition is no renewal
		ctx, cancel := context.WithCancel(t.Context())
		started, ended := campaign(ctx, e, untilEnd)
		<-started
		renewed := func(periods int) uint64 {
			time.Sleep(time.Duration(periods)*DefaultRetryPeriod + DefaultRetryPeriod/2)
			synctest.Wait()
			return e.Stats().SlowRenewals
		}
		if got := renewed(3); got != 0 {
			t.Errorf("%d although no other client wrote", got)
		}
		label("once")
		if got := renewed(3); got != 1 {
			t.Errorf("%d after one write of another client", got)
		}
		label("twice")
		if got := renewed(3); got != 2 || !e.Stats().Leading {
			t.Errorf("%+v after two", e.Stats())
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestAClientOfNilIsRefused(t *testing.T) {
	if e, err := New(nil, Options{Namespace: "ns", Name: "it"}); err == nil || !strings.Contains(err.Error(), "client") {
		t.Errorf("%v, %v", e, err)
	}
}
