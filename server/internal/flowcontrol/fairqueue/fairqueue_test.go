package fairqueue

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/levelwire/levelwire/internal/testseed"
	_ "github.com/levelwire/levelwire/internal/testwatchdog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const wait = 15 * time.Second

// queuing is a level with queues that one flow can fill by a tenth.
func queuing(name string, shares int) Config {
	return Config{Name: name, Shares: shares, BorrowPercent: -1, Queues: 10, HandSize: 1, QueueLength: 50, Schemas: []string{"s"}}
}

// rejecting is a level without queues.
func rejecting(name string, shares int) Config {
	return Config{Name: name, Shares: shares, BorrowPercent: -1, Schemas: []string{"s"}}
}

func seats(count int, levels ...Config) *Seats {
	s := New(count, wait)
	s.Configure(levels)
	return s
}

func (s *Seats) flow(level, key string, n int) Flow {
	l := s.Level(level)
	return Flow{Level: l, Schema: l.Schema("s"), Key: key, Seats: n}
}

// takeAll takes single seats until one is refused.
func takeAll(t *testing.T, f Flow) (held []Hold) {
	t.Helper()
	for {
		hold, err := f.Acquire(t.Context())
		if err != nil {
			return held
		}
		held = append(held, hold)
	}
}

func release(held []Hold) {
	for _, hold := range held {
		hold.Release()
	}
}

// stats returns the state of a level.
func (s *Seats) stats(t *testing.T, level string) LevelStats {
	t.Helper()
	for _, stats := range s.Stats(true) {
		if stats.Name == level {
			return stats
		}
	}
	t.Fatalf("no level %s", level)
	return LevelStats{}
}

// wantIdle checks that nothing is left of the requests.
func (s *Seats) wantIdle(t *testing.T) {
	t.Helper()
	for _, stats := range s.Stats(true) {
		if stats.Used != 0 || len(stats.Flows) != 0 {
			t.Errorf("left: %+v", stats)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) != 0 {
		t.Errorf("%d levels wait", len(s.waiting))
	}
	counted := int64(0)
	for _, l := range s.levels {
		counted += l.counts()
		if l.queue.Len() != 0 || l.waiters != 0 || l.queued != 0 || l.blocked {
			t.Errorf("left in level %s: a queue of %d flows, %d waiters, %d queued, blocked %v",
				l.config.Name, l.queue.Len(), l.waiters, l.queued, l.blocked)
		}
	}
	if counted != s.counted {
		t.Errorf("%d seats are counted, want %d", s.counted, counted)
	}
}

// TestOneFlowCannotHoldAll, nor can several: each that comes later gets something.
func TestOneFlowCannotHoldAll(t *testing.T) {
	s := seats(800, rejecting("l", 1))
	var first []Hold
	for i, want := range []int{600, 150, 37, 9, 3, 1} {
		got := takeAll(t, s.flow("l", fmt.Sprint("greedy-", i), 1))
		if len(got) != want {
			t.Errorf("flow %d got %d of 800, want %d", i, len(got), want)
		}
		if i == 0 {
			first = got
		}
	}
	release(first)
	if got := takeAll(t, s.flow("l", "greedy-1", 1)); len(got) < 100 {
		t.Errorf("after the first has released its seats, the second got %d more", len(got))
	}
}

func TestOneFlowMayHoldAllIfItIsTheOnlyOne(t *testing.T) {
	s := seats(7, Config{Name: "l", Shares: 1, OneFlow: true, BorrowPercent: -1, Schemas: []string{"s"}})
	if got := takeAll(t, s.flow("l", "", 1)); len(got) != 7 {
		t.Errorf("got %d of 7", len(got))
	}
}

// TestLimits: nominal, guaranteed and borrowed seats are those of KEP-1040.
func TestLimits(t *testing.T) {
	s := New(600, wait)
	s.Configure([]Config{
		{Name: "exempt", Exempt: true},
		{Name: "catch-all", Shares: 5, BorrowPercent: -1},
		{Name: "global-default", Shares: 20, LendablePercent: 50, BorrowPercent: -1},
		{Name: "system", Shares: 30, LendablePercent: 33, BorrowPercent: 10},
		{Name: "rest", Shares: 190, LendablePercent: 90, BorrowPercent: 0},
	})
	for name, want := range map[string][3]int64{ // computed by hand from the formulas of the KEP
		"catch-all": {13, 13, 602}, "global-default": {49, 24, 602}, "system": {74, 50, 81}, "rest": {466, 47, 466}, "exempt": {},
	} {
		got := s.stats(t, name)
		if limits := [3]int64{got.Nominal, got.Lower, got.Upper}; limits != want {
			t.Errorf("%s: nominal, lower and upper limits are %d, want %d", name, limits, want)
		}
	}
}

// TestLevelsBorrowWhatOthersDoNotUse, and get back what they have lent.
func TestLevelsBorrowWhatOthersDoNotUse(t *testing.T) {
	high, low := rejecting("high", 50), rejecting("low", 50)
	high.LendablePercent, high.OneFlow, low.OneFlow = 40, true, true
	s := seats(100, high, low)
	borrowed := takeAll(t, s.flow("low", "", 1))
	if len(borrowed) != 70 {
		t.Errorf("low got %d: its own 50 and 20 that high lends would be 70", len(borrowed))
	}
	if got := takeAll(t, s.flow("high", "", 1)); len(got) != 30 {
		t.Errorf("high got %d of the 30 that it does not lend", len(got))
	}
	release(borrowed[:20])
	if got := takeAll(t, s.flow("high", "", 1)); len(got) != 20 {
		t.Errorf("high got back %d of 20", len(got))
	}
	if got := takeAll(t, s.flow("low", "", 1)); len(got) != 0 {
		t.Errorf("low has borrowed %d that high uses", len(got))
	}
}

// TestALenderComesFirst: when both wait for a seat, the level that uses less of its own
// gets it.
func TestALenderComesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		high, low := queuing("high", 10), queuing("low", 10)
		high.LendablePercent, high.OneFlow, low.OneFlow = 100, true, true
		s := seats(20, high, low)
		var held []Hold
		for range 20 {
			hold, err := s.flow("low", "", 1).Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			held = append(held, hold)
		}
		order := make(chan string, 3)
		ask := func(level string) {
			go func() {
				if _, err := s.flow(level, "", 1).Acquire(t.Context()); err == nil {
					order <- level
				}
			}()
			synctest.Wait()
		}
		ask("low")
		ask("high")
		ask("low")
		for _, want := range []string{"high", "low", "low"} {
			held[0].Release()
			held = held[1:]
			if got := <-order; got != want {
				t.Errorf("%s got the seat, want %s", got, want)
			}
		}
	})
}

// TestExemptRequestsDoNotWait, and take nothing from others.
func TestExemptRequestsDoNotWait(t *testing.T) {
	s := seats(4, Config{Name: "exempt", Exempt: true, Schemas: []string{"s"}}, rejecting("l", 1))
	for range 1000 {
		if _, err := s.flow("exempt", "admin", 10).Acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := takeAll(t, s.flow("l", "a", 1)); len(got) != 3 {
		t.Errorf("others got %d of 4", len(got))
	}
}

func TestTheSmallestLevel(t *testing.T) {
	s := seats(1, rejecting("l", 1))
	hold, err := s.flow("l", "a", 10).Acquire(t.Context()) // wider than the level
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"a", "b"} {
		if _, err := s.flow("l", key, 1).Acquire(t.Context()); !errors.Is(err, ErrConcurrencyLimit) {
			t.Errorf("%s: %v", key, err)
		}
	}
	hold.Release()
	if _, err := s.flow("l", "b", 1).Acquire(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestFlowsTakeTurns: a flow with many requests that wait does not delay another's one.
func TestFlowsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := seats(1, queuing("l", 1))
		hold, err := s.flow("l", "a", 1).Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		type granted struct {
			key  string
			hold Hold
		}
		order := make(chan granted, 10)
		ask := func(key string) {
			go func() {
				if hold, err := s.flow("l", key, 1).Acquire(t.Context()); err == nil {
					order <- granted{key, hold}
				}
			}()
			synctest.Wait()
		}
		for range 5 {
			ask("a")
		}
		ask("b")
		if got := s.stats(t, "l").Schemas[0]; got.Waiting != 6 || got.WaitingSeats != 6 || got.Executing != 1 {
			t.Errorf("%+v", got)
		}
		got := ""
		for range 6 {
			hold.Release()
			next := <-order
			hold, got = next.hold, got+next.key
		}
		if got != "abaaaa" {
			t.Errorf("got turns %s", got)
		}
		hold.Release()
		s.wantIdle(t)
	})
}

// TestQueuesAreBounded: a flow fills its own, and leaves room for others; the time that
// requests wait is bounded, too.
func TestQueuesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := seats(1, queuing("l", 1))
		if _, err := s.flow("l", "hangs", 1).Acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
		answers := make(chan error, 100)
		for range 51 {
			go func() {
				_, err := s.flow("l", "greedy", 1).Acquire(t.Context())
				answers <- err
			}()
		}
		go func() {
			_, err := s.flow("l", "other", 1).Acquire(t.Context())
			answers <- err
		}()
		synctest.Wait()
		if err := <-answers; !errors.Is(err, ErrQueueFull) || len(answers) > 0 {
			t.Errorf("%v, and %d more have been answered", err, len(answers))
		}
		time.Sleep(wait + time.Second)
		synctest.Wait()
		for range 51 {
			if err := <-answers; !errors.Is(err, ErrTimeout) {
				t.Error(err)
			}
		}
		if got := s.stats(t, "l").Schemas[0]; got.Rejected != (Rejections{QueueFull: 1, Timeout: 51}) || got.Waiting != 0 || got.WaitsInVain.Count != 51 {
			t.Errorf("%+v", got)
		}
	})
}

// TestWaitIsNotRefused although the queue is full, or there is none.
func TestWaitIsNotRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := seats(1, rejecting("l", 1))
		hold, _ := s.flow("l", "a", 1).Acquire(t.Context())
		done := make(chan error, 1)
		go func() {
			hold, err := s.flow("l", "a", 1).Wait(t.Context())
			hold.Release()
			done <- err
		}()
		time.Sleep(time.Hour)
		hold.Release()
		if err := <-done; err != nil {
			t.Error(err)
		}
		s.wantIdle(t)
	})
}

// TestWideRequestsAreNotOvertaken for ever by narrow ones.
func TestWideRequestsAreNotOvertaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := seats(100, queuing("l", 1))
		var held []Hold
		for i := range 100 {
			hold, err := s.flow("l", fmt.Sprint("narrow-", i), 1).Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			held = append(held, hold)
		}
		wide := make(chan error, 1)
		go func() {
			_, err := s.flow("l", "wide", 10).Acquire(t.Context())
			wide <- err
		}()
		synctest.Wait()
		for i := range 10 {
			held[i].Release()
			if i == 9 {
				break // the last seat that it needs
			}
			go func() { _, _ = s.flow("l", fmt.Sprint("late-", i), 1).Acquire(t.Context()) }()
			synctest.Wait()
		}
		synctest.Wait()
		select {
		case err := <-wide:
			if err != nil {
				t.Error(err)
			}
		default:
			t.Error("narrow requests that came later have taken the seats")
		}
		release(held[10:])
		time.Sleep(wait + 1) // the others end
	})
}

// TestWaitsThatAreGivenUp leave nothing behind.
func TestWaitsThatAreGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := seats(100, queuing("l", 1))
		var held []Hold
		for i := range 20 {
			hold, err := s.flow("l", fmt.Sprint("narrow-", i), 5).Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			held = append(held, hold)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var group sync.WaitGroup
		group.Go(func() {
			if _, err := s.flow("l", "b", 10).Acquire(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		})
		synctest.Wait()
		small := make(chan Hold, 1)
		go func() {
			hold, err := s.flow("l", "b", 1).Acquire(t.Context())
			if err != nil {
				t.Error(err)
			}
			small <- hold
		}()
		synctest.Wait()
		held[0].Release() // too little for the first of b
		select {
		case <-small:
			t.Error("a request has overtaken another of the same flow")
		default:
		}
		group.Wait()
		(<-small).Release()
		release(held[1:])
		s.wantIdle(t)
	})
}

// TestLevelsChangeWhileRequestsRun: limits change, levels go and come, and nothing is lost.
func TestLevelsChangeWhileRequestsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := seats(10, queuing("a", 1), queuing("b", 1))
		first, err := s.flow("a", "x", 1).Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		gone := s.flow("a", "y", 1)
		s.Configure([]Config{queuing("b", 1)})
		if s.Level("a") != nil {
			t.Error("the level is still there")
		}
		second, err := gone.Acquire(t.Context()) // classified before the change
		if err != nil {
			t.Error(err)
		}
		if got := takeAll(t, Flow{Level: s.Level("b"), Schema: s.Level("b").Schema("s"), Key: "z", Seats: 1}); len(got) < 7 {
			t.Errorf("got %d of 10", len(got))
		} else {
			release(got)
		}
		s.Configure([]Config{queuing("a", 1), queuing("b", 1)})
		first.Release()
		second.Release()
		s.wantIdle(t)

		// What waits gets the seats that a change brings.
		s.Configure([]Config{queuing("a", 1), queuing("b", 99)})
		limited := queuing("a", 1)
		limited.BorrowPercent = 0
		s.Configure([]Config{limited, queuing("b", 99)})
		only, err := s.flow("a", "x", 1).Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan Hold, 1)
		go func() {
			hold, err := s.flow("a", "y", 1).Acquire(t.Context())
			if err != nil {
				t.Error(err)
			}
			done <- hold
		}()
		synctest.Wait()
		s.Configure([]Config{queuing("a", 99), queuing("b", 1)})
		(<-done).Release()
		only.Release()
		s.wantIdle(t)
	})
}

// TestManyAtOnce: what is taken is given back, and never more than there is.
func TestManyAtOnce(t *testing.T) {
	a, b := queuing("a", 1), queuing("b", 3)
	b.LendablePercent = 50
	s := seats(40, a, b, Config{Name: "e", Exempt: true, Schemas: []string{"s"}})
	seed := testseed.New(t)
	var group sync.WaitGroup
	for i := range 40 {
		random := seed.Rand(i)
		group.Go(func() {
			for range 200 {
				f := s.flow([]string{"a", "b", "b", "e"}[random.IntN(4)], fmt.Sprint(i%7), 1+random.IntN(6))
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(3000))*time.Microsecond)
				hold, err := f.Acquire(ctx)
				cancel()
				if err == nil {
					hold.Release()
				}
				used := int64(0)
				for _, stats := range s.Stats(false) {
					if !stats.Exempt {
						used += stats.Used
					}
				}
				if used > 40 {
					t.Errorf("%d are taken of 40", used)
				}
			}
		})
	}
	group.Wait()
	s.wantIdle(t)
}

// TestFlowsAreForgotten when they hold nothing, if they are many.
func TestFlowsAreForgotten(t *testing.T) {
	s := seats(1, rejecting("l", 1))
	for i := range 3 * maxIdle {
		hold, err := s.flow("l", fmt.Sprint(i), 1).Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = s.flow("l", fmt.Sprint("refused", i), 1).Acquire(t.Context())
		hold.Release()
	}
	if n := len(s.Level("l").flows); n > maxIdle+1 {
		t.Errorf("%d flows are remembered", n)
	}
}

func BenchmarkAcquire(b *testing.B) {
	s := seats(1200, queuing("l", 1))
	f := s.flow("l", "user", 1)
	b.ReportAllocs()
	for b.Loop() {
		hold, err := f.Acquire(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		hold.Release()
	}
}
