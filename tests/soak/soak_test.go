package soak

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/internal/faultnet"
)

var (
	duration = flag.Duration("soak.duration", 20*time.Second, "how long to make trouble")
	seed     = flag.Uint64("soak.seed", 1, "what decides on the trouble; two runs with one seed are alike, but not the same")
	round    = flag.Duration("soak.round", 8*time.Second, "how long between two moments of quiet")
)

// testTimeout is how long anything here may take once there is no trouble, on a
// machine that has much else to do.
const testTimeout = 5 * time.Minute

// remarkable is how long it usually takes much less than to agree.
const remarkable = 20 * time.Second

func TestMain(m *testing.M) {
	if dir := os.Getenv(serverDir); dir != "" {
		if err := runServer(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	// etcd leaves these behind; they belong to files that are closed.
	goleak.VerifyTestMain(m,
		goleak.IgnoreTopFunction("go.etcd.io/etcd/server/v3/storage/backend.(*backend).run"),
		goleak.IgnoreTopFunction("go.etcd.io/etcd/server/v3/storage/wal.(*filePipeline).run"))
}

// TestSoak makes trouble in rounds; in a short test there is one.
func TestSoak(t *testing.T) {
	if testing.Short() {
		*duration = min(*duration, *round)
	}
	t.Logf("-soak.seed=%d -soak.duration=%v", *seed, *duration)
	random := rand.New(rand.NewPCG(*seed, 0))
	h := newHost(t)
	h.start(t)
	proxy, err := faultnet.New(h.config.Host[len("https://"):])
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := proxy.Close(); err != nil {
			t.Error(err)
		}
	}()
	direct := newClient(t, h.config, client.Options{ContentType: client.Protobuf})
	defer direct.CloseIdleConnections()
	journal := newJournal(direct)
	stopWriting := journal.write(t, *seed)
	defer stopWriting()

	behind := rest.CopyConfig(h.config)
	behind.Host = "https://" + proxy.Addr()
	subjects := makeSubjects(t, behind)
	defer func() {
		for _, s := range subjects {
			s.stop()
		}
	}()
	trouble := &chaos{host: h, proxy: proxy, subjects: subjects, random: random}
	limits := bounds{}
	for end, n := time.Now().Add(*duration), 1; time.Now().Before(end) && !t.Failed(); n++ {
		begun := time.Now()
		trouble.make(t, min(*round, time.Until(end)))
		release := journal.quiet()
		quiet := time.Now()
		agree(t, direct, journal, subjects)
		limits.check(t)
		t.Logf("round %d: trouble for %.1fs, agreed after %.1fs; %d writes; %v; %s",
			n, quiet.Sub(begun).Seconds(), time.Since(quiet).Seconds(), journal.writes.Load(), trouble.counts, limits)
		release()
	}
}

func newClient(t *testing.T, config *rest.Config, opts client.Options) *client.Client {
	t.Helper()
	c, err := client.New(config, opts)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// agree compares the server with the answers to its writers, and then every
// informer and every handler with the server.
func agree(t *testing.T, direct *client.Client, j *journal, subjects []subject) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	now := func() (state, error) {
		list, err := client.For[*corev1.ConfigMap](direct).List(ctx, metav1.ListOptions{LabelSelector: ours})
		for err != nil && ctx.Err() == nil {
			wait(ctx, time.Second)
			list, err = client.For[*corev1.ConfigMap](direct).List(ctx, metav1.ListOptions{LabelSelector: ours})
		}
		if err != nil {
			return nil, fmt.Errorf("the server does not list: %w", err)
		}
		all := state{}
		for _, obj := range list.Items {
			all[keyOf(obj)] = stampOf(obj)
		}
		return all, j.compare(all)
	}
	for _, s := range subjects {
		begun := time.Now()
		if err := s.agree(ctx, now); err != nil {
			t.Errorf("%s: %v", s.describe(), err)
		}
		if took := time.Since(begun); took > remarkable {
			t.Logf("%s agreed after %v", s.describe(), took)
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
