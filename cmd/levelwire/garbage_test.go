package main

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"
)

func TestGarbageIsBoundedNotProportional(t *testing.T) {
	for _, c := range []struct {
		name    string
		live    uint64
		percent int
	}{
		{"nothing", 0, 100},
		{"small: as Go does it", 100 << 20, 100},
		{"as much as is free", freeGarbage, 100},
		{"twice that", 2 * freeGarbage, 50},
		{"no less than a quarter", 40 * freeGarbage, 25},
	} {
		if got := garbagePercent(c.live); got != c.percent {
			t.Errorf("%s: GOGC is %d with %d MB live, want %d", c.name, got, c.live>>20, c.percent)
		}
	}
}

// percentInForce is the runtime's own GOGC.
func percentInForce() uint64 {
	sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// collect runs collections until the finalizers of one have run, and then
// until done says so or the time is up.
func collect(t *testing.T, done func() bool) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for {
		finalized := make(chan struct{})
		runtime.SetFinalizer(&struct{ c chan struct{} }{finalized}, func(s *struct{ c chan struct{} }) { close(s.c) })
		runtime.GC()
		select {
		case <-finalized:
		case <-ctx.Done():
			return false
		}
		if done() {
			return true
		}
	}
}

func TestGOGCFollowsTheLiveHeap(t *testing.T) {
	before := debug.SetGCPercent(mostPercent)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	live := make([]byte, 4*freeGarbage) // never touched: no memory but in the books

	for _, name := range []string{"GOGC", "GOMEMLIMIT"} {
		t.Run("not if the user set "+name, func(t *testing.T) {
			t.Setenv(name, "100")
			defer boundGarbage()()
			rounds := 0
			collect(t, func() bool { rounds++; return rounds > 2 || percentInForce() != mostPercent })
			if got := percentInForce(); got != mostPercent {
				t.Errorf("GOGC is %d", got)
			}
		})
	}
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	defer boundGarbage()()
	if !collect(t, func() bool { return percentInForce() == leastPercent }) {
		t.Errorf("GOGC is %d with %d MB live, want %d", percentInForce(), len(live)>>20, leastPercent)
	}
	runtime.KeepAlive(live) // and no longer
	if !collect(t, func() bool { return percentInForce() == mostPercent }) {
		t.Errorf("GOGC is %d when the heap has shrunk, want %d", percentInForce(), mostPercent)
	}
}
