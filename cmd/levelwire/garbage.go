package main

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"time"
)

// How much garbage the process lets come together before it collects. Go's
// own rule, as much as there is live data, doubles the memory of a server
// whose caches are large. Beyond freeGarbage it is that much or a quarter of
// the live data, whichever is more: marking costs little here, because a cached
// object is one block without pointers.
const (
	freeGarbage  = 256 << 20 // bytes
	leastPercent = 25
	mostPercent  = 100
)

// garbagePercent is what GOGC should be when live bytes are in use.
func garbagePercent(live uint64) int {
	if live <= freeGarbage {
		return mostPercent
	}
	return max(leastPercent, int(freeGarbage*100/live))
}

// boundGarbage adapts GOGC to the live heap after every collection, until stop
// is called; unless the user has set GOGC or GOMEMLIMIT, and so has decided. It
// belongs to the command and not to the server: the settings are those of the
// process, and a program that embeds a server has its own.
func boundGarbage() (stop func()) {
	adapter := &garbageAdapter{}
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
		adapter.percent.Store(mostPercent)
		adapter.afterNextCollection()
	}
	return func() { adapter.stopped.Store(true) }
}

// garbageAdapter holds what GOGC was set to last.
type garbageAdapter struct {
	percent atomic.Int64
	stopped atomic.Bool
}

// collected is unreachable as soon as it is made, so that its finalizer runs
// after the next collection. It has a size, and a pointer, so that it shares
// no block with other small values.
type collected struct{ adapter *garbageAdapter }

func (a *garbageAdapter) afterNextCollection() {
	runtime.SetFinalizer(&collected{a}, func(c *collected) {
		if c.adapter.stopped.Load() {
			return
		}
		c.adapter.adapt()
		c.adapter.afterNextCollection()
	})
}

// adapt sets GOGC if that changes it: setting it stops the world.
func (a *garbageAdapter) adapt() {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	if percent := int64(garbagePercent(sample[0].Value.Uint64())); a.percent.Swap(percent) != percent {
		debug.SetGCPercent(int(percent))
	}
}

// What starting needed beyond what stays is given back to the system if the
// heap is so large that this is worth a collection: at once, and again when the
// caches have read the store's history.
const (
	trimAbove = 128 << 20
	trimAgain = 20 * time.Second
)

// trim gives back what the start has left unused, until ctx ends.
func trim(ctx context.Context) {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	if sample[0].Value.Uint64() < trimAbove {
		return
	}
	debug.FreeOSMemory()
	timer := time.NewTimer(trimAgain)
	defer timer.Stop()
	select {
	case <-timer.C:
		debug.FreeOSMemory()
	case <-ctx.Done():
	}
}
