package main

import (
	"context"
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/levelwire/levelwire/benchmarks/herd"
	"github.com/levelwire/levelwire/benchmarks/load"
	"github.com/levelwire/levelwire/benchmarks/measure"
	"github.com/levelwire/levelwire/internal/faultnet"
)

var (
	informers = flag.Int("informers", 0, "measure in place of the rest: so many informers, each with a connection of its own, on a relay that is killed while another one stands by")
	pods      = flag.Int("pods", 100, "pods, of which each informer sees all")
)

// resume measures what informers cost a relay, and how they go on when it is killed.
func resume(ctx context.Context, dir string) error {
	upstream, err := start(ctx, dir, "upstream", "serve", "--storage", "memory")
	if err != nil {
		return err
	}
	defer upstream.stop()
	if err := createPods(ctx, upstream); err != nil {
		return err
	}
	first, err := start(ctx, dir, "first", "relay", "--kubeconfig", upstream.kubeconfig(dir, "upstream"))
	if err != nil {
		return err
	}
	defer first.stop()
	// The relays have one authority, so that clients of one may go to the other.
	if err := os.CopyFS(filepath.Join(dir, "second", "pki"), os.DirFS(filepath.Join(dir, "first", "pki"))); err != nil {
		return err
	}
	second, err := start(ctx, dir, "second", "relay", "--kubeconfig", upstream.kubeconfig(dir, "upstream"))
	if err != nil {
		return err
	}
	defer second.stop()
	targets := []string{hostOf(first), hostOf(second)}
	balancer, err := faultnet.NewBalancer(targets...)
	if err != nil {
		return err
	}
	defer func() { _ = balancer.Close() }()
	balancer.Drain(targets[1], true)
	clients, err := first.access.TLS()
	if err != nil {
		return err
	}
	options := herd.Options{Address: balancer.Addr(), TLS: clients, Everything: 1}
	one, err := herd.Gather(ctx, options) // the cache is filled
	if err != nil {
		return err
	}
	defer one.Close()
	before, err := measure.MemoryOf(first.command.Process.Pid)
	if err != nil {
		return err
	}
	upstreamMemory, err := measure.MemoryOf(upstream.command.Process.Pid)
	if err != nil {
		return err
	}
	fmt.Printf("%d pods: upstream %d MiB, relay %d MiB\n", *pods, upstreamMemory.Resident>>20, before.Resident>>20)
	options.Everything = *informers
	h, err := herd.Gather(ctx, options)
	if err != nil {
		return err
	}
	defer h.Close()
	after, err := measure.MemoryOf(first.command.Process.Pid)
	if err != nil {
		return err
	}
	fmt.Printf("%d informers: relay %d MiB, %.1f KiB each\n", *informers, after.Resident>>20, float64(after.Resident-before.Resident)/1024/float64(*informers))
	time.Sleep(2 * time.Second) // client-go takes a watch without events that ends within a second for a reason to list
	h.Open()                    // counts from here
	balancer.Drain(targets[1], false)
	begin, err := measure.CPU(second.command.Process.Pid)
	if err != nil {
		return err
	}
	first.stop()
	balancer.Kill(targets[0])
	killed := time.Now()
	report := h.Report()
	for report.Resumes+report.Listed < int64(*informers) || report.Converged < *informers {
		if err := ctx.Err(); err != nil {
			return err
		}
		if time.Since(killed) > 5*time.Minute {
			return fmt.Errorf("%d of %d informers have resumed: %v", report.Converged, *informers, report.Errors)
		}
		time.Sleep(20 * time.Millisecond)
		report = h.Report()
	}
	end, err := measure.CPU(second.command.Process.Pid)
	if err != nil {
		return err
	}
	half, _ := report.At(50)
	most, _ := report.At(99)
	all, _ := report.At(100)
	fmt.Printf("resumed: half after %s, 99%% after %s, all after %s; %d lists by informers; %.0f µs of the relay's processor each\n", half.Round(time.Millisecond), most.Round(time.Millisecond),
		all.Round(time.Millisecond), report.Lists+report.Streams, float64((end-begin).Microseconds())/float64(*informers))
	return nil
}

func hostOf(p *process) string {
	u, err := url.Parse(p.access.URL)
	if err != nil {
		panic(err) // it has been connected to
	}
	return u.Host
}

// createPods creates pods of about 3 kB.
func createPods(ctx context.Context, p *process) error {
	config, address, err := p.access.Reach()
	if err != nil {
		return err
	}
	conn, err := load.Dial(ctx, address, config, load.Options{})
	if err != nil {
		return err
	}
	defer conn.Close()
	for i := range *pods {
		body := fmt.Appendf(nil, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"pod-%d","annotations":{"text":"%s"}},"spec":{"nodeName":"node-%d","containers":[{"name":"main","image":"image"}]}}`,
			i, strings.Repeat("x", 2000), i%100)
		answer := conn.Do(ctx, load.Request{Method: "POST", Path: "/api/v1/namespaces/default/pods", Body: body})
		if err := answer.Check(201); err != nil {
			return err
		}
	}
	return nil
}
