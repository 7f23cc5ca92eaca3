package soak

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/internal/faultnet"
	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/tests/workload"
)

var (
	duration = flag.Duration("soak.duration", 20*time.Second, "how long to make trouble")
	seed     = flag.Uint64("soak.seed", 1, "what decides on the trouble; two runs with one seed are alike, but not the same")
	round    = flag.Duration("soak.round", 8*time.Second, "how long between two moments of quiet")
	only     = flag.String("soak.only", "", "make only trouble of these kinds, separated by commas: see chaos_test.go")
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(serverDir); dir != "" {
		if err := runServer(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m, etcdsGoroutines...)
}

// etcdsGoroutines are left behind by etcd; they belong to files that are closed.
var etcdsGoroutines = []goleak.Option{
	goleak.IgnoreAnyFunction("github.com/levelwire/levelwire/internal/childprocess.endWith.func1"), // for as long as the process runs
	goleak.IgnoreTopFunction("go.etcd.io/etcd/server/v3/storage/backend.(*backend).run"),
	goleak.IgnoreTopFunction("go.etcd.io/etcd/server/v3/storage/wal.(*filePipeline).run"),
}

// TestSoak makes trouble in rounds; in a short test there is one.
func TestSoak(t *testing.T) {
	if testing.Short() {
		*duration = min(*duration, *round)
	}
	t.Logf("-soak.seed=%d -soak.duration=%v", *seed, *duration)
	random := rand.New(rand.NewPCG(*seed, 0))
	creds := newCredentials(t)
	d, err := newDisk(t)
	if err != nil {
		t.Logf("without a disk that is full, read-only or slow: %v", err)
	}
	if shiftWall == nil {
		t.Log("without clocks that jump: make soak builds the test for them")
	}
	h := newHost(t, creds, d)
	h.start(t)
	proxy, err := faultnet.New(h.url[len("https://"):])
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := proxy.Close(); err != nil {
			t.Error(err)
		}
	}()
	direct := workload.NewClient(t, creds.lasting(h.url), client.Options{ContentType: client.Protobuf})
	defer direct.CloseIdleConnections()
	journal := workload.NewJournal(client.For[*corev1.ConfigMap](direct))
	stopWriting := journal.Write(t, *seed)
	defer stopWriting()

	defer creds.keepRotating()()
	behind := creds.rotated("https://" + proxy.Addr())
	inTheWay := &proxyPages{}
	subjects := workload.NewSubjects(t, behind, inTheWay.wrap)
	defer func() {
		for _, s := range subjects {
			s.Stop()
		}
	}()
	trouble := newChaos(t, h, direct, proxy, inTheWay, subjects, random)
	defer trouble.stop()
	limits := bounds{}
	for end, n := time.Now().Add(*duration), 1; time.Now().Before(end) && !t.Failed(); n++ {
		begun := time.Now()
		trouble.make(t, min(*round, time.Until(end)))
		release := journal.Quiet()
		quiet := time.Now()
		workload.Agree(t, direct, journal, subjects)
		limits.check(t)
		t.Logf("round %d: trouble for %.1fs, agreed after %.1fs; %d writes; %d rotated credentials used; %v; longest recoveries %v; %s",
			n, quiet.Sub(begun).Seconds(), time.Since(quiet).Seconds(), journal.Writes.Load(), workload.Reloads(subjects), trouble.counts, trouble.recoveries, limits)
		release()
	}
	for _, s := range subjects {
		if *duration > 3*certificateLifetime && s.Reloads() == 0 {
			t.Errorf("no rotated credentials were used: %s", s.Describe())
		}
	}
}

// bounds watches what must not grow.
type bounds struct {
	goroutines, most int
	heap, mostHeap   uint64
}

// check compares with the first time, of which nothing can be known but that
// it was not yet after long.
func (b *bounds) check(t *testing.T) {
	t.Helper()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	goroutines := runtime.NumGoroutine()
	if b.goroutines == 0 {
		b.goroutines, b.heap = goroutines, m.HeapAlloc
	}
	b.most, b.mostHeap = max(b.most, goroutines), max(b.mostHeap, m.HeapAlloc)
	if most := 2*b.goroutines + 100; goroutines > most {
		t.Errorf("%d goroutines, after %d at first", goroutines, b.goroutines)
	}
	if most := 2*b.heap + 32<<20; m.HeapAlloc > most {
		t.Errorf("%d bytes of heap, after %d at first", m.HeapAlloc, b.heap)
	}
}

func (b bounds) String() string {
	return fmt.Sprintf("goroutines: %d at first, %d at most; heap: %d MB at first, %d at most", b.goroutines, b.most, b.heap>>20, b.mostHeap>>20)
}
