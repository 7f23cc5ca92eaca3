//go:build unix

package relay

import (
	"runtime"
	"syscall"
	"testing"
	"time"
)

// BenchmarkTreeOfCaches has 1,000,000 watchers: 100 relays, 100 behind each of them, and 100
// watchers at each of those. An operation is one event, which every watcher sees, in order and
// at the upstream's version. Run it with -benchtime 20x; it takes about 2 GB of memory.
//
// The metrics are the memory of a relay of the last level with ten objects, that of a watcher,
// both without connections, and the processor time of a relay and of a watcher per event.
func BenchmarkTreeOfCaches(b *testing.B) {
	const fanOut = 100
	tr := newTree(b)
	tr.addLevel(b, fanOut)
	empty := heap()
	tr.addLevel(b, fanOut)
	relays := heap()
	tr.write(b) // without watchers
	begin := processorTime(b)
	const events = 10
	for range events {
		tr.write(b)
	}
	perRelay := (processorTime(b) - begin) / (events * (fanOut + fanOut*fanOut))
	tr.versions = nil

	tr = nil
	runtime.GC()
	tr = newTree(b)
	tr.addLevel(b, fanOut)
	tr.addLevel(b, fanOut)
	before := heap()
	tr.addWatchers(b, fanOut)
	after := heap()
	begin = processorTime(b)
	for b.Loop() {
		tr.write(b)
	}
	used := processorTime(b) - begin
	tr.check(b)
	deliveries := float64(b.N) * float64(len(tr.watchers))
	b.ReportMetric(float64(len(tr.watchers)), "watchers")
	b.ReportMetric(float64(relays-empty)/(fanOut*fanOut), "bytes/relay")
	b.ReportMetric(float64(after-before)/float64(len(tr.watchers)), "bytes/watcher")
	b.ReportMetric(float64(perRelay.Nanoseconds()), "cpu-ns/relay")
	b.ReportMetric((float64(used.Nanoseconds())-float64(b.N)*float64(perRelay.Nanoseconds())*(fanOut+fanOut*fanOut))/deliveries, "cpu-ns/watcher")
}

// heap returns the bytes that are in use.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc + stats.StackInuse)
}

// processorTime returns what the process has used.
func processorTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
