package workqueue

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestShutDownHandsOutWhatWaitsAndThenEnds(t *testing.T) {
	q := New(Options[string]{})
	q.Add("a")
	q.AddAfter("delayed", time.Hour)
	q.ShutDown()
	q.Add("late")
	q.AddAfter("later", time.Second)
	get(t, q, "a")
	q.Add("a") // ignored, too
	q.Done("a")
	if key, ok := q.Get(t.Context()); ok {
		t.Errorf("got %q", key)
	}
	if !q.ShuttingDown() {
		t.Error("not shutting down")
	}
	if m := q.Stats(); m.Delayed != 0 || m.Rejected != 3 {
		t.Errorf("%+v", m)
	}
	q.ShutDown() // twice is harmless
}

func TestShutDownWakesEveryWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Options[string]{})
		ended := make(chan bool)
		for range 5 {
			go func() {
				_, ok := q.Get(t.Context())
				ended <- ok
			}()
		}
		synctest.Wait()
		q.ShutDown()
		for range 5 {
			if <-ended {
				t.Error("a worker got a key")
			}
		}
	})
}

func TestDrainWaitsForTheWorkersAndForKeysAddedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Options[string]{})
		q.Add("a")
		q.Add("b")
		get(t, q, "a")
		q.Add("a") // to be worked on once more
		drained := make(chan error, 1)
		go func() { drained <- q.ShutDownWithDrain(t.Context()) }()
		expectWaiting := func(after string) {
			t.Helper()
			synctest.Wait()
			select {
			case err := <-drained:
				t.Fatalf("drained after %s: %v", after, err)
			default:
			}
		}
		expectWaiting("nothing")
		q.Done("a")
		expectWaiting("a")
		get(t, q, "b")
		q.Done("b")
		expectWaiting("b")
		get(t, q, "a")
		expectWaiting("taking a again")
		q.Done("a")
		if err := <-drained; err != nil {
			t.Error(err)
		}
		if err := q.ShutDownWithDrain(t.Context()); err != nil {
			t.Errorf("draining what is drained: %v", err)
		}
	})
}

func TestDrainEndsWithItsContextAndWithShutDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Options[string]{})
		q.Add("stuck")
		get(t, q, "stuck")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		if err := q.ShutDownWithDrain(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Minute {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		ended := make(chan error, 1)
		go func() { ended <- q.ShutDownWithDrain(t.Context()) }()
		synctest.Wait()
		q.ShutDown()
		if err := <-ended; err == nil {
			t.Error("drained, though a worker has a key")
		}
	})
}
