package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/levelwire/levelwire/benchmarks/load"
	"github.com/levelwire/levelwire/benchmarks/measure"
	"github.com/levelwire/levelwire/benchmarks/serverbench/tested"
	"github.com/levelwire/levelwire/internal/childprocess"
)

var (
	levelwire = flag.String("levelwire", "./levelwire", "the program")
	watchers  = flag.Int("watchers", 2000, "watchers, 100 on a connection")
	rate      = flag.Float64("rate", 20, "updates a second while these watch")
	lasts     = flag.Duration("for", 8*time.Second, "how long each measurement lasts")
)

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "relaybench:", err)
		os.Exit(1)
	}
}

// process is a server that runs.
type process struct {
	command *exec.Cmd
	config  *rest.Config
	access  tested.Access
}

// start starts a server and waits until it answers.
func start(ctx context.Context, dir, name string, arguments ...string) (*process, error) {
	data := filepath.Join(dir, name)
	p := &process{command: exec.CommandContext(ctx, *levelwire, append(arguments, "--data-dir", data, "--secure-port", "0")...)}
	ready, err := p.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := childprocess.Start(p.command); err != nil {
		return nil, err
	}
	if _, err := ready.Read(make([]byte, 1)); err != nil { // it says so when it is ready
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if p.config, err = clientcmd.BuildConfigFromFlags("", filepath.Join(data, "admin.kubeconfig")); err != nil {
		return nil, err
	}
	p.access = tested.Access{URL: p.config.Host, CA: p.config.CAData, Cert: p.config.CertData, Key: p.config.KeyData}
	return p, nil
}

func (p *process) stop() {
	_ = p.command.Process.Kill()
	_ = p.command.Wait()
}

func (p *process) kubeconfig(dir, name string) string {
	return filepath.Join(dir, name, "admin.kubeconfig")
}

const objects = 100

func run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "relaybench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if *informers > 0 {
		return resume(ctx, dir)
	}
	upstream, err := start(ctx, dir, "upstream", "serve", "--storage", "memory")
	if err != nil {
		return err
	}
	defer upstream.stop()
	servers := []*process{upstream}
	for i, name := 1, "upstream"; i <= 3; i++ {
		next := fmt.Sprint("relay-", i)
		relay, err := start(ctx, dir, next, "relay", "--kubeconfig", servers[i-1].kubeconfig(dir, name))
		if err != nil {
			return err
		}
		defer relay.stop()
		servers, name = append(servers, relay), next
	}
	writer, err := newWriter(ctx, upstream)
	if err != nil {
		return err
	}
	defer writer.Close()
	fmt.Println("| watchers | on | upstream's CPU µs per event written | last server's CPU µs per event delivered | p50 ms | p99 ms |\n|-|-|-|-|-|-|")
	for _, test := range []struct {
		watchers int
		rate     float64
	}{{1, 100}, {1, 1000}, {*watchers, *rate}} {
		for hops, server := range servers {
			if err := measureOne(ctx, upstream, server, hops, writer, test.watchers, test.rate); err != nil {
				return err
			}
		}
	}
	return nil
}

// newWriter makes the objects and what updates them.
func newWriter(ctx context.Context, p *process) (*load.Writer, error) {
	config, address, err := p.access.Reach()
	if err != nil {
		return nil, err
	}
	conn, err := load.Dial(ctx, address, config, load.Options{})
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	var list []load.Object
	for i := range objects {
		body := fmt.Appendf(nil, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"object-%d","annotations":{"%s":"%s"}},"data":{"x":"%s"}}`,
			i, load.SentAnnotation, load.SentPlaceholder, strings.Repeat("x", 2500))
		answer := conn.Do(ctx, load.Request{Method: "POST", Path: "/api/v1/namespaces/default/configmaps", Body: body})
		if err := answer.Check(201); err != nil {
			return nil, err
		}
		list = append(list, load.Object{Path: fmt.Sprint("/api/v1/namespaces/default/configmaps/object-", i), Body: body})
	}
	return load.NewWriter(ctx, load.WriterOptions{Address: address, TLS: config, Objects: list})
}

// measureOne has watchers on a server while objects are updated on the upstream.
func measureOne(ctx context.Context, upstream, server *process, hops int, writer *load.Writer, watchers int, rate float64) error {
	config, address, err := server.access.Reach()
	if err != nil {
		return err
	}
	crowd, err := load.Gather(ctx, load.CrowdOptions{
		Address: address, TLS: config, Watchers: watchers, Path: "/api/v1/configmaps?watch=true&timeoutSeconds=3600&sendInitialEvents=false&resourceVersion=0&resourceVersionMatch=NotOlderThan",
	})
	if err != nil {
		return err
	}
	defer crowd.Close()
	if _, err := writer.Run(ctx, rate, time.Second); err != nil {
		return err
	}
	crowd.Report(true)
	begin, beginLast, err := used(upstream, server)
	if err != nil {
		return err
	}
	written, err := writer.Run(ctx, rate, *lasts)
	if err != nil {
		return err
	}
	time.Sleep(time.Second) // the last events arrive
	end, endLast, err := used(upstream, server)
	if err != nil {
		return err
	}
	report := crowd.Report(true)
	on := "the upstream"
	if hops > 0 {
		on = fmt.Sprintf("relay %d", hops)
	}
	fmt.Printf("| %d, %v updates/s | %s | %.0f | %.1f | %.2f | %.2f |\n", watchers, rate, on,
		float64((end-begin).Microseconds())/float64(written.Sent), float64((endLast-beginLast).Microseconds())/float64(max(report.Events, 1)),
		float64(report.Latency.Quantile(0.5).Microseconds())/1000, float64(report.Latency.Quantile(0.99).Microseconds())/1000)
	if want := written.Sent * int64(watchers); report.Events < want || report.Disordered > 0 {
		return fmt.Errorf("%d of %d events arrived, %d out of order: %v", report.Events, want, report.Disordered, report.Errors)
	}
	return nil
}

// used is the processor time that the upstream and another server have used.
func used(upstream, server *process) (first, last time.Duration, err error) {
	if first, err = measure.CPU(upstream.command.Process.Pid); err != nil {
		return first, last, err
	}
	last, err = measure.CPU(server.command.Process.Pid)
	return first, last, err
}
