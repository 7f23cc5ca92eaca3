package runtimelimits

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"testing/synctest"
	"time"

	_ "github.com/levelwire/levelwire/internal/testwatchdog"
)

func TestGarbageIsBoundedNotProportional(t *testing.T) {
	const load, idle = 500 << 20, 1 << 20
	for _, c := range []struct {
		name    string
		live    uint64
		rate    float64
		percent int
	}{
		{"nothing", 0, load, 100},
		{"small: as Go does it", 100 << 20, load, 100},
		{"as much as is free", freeGarbage, load, 100},
		{"twice that", 2 * freeGarbage, load, 50},
		{"no less than a quarter", 40 * freeGarbage, load, 25},
		{"small and idle", 30 << 20, idle, 100},
		{"idle", 180 << 20, idle, 25},
		{"a little work", 180 << 20, 6 << 20, 25},
		{"a small cluster at work", 180 << 20, 24 << 20, 50},
		{"large and idle", 4 << 30, idle, 3},
	} {
		if got := garbagePercent(c.live, c.rate); got != c.percent {
			t.Errorf("%s: GOGC is %d with %d MB live, want %d", c.name, got, c.live>>20, c.percent)
		}
	}
}

// TestStartCollectsSeldom: while a server starts, garbage comes together as if much
// lived, and no longer.
func TestStartCollectsSeldom(t *testing.T) {
	before := debug.SetGCPercent(mostPercent)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	for live, want := range map[uint64]int{0: 800, 16 << 20: 800, 128 << 20: 200, freeGarbage: 100, 40 * freeGarbage: leastPercent} {
		if got := startPercent(live); got != want {
			t.Errorf("with %d MB live GOGC is %d, want %d", live>>20, got, want)
		}
	}
	adapter := &garbageAdapter{percent: mostPercent} // without collections
	inForce.Store(adapter)
	t.Cleanup(func() { inForce.Store(nil) })
	ended := Starting()
	if adapter.percent != 800 {
		t.Errorf("GOGC is %d at first, want 6400", adapter.percent)
	}
	for range 2 {
		ended()
		if adapter.percent != mostPercent {
			t.Errorf("GOGC is %d after the start, want %d", adapter.percent, mostPercent)
		}
	}
	inForce.Store(nil)
	Starting()() // where the user decides it does nothing
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
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
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
			defer BoundGarbage()()
			rounds := 0
			collect(t, func() bool { rounds++; return rounds > 2 || percentInForce() != mostPercent })
			if got := percentInForce(); got != mostPercent {
				t.Errorf("GOGC is %d", got)
			}
		})
	}
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	defer BoundGarbage()()
	if !collect(t, func() bool { return percentInForce() == leastPercent }) {
		t.Errorf("GOGC is %d with %d MB live, want %d", percentInForce(), len(live)>>20, leastPercent)
	}
	runtime.KeepAlive(live) // and no longer
	if !collect(t, func() bool { return percentInForce() == mostPercent }) {
		t.Errorf("GOGC is %d when the heap has shrunk, want %d", percentInForce(), mostPercent)
	}
}

// Memory that was needed for a while is given back when nothing happens any more.
func TestIdleProcessGivesMemoryBack(t *testing.T) {
	for _, c := range []struct {
		name        string
		live        uint64
		collections uint64
		idle        bool
	}{
		{"none", 1 << 30, 0, true},
		{"Go's own", 1 << 30, 1, true},
		{"a load", 1 << 30, 2, false},
		{"a small server's few clients", 40 << 20, 5, true},
		{"a small server's load", 40 << 20, 30, false},
	} {
		if got := (heap{live: c.live, collection: 10 + c.collections}).idleSince(heap{collection: 10}); got != c.idle {
			t.Errorf("collections: %s: idle is %v", c.name, got)
		}
	}
	for _, c := range []struct{ live, unused uint64 }{{0, trimLeast}, {200 << 20, 50 << 20}, {10 << 30, trimAbove}} {
		for _, less := range []uint64{0, 1} {
			if got := (heap{live: c.live, unused: c.unused - less}).wasteful(); got != (less == 0) {
				t.Errorf("%d MB live, %d bytes unused: wasteful is %v", c.live>>20, c.unused-less, got)
			}
		}
	}
	func() {
		load := make([][]byte, 512)
		for i := range load {
			load[i] = make([]byte, 1<<20)
		}
		runtime.KeepAlive(load)
	}()
	if now := heapNow(); now.unused+now.live < trimAbove {
		t.Fatalf("the load is not seen: %+v", now)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); Trim(ctx) }()
		time.Sleep(trimAgain + 3*trimInterval)
		cancel()
		<-ended
	})
	if now := heapNow(); now.unused >= trimAbove {
		t.Errorf("%d MB are still unused after minutes without work", now.unused>>20)
	}
}
