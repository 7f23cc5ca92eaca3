package startup

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"k8s.io/klog/v2"

	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/levelwiretest"
	"github.com/levelwire/levelwire/tests/peers/program"
	"github.com/levelwire/levelwire/tests/peers/upstream"
)

// asUpstream in the environment makes this program an upstream server that keeps
// its data in the folder named.
const asUpstream = "LEVELWIRE_TEST_UPSTREAM"

func TestMain(m *testing.M) {
	klog.SetLogger(klog.Logger{})
	if dir := os.Getenv(asUpstream); dir != "" {
		if err := serveUpstream(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// serveUpstream is `levelwire serve` of the upstream libraries.
func serveUpstream(dir string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	etcd, err := upstream.StartEtcd(ctx, upstream.EtcdOptions{DataDir: dir, Fsync: true})
	if err != nil {
		return err
	}
	defer etcd.Close()
	server, err := upstream.Start(context.Background(), upstream.Options{Etcd: etcd.Endpoint(), Protobuf: true})
	if err != nil {
		return err
	}
	fmt.Println("The server is ready at", server.Address())
	<-ctx.Done()
	return server.Stop()
}

// BenchmarkServe starts a process with empty data, waits until it is ready and
// ends it. ms/ready is the time from the start of the process on average,
// ms/best the shortest, which says more on a machine that has other work, cpu-ms
// the processor time that it has used by its end, MiB what it held in RAM at most.
func BenchmarkServe(b *testing.B) {
	binary := program.Build(b)
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	for name, start := range map[string]func(*testing.B) *program.Server{
		"memory":   func(b *testing.B) *program.Server { return program.Start(b, binary, "serve", "--storage=memory") },
		"embedded": func(b *testing.B) *program.Server { return program.Start(b, binary, "serve", "--storage=embedded") },
		"upstream": func(b *testing.B) *program.Server {
			cmd := exec.Command(self)
			cmd.Env = append(os.Environ(), asUpstream+"="+b.TempDir())
			return program.Run(b, cmd)
		},
	} {
		b.Run(name, func(b *testing.B) {
			var ready, cpu, resident float64
			best := math.Inf(1)
			for b.Loop() {
				server := start(b)
				usage, err := server.Usage()
				if err != nil {
					b.Fatal(err)
				}
				if err := server.Stop(); err != nil {
					b.Fatal(err)
				}
				took := server.Took.Seconds() * 1000
				ready, best = ready+took, min(best, took)
				cpu += server.CPU().Seconds() * 1000
				resident += float64(usage.Peak) / (1 << 20)
			}
			b.ReportMetric(ready/float64(b.N), "ms/ready")
			b.ReportMetric(best, "ms/best")
			b.ReportMetric(cpu/float64(b.N), "cpu-ms")
			b.ReportMetric(resident/float64(b.N), "MiB")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkTestServer starts the server of a test, in its process, and ends it.
func BenchmarkTestServer(b *testing.B) {
	start := func() float64 {
		begin := time.Now()
		levelwiretest.Start(b)
		return time.Since(begin).Seconds() * 1000
	}
	first, best := start(), math.Inf(1) // the first makes what the others share
	for b.Loop() {
		best = min(best, start())
	}
	b.ReportMetric(first, "ms/first")
	b.ReportMetric(best, "ms/best")
}
