package workqueue

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	_ "github.com/levelwire/levelwire/internal/testwatchdog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// get expects want to be ready.
func get(t *testing.T, q *Queue[string], want string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	time.AfterFunc(time.Second, cancel)
	if key, ok := q.Get(ctx); !ok || key != want {
		t.Fatalf("got %q, %v, want %q", key, ok, want)
	}
}

// nothing expects that no key is ready.
func nothing(t *testing.T, q *Queue[string]) {
	t.Helper()
	if n := q.Len(); n != 0 {
		t.Fatalf("%d keys are ready", n)
	}
}

func TestKeysComeInTheOrderInWhichTheyWereFirstAdded(t *testing.T) {
	q := New(Options[string]{})
	for _, key := range []string{"b", "a", "c", "a", "b"} {
		q.Add(key)
	}
	for _, key := range []string{"b", "a", "c"} {
		get(t, q, key)
	}
	nothing(t, q)
}

func TestAddedWhileBeingWorkedOnIsQueuedAgainAfterDone(t *testing.T) {
	q := New(Options[string]{})
	q.Add("a")
	get(t, q, "a")
	q.Add("a")
	q.Add("a")
	nothing(t, q) // no second worker gets it
	q.Done("a")
	get(t, q, "a")
	q.Done("a")
	nothing(t, q)
}

func TestDoneOfAKeyNobodyHasDoesNothing(t *testing.T) {
	q := New(Options[string]{})
	q.Done("a")
	q.Add("a")
	q.Done("a")
	get(t, q, "a")
	q.Done("a")
	q.Done("a")
	if m := q.Stats(); m.Working != 0 || m.Done != 1 {
		t.Errorf("%+v", m)
	}
}

func TestGetWaitsForAKeyAndForItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Options[string]{})
		ctx, cancel := context.WithCancel(t.Context())
		got := make(chan string, 2)
		for range 2 {
			go func() {
				key, ok := q.Get(ctx)
				got <- fmt.Sprint(key, ok)
			}()
		}
		synctest.Wait()
		q.Add("a")
		if answer := <-got; answer != "atrue" {
			t.Errorf("got %s", answer)
		}
		cancel()
		if answer := <-got; answer != "false" {
			t.Errorf("after the context ended: %s", answer)
		}
	})
}

// A worker whose context ends may have taken the wake-up that was meant for
// another; the key must not be left lying.
func TestWakeUpIsNotLostWithAWorker(t *testing.T) {
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			q := New(Options[int]{})
			leaving, leave := context.WithCancel(t.Context())
			var taken sync.WaitGroup
			got := make(chan int, 2)
			for _, ctx := range []context.Context{leaving, t.Context()} {
				taken.Go(func() {
					if key, ok := q.Get(ctx); ok {
						got <- key
					}
				})
			}
			synctest.Wait()
			go leave()
			q.Add(1)
			synctest.Wait()
			if len(got) != 1 {
				t.Error("no worker has the key")
			}
			q.ShutDown()
			taken.Wait()
		})
	}
}

// Many workers, many producers: no key is with two workers at once, and after
// the last Add of each key a worker gets it.
func TestOneWorkerPerKeyAndNoChangeIsMissed(t *testing.T) {
	q := New(Options[int]{})
	const keys = 20
	var (
		mu      sync.Mutex
		working [keys]bool
		wanted  [keys]int // written by producers before Add
		seen    [keys]int // what the last worker saw
	)
	var workers, producers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for {
				key, ok := q.Get(t.Context())
				if !ok {
					return
				}
				mu.Lock()
				if working[key] {
					t.Errorf("key %d is with two workers", key)
				}
				working[key] = true
				saw := wanted[key]
				mu.Unlock()
				mu.Lock()
				working[key], seen[key] = false, saw
				mu.Unlock()
				q.Done(key)
			}
		})
	}
	for range 4 {
		producers.Go(func() {
			for n := range 5000 {
				key := n % keys
				mu.Lock()
				wanted[key]++
				mu.Unlock()
				q.Add(key)
			}
		})
	}
	producers.Wait()
	if err := q.ShutDownWithDrain(t.Context()); err != nil {
		t.Fatal(err)
	}
	workers.Wait()
	if seen != wanted {
		t.Errorf("seen %v, want %v", seen, wanted)
	}
}

func TestDelayedKeysComeWhenTheyAreDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Options[string]{})
		start := time.Now()
		q.AddAfter("late", 3*time.Minute)
		q.AddAfter("soon", time.Minute)
		q.AddAfter("middle", 2*time.Minute)
		q.AddAfter("now", 0)
		get(t, q, "now")
		for i, want := range []string{"soon", "middle", "late"} {
			key, ok := q.Get(t.Context())
			if !ok || key != want || time.Since(start) != time.Duration(i+1)*time.Minute {
				t.Errorf("got %q after %v, want %q", key, time.Since(start), want)
			}
		}
	})
}

func TestDelayedTwiceComesOnceAtTheEarlierTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Options[string]{})
		start := time.Now()
		q.AddAfter("a", time.Hour)
		q.AddAfter("a", time.Minute)
		q.AddAfter("a", 2*time.Hour)
		if key, _ := q.Get(t.Context()); key != "a" || time.Since(start) != time.Minute {
			t.Errorf("got %q after %v", key, time.Since(start))
		}
		q.Done("a")
		time.Sleep(3 * time.Hour)
		nothing(t, q)
		if m := q.Stats(); m.Delayed != 0 {
			t.Errorf("%+v", m)
		}
	})
}

func TestRateLimitedKeysBackOffUntilForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Options[string]{RateLimiter: Exponential[string](time.Second, 5*time.Second)})
		for i, want := range []time.Duration{1, 2, 4, 5, 5} {
			start := time.Now()
			q.AddRateLimited("a")
			if _, ok := q.Get(t.Context()); !ok || time.Since(start) != want*time.Second {
				t.Errorf("attempt %d came after %v, want %d s", i, time.Since(start), want)
			}
			q.Done("a")
			if n := q.NumRequeues("a"); n != i+1 {
				t.Errorf("%d requeues after attempt %d", n, i)
			}
		}
		q.Forget("a")
		start := time.Now()
		q.AddRateLimited("a")
		if _, ok := q.Get(t.Context()); !ok || time.Since(start) != time.Second || q.NumRequeues("a") != 1 {
			t.Errorf("after Forget it came after %v", time.Since(start))
		}
	})
}

func TestBucketsReachToTheirBounds(t *testing.T) {
	bounds := BucketBounds()
	for n, bound := range bounds {
		if bucketOf(bound) != n || bucketOf(bound+1) != n+1 {
			t.Errorf("%v is in bucket %d, a little more in %d; want %d and the next", bound, bucketOf(bound), bucketOf(bound+1), n)
		}
	}
	if bounds[0] != time.Microsecond || bounds[len(bounds)-1] != 1000*time.Second {
		t.Errorf("bounds %v", bounds)
	}
}

func TestUnfinishedIsOfAllWorkersTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Options[string]{})
		q.Add("a")
		get(t, q, "a")
		time.Sleep(time.Minute)
		q.Add("b")
		get(t, q, "b")
		time.Sleep(time.Second)
		if m := q.Stats(); m.Unfinished != 62*time.Second || m.Longest != 61*time.Second || m.Working != 2 {
			t.Errorf("%+v", m)
		}
		q.Done("a")
		if m := q.Stats(); m.Unfinished != time.Second || m.Longest != time.Second || m.Working != 1 {
			t.Errorf("after the oldest is done: %+v", m)
		}
	})
}

func TestMetricsTellHowLongKeysWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Options[string]{})
		q.Add("a")
		q.Add("a")
		q.AddAfter("b", time.Hour)
		time.Sleep(2 * time.Second)
		get(t, q, "a")
		time.Sleep(3 * time.Second)
		want := Stats{Delayed: 1, Working: 1, Adds: 1, Retries: 1, Taken: 1, Waited: 2 * time.Second, Longest: 3 * time.Second, Unfinished: 3 * time.Second}
		want.WaitedWithin[bucketOf(2*time.Second)] = 1
		if m := q.Stats(); !reflect.DeepEqual(m, want) {
			t.Errorf("while working: %+v, want %+v", m, want)
		}
		q.Add("a") // waits for its worker
		time.Sleep(time.Second)
		q.Done("a")
		get(t, q, "a")
		q.Done("a")
		q.ShutDown()
		q.Add("late")
		want = Stats{Adds: 2, Retries: 1, Taken: 2, Done: 2, Waited: 3 * time.Second, Worked: 4 * time.Second, Rejected: 1}
		want.WaitedWithin[bucketOf(2*time.Second)]++
		want.WaitedWithin[bucketOf(time.Second)]++
		want.WorkedWithin[bucketOf(4*time.Second)]++
		want.WorkedWithin[bucketOf(0)]++
		if m := q.Stats(); !reflect.DeepEqual(m, want) {
			t.Errorf("at the end: %+v, want %+v", m, want)
		}
	})
}
