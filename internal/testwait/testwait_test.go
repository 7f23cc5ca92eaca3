package testwait

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	_ "github.com/levelwire/levelwire/internal/testwatchdog"
)

// failing is a test that may fail.
type failing struct {
	testing.TB
	said string
}

func (f *failing) Helper() {}

func (f *failing) Fatalf(format string, args ...any) {
	f.said = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// failure returns what a test says when it fails, and "" if it does not.
func failure(t *testing.T, test func(testing.TB)) string {
	t.Helper()
	f, done := &failing{TB: t}, make(chan struct{})
	go func() {
		defer close(done)
		test(f)
	}()
	<-done
	return f.said
}

func TestStable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		waited := Stable(t, "a minute has passed", func() (time.Duration, bool) {
			waited := time.Since(begun)
			return waited, waited >= time.Minute
		})
		if waited < time.Minute || waited > time.Minute+maxPause {
			t.Errorf("a minute has passed after %v", waited)
		}
		looks := 0
		if Stable(t, "now", func() (int, bool) { looks++; return looks, true }); looks != 1 {
			t.Errorf("%d looks at what is there", looks)
		}
	})
}

func TestStableGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		got := failure(t, func(t testing.TB) {
			Stable(t, "five of them", func() (int, bool) { looks++; return min(looks, 3), false })
		})
		if got != "waited 3m0s in vain: five of them; last seen: 3" {
			t.Error(got)
		}
	})
}

// states is a history of states that come and go.
func states(all ...string) *History[string] {
	h := &History[string]{}
	for _, s := range all {
		h.Add(s)
	}
	return h
}

func TestEvents(t *testing.T) {
	h := states("Pending", "Running", "Succeeded")
	if got := Events(t, "running", h, Last(func(s string) bool { return s == "Running" })); !slices.Equal(got, []string{"Pending", "Running"}) {
		t.Errorf("the state has passed, and the history up to it is %q", got)
	}
	if got := Events(t, "two", h, func(seen []string) bool { return len(seen) == 2 }); len(got) != 2 {
		t.Errorf("two events: %q", got)
	}
	if got := h.Seen(); len(got) != 3 {
		t.Errorf("all: %q", got)
	}
}

// TestEventsOfOthers: what comes while a test waits is seen, each event once and in order.
func TestEventsOfOthers(t *testing.T) {
	const events = 10_000
	var h History[int]
	var adding sync.WaitGroup
	adding.Go(func() {
		for i := range events {
			h.Add(i)
		}
	})
	asked := 0
	got := Events(t, "all", &h, func(seen []int) bool {
		if asked++; len(seen) != asked || seen[asked-1] != asked-1 {
			t.Errorf("question %d is about %d events", asked, len(seen))
		}
		return len(seen) == events
	})
	adding.Wait()
	if len(got) != events {
		t.Errorf("%d events", len(got))
	}
}

func TestEventsGiveUp(t *testing.T) {
	never := func([]string) bool { return false }
	synctest.Test(t, func(t *testing.T) {
		if got := failure(t, func(t testing.TB) { Events(t, "running", states("Pending", "Failed"), never) }); got != "waited 3m0s in vain: running; seen: 2 events\n\tPending\n\tFailed" {
			t.Error(got)
		}
		ended := states("Pending")
		time.AfterFunc(time.Second, func() { ended.End(errors.New("cut")) })
		if got := failure(t, func(t testing.TB) { Events(t, "running", ended, never) }); got != "running: there is nothing more to wait for: cut; seen: 1 events\n\tPending" {
			t.Error(got)
		}
		ended.End(nil)
		if got := failure(t, func(t testing.TB) { Events(t, "running", ended, never) }); !strings.Contains(got, "it was ended") {
			t.Error(got)
		}
		if got := failure(t, func(t testing.TB) { Events(t, "100", states(make([]string, 100)...), never) }); strings.Count(got, "\n") != mostListed {
			t.Errorf("it shows too much or too little:\n%s", got)
		}
	})
}

// numbers is a stream of three numbers, which then waits until it is closed.
type numbers struct {
	next   int
	closed chan struct{}
}

func (n *numbers) Next() (int, error) {
	if n.next == 3 {
		<-n.closed
		return 0, errors.New("closed")
	}
	n.next++
	return n.next, nil
}

func (n *numbers) Close() { close(n.closed) }

func TestFollow(t *testing.T) {
	var h *History[int]
	t.Run("", func(t *testing.T) {
		h = Follow(t, &numbers{closed: make(chan struct{})})
		if got := Events(t, "two", h, Last(func(n int) bool { return n == 2 })); !slices.Equal(got, []int{1, 2}) {
			t.Errorf("%v", got)
		}
	})
	if _, _, end := h.read(); end == nil || !slices.Equal(h.Seen(), []int{1, 2, 3}) {
		t.Errorf("after the test's end: %v, %v", h.Seen(), end)
	}
}
