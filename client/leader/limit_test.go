package leader

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// hangingAt has some requests, counted from 1, hang until their contexts end.
func hangingAt(hanging ...int) func() trouble {
	var mu sync.Mutex
	n := 0
	return func() trouble {
		mu.Lock()
		defer mu.Unlock()
		n++
		for _, h := range hanging {
			if n == h {
				return trouble{hangs: true}
			}
		}
		return trouble{}
	}
}

func shortDeadline(o *Options) { o.LeaseDuration, o.RenewDeadline = 4*time.Second, 3*time.Second }

// A leader whose renewal is never answered tries again in time.
func TestLeaderOutlivesARequestThatHangs(t *testing.T) {
	for name, test := range map[string]struct {
		hanging []int
		change  func(*Options)
	}{
		"the first renewal":             {hanging: []int{3}},
		"a later one":                   {hanging: []int{10}},
		"two after each other":          {hanging: []int{10, 11}},
		"each third":                    {hanging: []int{6, 9, 12, 15, 18}},
		"one under a short deadline":    {hanging: []int{10}, change: shortDeadline},
		"each third, a short deadline":  {hanging: []int{6, 9, 12, 15, 18}, change: shortDeadline},
		"the release, and is repeated":  {hanging: []int{33}},
		"the creation of the Lease":     {hanging: []int{2}},
		"the first read of a candidate": {hanging: []int{1}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := candidate(t, "a", line{&store{}, hangingAt(test.hanging...)}, func(o *Options) {
					if test.change != nil {
						test.change(o)
					}
				})
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute+DefaultRetryPeriod/2)
				defer cancel()
				if err := e.Run(ctx, untilEnd); err != nil {
					t.Error(err)
				}
				if s := e.Stats(); s.Lost != 0 || s.Acquired != 1 || s.Failures == 0 && test.hanging[0] != 33 {
					t.Errorf("%+v", s)
				}
			})
		})
	}
}

// A leader whose write was overtaken reads the Lease and writes again. Each of the three
// requests may hang.
func TestLeaderOutlivesAHangAfterAConflict(t *testing.T) {
	for hanging := 0; hanging < 3; hanging++ {
		synctest.Test(t, func(t *testing.T) {
			s := &store{}
			var armed atomic.Bool
			var after atomic.Int64 // so many requests before the one that hangs
			after.Store(int64(hanging))
			e := candidate(t, "a", line{s, func() trouble {
				return trouble{hangs: armed.Load() && after.Add(-1) == -1}
			}})
			ctx, cancel := context.WithCancel(t.Context())
			started, ended := campaign(ctx, e, untilEnd)
			<-started
			time.Sleep(DefaultRetryPeriod / 2)
			lease, _ := s.get()
			lease.Annotations = map[string]string{"changed": "by another client"}
			if _, err := s.put(lease); err != nil {
				t.Fatal(err)
			}
			armed.Store(true)
			time.Sleep(time.Minute)
			if st := e.Stats(); st.Lost != 0 || !e.IsLeader() || st.Failures == 0 {
				t.Errorf("request %d hangs: %+v", hanging, st)
			}
			cancel()
			<-ended
		})
	}
}

// Everything hangs on a connection that is dead. The next attempt is made on another one:
// one to take the Lease, to renew it, and to release it.
func TestDeadConnectionIsLeft(t *testing.T) {
	for name, dead := range map[string]int{"to read": 1, "to create": 2, "to renew": 10, "to release": 33} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				requests, alive, left := 0, true, 0
				s := &store{}
				e := candidate(t, "a", line{s, func() trouble {
					mu.Lock()
					defer mu.Unlock()
					if requests++; requests == dead {
						alive = false
					}
					return trouble{hangs: !alive}
				}})
				e.reconnect = func() {
					mu.Lock()
					defer mu.Unlock()
					alive = true
					left++
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute+DefaultRetryPeriod/2)
				defer cancel()
				if err := e.Run(ctx, untilEnd); err != nil {
					t.Error(err)
				}
				if st := e.Stats(); st.Lost != 0 || st.Acquired != 1 || left != 1 || requests < 30 {
					t.Errorf("%+v; %d requests, left %d connections", st, requests, left)
				}
				if lease, err := s.get(); err != nil || holder(lease) != "" {
					t.Errorf("not released: %v, %v", lease, err)
				}
			})
		})
	}
}

// A candidate whose request hangs takes over soon after the Lease of a dead leader has run
// out, whichever request it is.
func TestTakeoverAfterARequestThatHangs(t *testing.T) {
	for hanging := 1; hanging <= 12; hanging++ {
		synctest.Test(t, func(t *testing.T) {
			s := &store{}
			if held, err := candidate(t, "dead", line{store: s}).try(t.Context()); !held || err != nil {
				t.Fatal(held, err)
			}
			start := time.Now()
			next := candidate(t, "next", line{s, hangingAt(hanging)})
			ctx, cancel := context.WithCancel(t.Context())
			started, ended := campaign(ctx, next, untilEnd)
			<-started
			most := DefaultLeaseDuration + DefaultRetryPeriod + DefaultRetryPeriod/2
			if hanging == 1 { // it sees the Lease only then
				most += DefaultRetryPeriod
			}
			if took := time.Since(start); took < DefaultLeaseDuration || took > most {
				t.Errorf("request %d hangs: leads %v after the dead leader's renewal, want at most %v", hanging, took, most)
			}
			cancel()
			<-ended
		})
	}
}

// A server that is slow, but answers, has a leader all the same: one that takes over and
// one that stays.
func TestSlowServerHasALeader(t *testing.T) {
	for _, back := range []time.Duration{1500 * time.Millisecond, 2500 * time.Millisecond, 3500 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			s := &store{}
			if held, err := candidate(t, "dead", line{store: s}).try(t.Context()); !held || err != nil {
				t.Fatal(held, err)
			}
			e := candidate(t, "next", line{s, func() trouble { return trouble{back: back} }})
			ctx, cancel := context.WithCancel(t.Context())
			start := time.Now()
			started, ended := campaign(ctx, e, untilEnd)
			<-started
			if took := time.Since(start); took > time.Minute {
				t.Errorf("answers after %v: leads after %v", back, took)
			}
			time.Sleep(10 * time.Minute)
			if st := e.Stats(); st.Lost != 0 || !e.IsLeader() {
				t.Errorf("answers after %v: %+v", back, st)
			}
			cancel()
			<-ended
		})
	}
}

// A Lease that was deleted holds nobody up: it needs no release.
func TestReleaseOfALeaseThatHasGone(t *testing.T) {
	for name, between := range map[string]func(*store){
		"before the release": func(s *store) { s.lease = nil },
		"between a conflict and the read": func(s *store) {
			s.version++
			s.lease.ResourceVersion = fmt.Sprint(s.version)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &store{}
				var stopping atomic.Bool
				requests := 0
				e := candidate(t, "a", line{s, func() trouble {
					if stopping.Load() {
						if requests++; requests == 2 {
							s.mu.Lock()
							s.lease = nil
							s.mu.Unlock()
						}
					}
					return trouble{}
				}})
				release := make(chan struct{})
				failure := errors.New("done")
				started, ended := campaign(t.Context(), e, func(context.Context) error { <-release; return failure })
				<-started
				time.Sleep(DefaultRetryPeriod / 2)
				s.mu.Lock()
				between(s)
				s.mu.Unlock()
				stopping.Store(true)
				close(release)
				if err := <-ended; !errors.Is(err, failure) || errors.Is(err, ErrNotReleased) {
					t.Errorf("Run returned %v, want what the work did, alone", err)
				}
				if e.Leader() != "" {
					t.Errorf("%q still is the leader, to this candidate", e.Leader())
				}
			})
		})
	}
}
