package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"runtime"
	"runtime/pprof"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/levelwire/levelwire/benchmarks/measure"
)

// meter measures what this process uses from its start to its stop.
type meter struct {
	begun   time.Time
	usage   time.Duration
	memory  runtime.MemStats
	profile *os.File
}

// start begins a measurement after a garbage collection; profile, unless
// empty, names a file for a profile of the processor.
func start(profile string) (*meter, error) {
	m := &meter{}
	if profile != "" {
		var err error
		if m.profile, err = os.Create(profile); err != nil {
			return nil, err
		}
		if err := pprof.StartCPUProfile(m.profile); err != nil {
			return nil, err
		}
	}
	collect()
	runtime.ReadMemStats(&m.memory)
	var err error
	if m.usage, err = measure.OwnCPU(); err != nil {
		return nil, err
	}
	m.begun = time.Now()
	return m, nil
}

// used is the difference between two moments.
type used struct {
	wall, processor time.Duration
	bytes, allocs   float64
}

func (m *meter) stop() (used, error) {
	u := used{wall: time.Since(m.begun)}
	usage, err := measure.OwnCPU()
	if err != nil {
		return u, err
	}
	u.processor = usage - m.usage
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	u.bytes = float64(now.TotalAlloc - m.memory.TotalAlloc)
	u.allocs = float64(now.Mallocs - m.memory.Mallocs)
	if m.profile != nil {
		pprof.StopCPUProfile()
		err = m.profile.Close()
	}
	return u, err
}

// live is how many bytes of heap are in use more than at the start.
func (m *meter) live() float64 {
	collect()
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	return float64(now.HeapAlloc) - float64(m.memory.HeapAlloc)
}

// collect runs the garbage collector until what finalizers and pools held is
// gone, too.
func collect() {
	for range 3 {
		runtime.GC()
	}
}

// wire counts the bytes that connections receive.
type wire struct{ received atomic.Int64 }

func (w *wire) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &countedConn{c, w}, nil
}

type countedConn struct {
	net.Conn
	*wire
}

func (c *countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.received.Add(int64(n))
	return n, err
}

// peakMemory is the most that the process has had resident, in MB.
func peakMemory() (float64, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, fmt.Errorf("getrusage: %w", err)
	}
	return float64(u.Maxrss) / 1e3, nil // Linux counts kilobytes
}

// goroutines is how many there are once they have become no fewer for a while.
func goroutines() int {
	n := runtime.NumGoroutine()
	for range 20 {
		time.Sleep(50 * time.Millisecond)
		n = min(n, runtime.NumGoroutine())
	}
	return n
}

// stacks is how many bytes goroutines use.
func stacks() float64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.StackInuse)
}
