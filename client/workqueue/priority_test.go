package workqueue

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestHigherPrioritiesComeFirst(t *testing.T) {
	q := New(Options[string]{})
	for key, priority := range map[string]int{"low": -100, "normal": 0, "high": 7, "highest": 1000, "lowest": -101} {
		q.AddWith(key, AddOptions{Priority: priority})
	}
	for _, key := range []string{"highest", "high", "normal", "low", "lowest"} {
		get(t, q, key)
	}
}

func TestAddingAgainRaisesAndNeverLowers(t *testing.T) {
	q := New(Options[string]{})
	q.AddWith("first", AddOptions{Priority: 1})
	q.AddWith("raised", AddOptions{Priority: -1})
	q.AddWith("low", AddOptions{Priority: -1})
	q.AddWith("raised", AddOptions{Priority: 1})
	q.AddWith("first", AddOptions{Priority: -1})
	if n := q.Len(); n != 3 {
		t.Fatalf("%d keys wait, want 3", n)
	}
	for _, key := range []string{"first", "raised", "low"} {
		get(t, q, key)
	}
	if m := q.Stats(); m.Adds != 3 {
		t.Errorf("raising counts as adding: %+v", m)
	}
}

func TestAddedWhileBeingWorkedOnComesWithTheHighestPriority(t *testing.T) {
	q := New(Options[string]{})
	q.AddWith("a", AddOptions{Priority: 9})
	get(t, q, "a")
	q.AddWith("a", AddOptions{Priority: -1})
	q.AddWith("a", AddOptions{Priority: 1})
	q.AddWith("b", AddOptions{Priority: 2})
	q.Add("c")
	q.Done("a")
	for _, key := range []string{"b", "a", "c"} {
		get(t, q, key) // what a had before is over
	}
}

func TestRetriesKeepTheirPriority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Options[string]{})
		for key, priority := range map[string]int{"low": -1, "high": 1} {
			q.AddWith(key, AddOptions{Priority: priority})
		}
		for _, key := range []string{"high", "low"} {
			get(t, q, key)
			q.AddRateLimited(key)
			q.Done(key)
		}
		q.AddAfter("normal", time.Millisecond) // no worker has it
		time.Sleep(time.Second)
		for _, key := range []string{"high", "normal", "low"} {
			get(t, q, key)
		}
	})
}

func TestDelayedTwiceHasTheHigherPriority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Options[string]{})
		q.AddWith("a", AddOptions{Priority: 1, After: time.Minute})
		q.AddWith("a", AddOptions{Priority: -1, After: time.Second})
		q.AddWith("b", AddOptions{Priority: -1, After: time.Second})
		q.AddWith("b", AddOptions{Priority: 2, After: time.Minute})
		time.Sleep(time.Second)
		get(t, q, "b")
		get(t, q, "a")
		nothing(t, q)
	})
}

func TestFairShareKeepsLowPrioritiesFromStarving(t *testing.T) {
	for _, c := range []struct{ share, handedOut int }{{-1, 0}, {0, 6}, {4, 25}, {10, 10}} {
		q := New(Options[int]{FairShare: c.share})
		for low := range 100 {
			q.AddWith(-1-low, AddOptions{Priority: -100})
		}
		low := 0
		for key := range 100 { // a stream of fresh changes that never ends
			q.Add(key)
			taken, ok := q.Get(t.Context())
			if !ok {
				t.Fatal("nothing to take")
			}
			if taken < 0 {
				if taken != -1-low {
					t.Fatalf("share %d: took %d, want the low keys in order", c.share, taken)
				}
				low++
			}
			q.Done(taken)
		}
		if low != c.handedOut {
			t.Errorf("share %d: %d low keys of 100, want %d", c.share, low, c.handedOut)
		}
	}
}

func TestFairShareIsOfThePriorityThatHasWaitedLongest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Options[string]{FairShare: 2})
		for i, key := range []string{"middle", "low", "high"} {
			q.AddWith(key, AddOptions{Priority: []int{0, -1, 1}[i]})
			time.Sleep(time.Second)
		}
		get(t, q, "high")
		q.AddWith("another", AddOptions{Priority: 1})
		get(t, q, "middle")
	})
}

// A worker whose context has ended takes nothing, however much waits: that is
// how a shutdown drops what waits.
func TestEndedContextTakesNothing(t *testing.T) {
	q := New(Options[string]{})
	q.Add("a")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if key, ok := q.Get(ctx); ok {
		t.Errorf("took %q", key)
	}
	get(t, q, "a") // it is still there for others
}

func TestBurstLeavesNoMemoryBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Options[int]{})
		const burst = 10 * sparesMost
		for key := range burst {
			q.AddWith(key, AddOptions{Priority: key % 3, After: time.Duration(key%2) * time.Second})
			q.AddAfter(key, time.Minute)
		}
		for range burst / 2 {
			key, _ := q.Get(t.Context())
			q.Done(key)
		}
		time.Sleep(time.Hour)
		for range burst {
			key, _ := q.Get(t.Context())
			q.Done(key)
		}
		q.mu.Lock()
		defer q.mu.Unlock()
		if len(q.items) != 0 || q.peak != 0 || q.free.n != sparesMost || len(q.ready.all) != 0 || q.working.first != nil {
			t.Errorf("%d items, peak %d, %d spares, %d levels", len(q.items), q.peak, q.free.n, len(q.ready.all))
		}
	})
}
