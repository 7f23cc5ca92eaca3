package apiserver

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/net/http2"

	"github.com/levelwire/levelwire/internal/childprocess"
)

// fanOutChild, in the environment, makes the test binary a client of
// BenchmarkFanOut instead: "address connections streams".
const fanOutChild = "LEVELWIRE_FANOUT_CHILD"

// BenchmarkFanOut writes events of 3 kB to many watchers. One operation is one
// event delivered to all. The clients are a process of their own that
// decrypts and throws away, so what is reported is this process' CPU.
func BenchmarkFanOut(b *testing.B) {
	for _, load := range []struct {
		connections, streams int
		pace                 time.Duration // between writes; 0: as fast as they are sent
	}{
		{1, 100, 5 * time.Millisecond},
		{10, 100, 50 * time.Millisecond},
		{50, 100, 250 * time.Millisecond},
		{10, 100, 0},
		{1000, 1, 50 * time.Millisecond},
	} {
		name := fmt.Sprintf("%dx%d/every=%s", load.connections, load.streams, load.pace)
		b.Run(name, func(b *testing.B) { fanOut(b, load.connections, load.streams, load.pace) })
	}
}

func fanOut(b *testing.B, connections, streams int, pace time.Duration) {
	c := newCluster(b)
	gone := startFanOutClients(b, c, connections, streams)
	watchers := connections * streams
	open := c.server.metrics.Watches.WithLabelValues("", "v1", "pods")
	sent := c.server.metrics.Events.WithLabelValues("", "v1", "pods")
	tick := time.NewTicker(max(pace, 200*time.Microsecond))
	defer tick.Stop()
	wait := func(reached func() bool) {
		for !reached() {
			select {
			case err := <-gone:
				b.Fatal("the clients are gone: ", err)
			case <-tick.C:
			}
		}
	}
	wait(func() bool { return gaugeValue(b, open) == float64(watchers) })
	waitFor := func(counter prometheus.Counter, value float64) {
		wait(func() bool { return counterValue(b, counter) >= value })
	}
	const ahead = 32 // events that are written before those are sent which came first
	pods := make([]int, 64)
	for i := range pods {
		c.put(benchPod(i))
	}
	waitFor(sent, float64(len(pods)*watchers))
	done := len(pods)
	b.ResetTimer()
	before := usage(b)
	for i := 0; b.Loop(); i++ {
		c.put(benchPod(i % len(pods)))
		if done++; pace > 0 {
			<-tick.C
		}
		waitFor(sent, float64((done-ahead)*watchers))
	}
	waitFor(sent, float64(done*watchers))
	b.StopTimer()
	b.ReportMetric(float64((usage(b)-before).Nanoseconds())/1e3/float64(b.N*watchers), "cpu-us/delivery")
	b.ReportMetric(float64(b.N*watchers)/b.Elapsed().Seconds(), "deliveries/s")
}

// BenchmarkIdleWatches holds watches that nothing wakes, 100 streams to a
// connection, and reports what the process needs for each.
func BenchmarkIdleWatches(b *testing.B) {
	for _, load := range []struct {
		watchers int
		rbac     bool // withdrawn rights end watches
	}{{10_000, false}, {10_000, true}, {100_000, false}} {
		b.Run(fmt.Sprintf("%d/rbac=%t", load.watchers, load.rbac), func(b *testing.B) {
			watchers := load.watchers
			c := newCluster(b, func(s *setup) {
				if load.rbac {
					s.rbac, s.config.Tokens = true, userTokens()
				}
			})
			runtime.GC()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			resident := residentBytes(b)
			gone := startFanOutClients(b, c, watchers/100, 100)
			open := c.server.metrics.Watches.WithLabelValues("", "v1", "pods")
			tick := time.NewTicker(10 * time.Millisecond)
			defer tick.Stop()
			for gaugeValue(b, open) < float64(watchers) {
				select {
				case err := <-gone:
					b.Fatal("the clients are gone: ", err)
				case <-tick.C:
				}
			}
			each := func(n float64) float64 { return n / float64(watchers) }
			for b.Loop() {
				runtime.GC()
			}
			runtime.ReadMemStats(&after)
			b.ReportMetric(each(float64(residentBytes(b)-resident)), "rss-B/watch")
			b.ReportMetric(float64(runtime.NumGoroutine()), "goroutines")
			reachAll(b, c, watchers, tick, gone)
			b.ReportMetric(each(float64(after.HeapAlloc)-float64(before.HeapAlloc)), "heap-B/watch")
			b.ReportMetric(each(float64(after.StackInuse)-float64(before.StackInuse)), "stack-B/watch")
		})
	}
}

// reachAll writes one pod, and reports what it takes until it has been sent to all watches.
func reachAll(b *testing.B, c *cluster, watchers int, tick *time.Ticker, gone <-chan error) {
	sent := c.server.metrics.Events.WithLabelValues("", "v1", "pods")
	begun, before := time.Now(), usage(b)
	c.put(benchPod(0))
	for counterValue(b, sent) < float64(watchers) {
		select {
		case err := <-gone:
			b.Fatal("the clients are gone: ", err)
		case <-tick.C:
		}
	}
	b.ReportMetric(float64(time.Since(begun).Milliseconds()), "ms-to-reach-all")
	b.ReportMetric(float64((usage(b)-before).Nanoseconds())/1e3/float64(watchers), "cpu-us/delivery")
}

// residentBytes is how much memory of this process is resident.
func residentBytes(b *testing.B) int64 {
	data, err := os.ReadFile("/proc/self/statm")
	must(b, err)
	pages, err := strconv.ParseInt(strings.Fields(string(data))[1], 10, 64)
	must(b, err)
	return pages * int64(os.Getpagesize())
}

// usage is the CPU time that this process has taken.
func usage(b testing.TB) time.Duration {
	var used syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// startFanOutClients opens the watches in a child process, which lives as long
// as the benchmark. The channel receives an error when the process ends.
func startFanOutClients(b *testing.B, c *cluster, connections, streams int) <-chan error {
	child := exec.CommandContext(b.Context(), os.Args[0])
	child.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %d", fanOutChild, strings.TrimPrefix(c.url, "https://"), connections, streams))
	child.Stderr = os.Stderr
	stdin, err := child.StdinPipe()
	must(b, err)
	must(b, childprocess.Start(child))
	gone := make(chan error, 1)
	waited := make(chan struct{})
	go func() {
		defer close(waited)
		gone <- child.Wait()
	}()
	b.Cleanup(func() {
		_ = stdin.Close() // the child ends at the end of its input
		<-waited
	})
	return gone
}

// fanOutClients is the child: it reads until its standard input ends.
func fanOutClients(args string) error {
	fields := strings.Fields(args)
	connections, err := strconv.Atoi(fields[1])
	if err != nil {
		return err
	}
	streams, err := strconv.Atoi(fields[2])
	if err != nil {
		return err
	}
	failed := make(chan error, connections)
	for range connections {
		conn, err := openWatches(fields[0], streams)
		if err != nil {
			return err
		}
		go func() { failed <- discard(conn) }()
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, os.Stdin) // its end is all that matters
	}()
	select {
	case err := <-failed:
		return err
	case <-ended:
		return nil
	}
}

// hugeWindow makes flow control no matter: no stream sends more. The half of
// what is allowed leaves room for the connection's, which is given back
// generously.
const hugeWindow = 1 << 30

func openWatches(address string, streams int) (net.Conn, error) {
	conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err != nil {
		return nil, err
	}
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		return nil, err
	}
	framer := http2.NewFramer(conn, conn)
	requests := newRawRequests(framer)
	err = framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: hugeWindow})
	if err == nil {
		err = framer.WriteWindowUpdate(0, hugeWindow-65535)
	}
	for i := 0; i < streams && err == nil; i++ {
		err = requests.write([2]string{":authority", address}, [2]string{":path", "/api/v1/pods?watch=1&resourceVersion=1"})
	}
	return conn, err
}

// discard reads without looking at it whatever comes, and gives the
// connection's window back.
func discard(conn net.Conn) error {
	framer := http2.NewFramer(conn, nil)
	buf := make([]byte, 256<<10)
	for owed := 0; ; {
		n, err := conn.Read(buf)
		if err != nil {
			return err
		}
		if owed += n; owed > 64<<20 {
			if err := framer.WriteWindowUpdate(0, uint32(owed)); err != nil {
				return err
			}
			owed = 0
		}
	}
}
