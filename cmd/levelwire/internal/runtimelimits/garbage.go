package runtimelimits

import (
	"context"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"
)

// How much garbage the process lets come together before it collects. Go's
// own rule, as much as there is live data, doubles the memory of a server
// whose caches are large. Beyond freeGarbage it is that much or a quarter of
// the live data, whichever is more: marking costs little here, because a cached
// object is one block without pointers.
//
// A process that makes little garbage needs less room for it: it collects as often as
// markRate allows. A load raises that again with its first collection.
const (
	freeGarbage  = 256 << 20 // bytes
	leastGarbage = 32 << 20  // bytes
	leastPercent = 25
	mostPercent  = 100
	// markRate is how many bytes a second collections may mark for the sake of memory:
	// about a thirtieth of a processor. A cluster of ten nodes whose pods are replaced all
	// the time takes 120 MB then and 15 % of a processor; with a quarter of this rate it
	// took 160 MB and 14 %.
	markRate = 64 << 20
)

// garbagePercent is what GOGC should be when live bytes are in use and rate bytes are
// allocated each second. It is halved as often as the rate allows, and so seldom changes.
func garbagePercent(live uint64, rate float64) int {
	percent := mostPercent
	if live > freeGarbage {
		percent = max(leastPercent, int(freeGarbage*100/live))
	}
	enough := max(leastGarbage, rate*float64(live)/markRate)
	for float64(live)*float64(percent/2) >= enough*100 {
		percent /= 2
	}
	return percent
}

// startPercent is what GOGC should be while a server starts that has live bytes in use:
// freeGarbage comes together, however little is live. It holds until the collection after the
// next has begun, by when more is live, and so is bounded.
func startPercent(live uint64) int {
	const mostAtStart = 800
	return min(max(int(freeGarbage*100/max(live, 1)), leastPercent), mostAtStart)
}

// BoundGarbage adapts GOGC to the live heap after every collection, until stop
// is called; unless the user has set GOGC or GOMEMLIMIT, and so has decided. It
// belongs to the command and not to the server: the settings are those of the
// process, and a program that embeds a server has its own. Only one may be in force.
func BoundGarbage() (stop func()) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	adapter := &garbageAdapter{percent: mostPercent}
	inForce.Store(adapter)
	adapter.afterNextCollection()
	return func() {
		inForce.CompareAndSwap(adapter, nil)
		adapter.stopped.Store(true)
	}
}

// inForce is the adapter that BoundGarbage has made; nil if the user decides.
var inForce atomic.Pointer[garbageAdapter]

// Starting lets as much garbage come together as a large server may have, until ended is
// called: a server that reads its store makes gigabytes of garbage while little lives, and
// each collection marks what lives. It needs BoundGarbage.
func Starting() (ended func()) {
	adapter := inForce.Load()
	if adapter == nil {
		return func() {}
	}
	adapter.setStarting(true)
	return func() { adapter.setStarting(false) }
}

// garbageAdapter sets GOGC.
type garbageAdapter struct {
	stopped atomic.Bool

	mu       sync.Mutex
	percent  int // what GOGC was set to last
	starting bool
	live     uint64  // bytes, at the last collection
	rate     float64 // of allocation before it, in bytes a second

	// The fields below are of the goroutine that runs finalizers.
	allocated uint64 // bytes, until the last collection
	collected time.Time
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

// adapt sets GOGC after a collection.
func (a *garbageAdapter) adapt() {
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(samples)
	live, allocated, now := samples[0].Value.Uint64(), samples[1].Value.Uint64(), time.Now()
	rate := math.Inf(1) // of the first time: the process is starting
	if !a.collected.IsZero() {
		rate = float64(allocated-a.allocated) / max(now.Sub(a.collected).Seconds(), 1e-6)
	}
	a.allocated, a.collected = allocated, now
	a.mu.Lock()
	defer a.mu.Unlock()
	a.live, a.rate = live, rate
	a.set()
}

func (a *garbageAdapter) setStarting(starting bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.starting = starting
	a.set()
}

// set sets GOGC if that changes it: setting it stops the world. The lock is held.
func (a *garbageAdapter) set() {
	percent := garbagePercent(a.live, a.rate)
	if a.starting {
		percent = startPercent(a.live)
	}
	if a.percent != percent {
		a.percent = percent
		debug.SetGCPercent(percent)
	}
}

// Memory that the process needed for a while, to start or under a load that is over,
// is given back to the system. Go's own way is slow: an idle process collects its
// garbage every two minutes, pools outlive one collection, and then a part is kept.
const (
	// trimAbove is how many bytes are worth a collection on any server; on a small one,
	// trimShare of the live data are, or trimLeast if that is more.
	trimAbove = 128 << 20
	trimShare = 4
	trimLeast = 16 << 20
	// trimWork is how many bytes collections may mark in trimInterval for the process to
	// count as idle: one more does not matter then.
	trimWork  = 960 << 20
	trimAgain = 20 * time.Second
	// trimInterval is how often the process looks whether it has been idle.
	trimInterval = time.Minute
)

// Trim gives unused memory back until ctx ends: at once what the start has left, again
// when the caches have read the store's history, and later whenever the process has
// become idle.
func Trim(ctx context.Context) {
	if heapNow().live >= trimAbove {
		debug.FreeOSMemory()
	}
	timer := time.NewTimer(trimAgain)
	defer timer.Stop()
	first, before := true, heapNow()
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		now := heapNow()
		if first && now.live >= trimAbove || now.idleSince(before) && now.wasteful() {
			debug.FreeOSMemory()
		}
		first, before = false, heapNow()
		timer.Reset(trimInterval)
	}
}

// heap is how the process uses its memory.
type heap struct {
	live       uint64 // bytes at the last collection
	unused     uint64 // bytes of garbage, or free and not given back
	collection uint64 // number of collections
}

func heapNow() heap {
	samples := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/free:bytes"}, {Name: "/gc/cycles/total:gc-cycles"},
	}
	metrics.Read(samples)
	live, objects, free := samples[0].Value.Uint64(), samples[1].Value.Uint64(), samples[2].Value.Uint64()
	return heap{live: live, unused: objects - min(objects, live) + free, collection: samples[3].Value.Uint64()}
}

// idleSince reports whether the process has hardly made garbage since before: at most
// the collection that Go makes every two minutes, or so little that collecting was no work.
func (h heap) idleSince(before heap) bool {
	n := h.collection - before.collection
	return n <= 1 || n*h.live <= trimWork
}

// wasteful reports whether enough is unused to be given back.
func (h heap) wasteful() bool { return h.unused >= min(trimAbove, max(trimLeast, h.live/trimShare)) }
