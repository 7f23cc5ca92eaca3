package caches

import (
	"runtime"
	"runtime/metrics"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/levelwire/levelwire/server/internal/watchcache"
)

// LimitMemory has the caches keep less of the past while the process is near its memory
// limit (GOMEMLIMIT, or what debug.SetMemoryLimit was told), until stop is called. It
// looks after each collection of garbage, which is when the bytes in use are known: an
// idle server does not wake up for it.
//
// The runtime calls cleanups from goroutines of its own. So no channel, timer or context
// is used: those of a test in a synctest bubble must not be touched from outside it.
func LimitMemory(budget *watchcache.Budget) (stop func()) {
	var stopped atomic.Bool
	afterEachCollection(func() (again bool) {
		if stopped.Load() {
			return false
		}
		go budget.Limit(memoryNow()) // it waits for locks, as cleanups must not
		return true
	})
	return func() { stopped.Store(true) }
}

// LimitMemory is the function LimitMemory for the budget of these caches.
func (c *Set) LimitMemory() (stop func()) { return LimitMemory(c.opts.Budget) }

// afterEachCollection calls f after each collection of garbage until it returns false.
// f must not block.
func afterEachCollection(f func() (again bool)) {
	// A value that is unreachable at once. It has a pointer, so that it shares no block
	// with other small values.
	type sentinel struct{ _ *int }
	runtime.AddCleanup(&sentinel{}, func(struct{}) {
		if f() {
			afterEachCollection(f)
		}
	}, struct{}{})
}

func memoryNow() watchcache.Memory {
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/gomemlimit:bytes"}, {Name: "/gc/cycles/total:gc-cycles"}}
	metrics.Read(samples)
	return watchcache.Memory{Live: samples[0].Value.Uint64(), Limit: samples[1].Value.Uint64(), Collection: samples[2].Value.Uint64()}
}

// memoryCollector says what the process's memory is used for. The parts add up to what the
// Go runtime has from the system; pages of files (the program, etcd's database) are not
// among them.
type memoryCollector struct{ caches *Set }

var memoryDesc = prometheus.NewDesc("levelwire_memory_bytes",
	"Memory by what it is used for: objects, history, forms, blocks and tombstones of all caches, estimates; other, what else lives on the heap; "+
		"garbage; free, for the next objects; stacks; or runtime, the Go runtime's own.", []string{"use"}, nil)

// Describe implements prometheus.Collector.
func (memoryCollector) Describe(out chan<- *prometheus.Desc) { out <- memoryDesc }

// Collect implements prometheus.Collector.
func (c memoryCollector) Collect(out chan<- prometheus.Metric) {
	for use, bytes := range c.byUse() {
		out <- prometheus.MustNewConstMetric(memoryDesc, prometheus.GaugeValue, float64(bytes), use)
	}
}

func (c memoryCollector) byUse() map[string]int64 {
	samples := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"},
		{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"},
	}
	metrics.Read(samples)
	value := func(i int) int64 { return int64(samples[i].Value.Uint64()) }
	heap, free, stacks := value(1), value(2)+value(3), value(4)
	live := min(value(0), heap)
	use := map[string]int64{
		"garbage": heap - live, "free": free, "stacks": stacks,
		"runtime": max(0, value(5)-value(6)-heap-free-stacks),
	}
	var counted int64
	for _, cache := range *c.caches.byResource.Load() {
		s := cache.Stats()
		use["objects"] += s.HeldBytes
		use["history"] += s.HistoryBytes
		use["forms"] += s.FormBytes - s.BlockBytes
		use["blocks"] += s.BlockBytes
		use["tombstones"] += s.TombstoneBytes
		counted += s.HeldBytes + s.HistoryBytes + s.FormBytes + s.TombstoneBytes
	}
	use["other"] = max(0, live-counted)
	return use
}
