package fairqueue

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/levelwire/levelwire/internal/testseed"
)

// waiting is a request that waits, without a goroutine: the race detector allows 8128 of
// those at once.
type waiting struct {
	hold   Hold
	waiter *waiter
}

func (s *Seats) enqueued(f Flow) waiting {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := f.Level.flowOf(flowKey{f.Schema, f.Key})
	return waiting{Hold{f.Level, of, 1}, f.Level.enqueue(of, 1, true)}
}

// TestManyWaitersLeave in any order: those that stay get their seats in the order in which
// they came.
func TestManyWaitersLeave(t *testing.T) {
	const n, every = 20_000, 1000
	for name, key := range map[string]func(i int) string{
		"of one flow":   func(int) string { return "watches" },
		"of many flows": func(i int) string { return fmt.Sprint(i) },
	} {
		t.Run(name, func(t *testing.T) {
			s := seats(1, queuing("l", 1))
			held, err := s.flow("l", "other", 1).Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			all := make([]waiting, n)
			for i := range all {
				all[i] = s.enqueued(s.flow("l", key(i), 1))
			}
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			for _, i := range testseed.New(t).Rand(0).Perm(n) {
				if i%every == 0 {
					continue
				}
				if err := s.wait(ended, all[i].hold, all[i].waiter, true); !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
			}
			if got := s.stats(t, "l").Schemas[0]; got.Waiting != n/every || got.Rejected.Cancelled != n-n/every {
				t.Errorf("%d wait and %d were cancelled, of %d", got.Waiting, got.Rejected.Cancelled, n)
			}
			for i := 0; i < n; i += every {
				held.Release()
				held = all[i].hold
				select {
				case <-all[i].waiter.granted:
				default:
					t.Fatalf("waiter %d did not get the seat when its turn came", i)
				}
			}
			held.Release()
			s.wantIdle(t)
		})
	}
}

// TestWaitsDoNotFillTheQueues: requests that cannot be refused are not bounded by the
// limits of the queues, and leave them to the requests of their own user and of others.
func TestWaitsDoNotFillTheQueues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := seats(1, queuing("l", 1))
		held, err := s.flow("l", "hangs", 1).Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		const watches = 600 // the level's queues hold 500 requests, a flow's 50
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := make(chan error, watches)
		for range watches {
			go func() {
				_, err := s.flow("l", "a", 1).Wait(ctx)
				ended <- err
			}()
		}
		synctest.Wait()
		answers := make(chan error, 102)
		for _, key := range []string{"a", "b"} {
			for range 51 {
				go func() {
					_, err := s.flow("l", key, 1).Acquire(t.Context())
					answers <- err
				}()
			}
		}
		synctest.Wait()
		if got := s.stats(t, "l").Schemas[0]; got.Waiting != watches+100 || got.Rejected != (Rejections{QueueFull: 2}) {
			t.Errorf("%d wait and %+v were refused, want one more than its queue holds for each user", got.Waiting, got.Rejected)
		}
		cancel()
		for range watches {
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
		if _, err := s.flow("l", "b", 1).Acquire(t.Context()); !errors.Is(err, ErrQueueFull) {
			t.Errorf("the queue of b is still full, and the answer is %v", err)
		}
		time.Sleep(wait + time.Second)
		synctest.Wait()
		if got := s.stats(t, "l").Schemas[0]; got.Waiting != 0 || got.Rejected.Timeout != 100 {
			t.Errorf("%+v", got)
		}
		held.Release()
		s.wantIdle(t)
	})
}

// BenchmarkLeave measures what a request that comes and leaves costs while others of its
// flow wait: the same however many they are, because all requests of the server wait for
// the lock meanwhile.
func BenchmarkLeave(b *testing.B) {
	for _, others := range []int{10, 40_000} {
		b.Run(fmt.Sprint(others), func(b *testing.B) {
			s := seats(1, queuing("l", 1))
			if _, err := s.flow("l", "other", 1).Acquire(b.Context()); err != nil {
				b.Fatal(err)
			}
			f := s.flow("l", "watches", 1)
			for range others {
				s.enqueued(f)
			}
			ended, cancel := context.WithCancel(b.Context())
			cancel()
			for b.Loop() {
				if _, err := f.Wait(ended); !errors.Is(err, context.Canceled) {
					b.Fatal(err)
				}
			}
		})
	}
}
