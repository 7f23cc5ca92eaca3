package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/levelwire/levelwire/benchmarks/serverbench/process"
	"github.com/levelwire/levelwire/client"
)

func main() { process.Main("churn", nil, run) }

// plan is what is to be measured.
type plan struct {
	levelwire   string
	duration    time.Duration
	interval    time.Duration
	nodes       int
	deployments int
	pause       time.Duration // after each rollout
	limit       string        // of memory, for GOMEMLIMIT; empty: none
	profile     string        // a folder for heap profiles; empty: none
}

func run(ctx context.Context) error {
	var p plan
	flag.StringVar(&p.levelwire, "levelwire", "bin/levelwire", "the program that is measured")
	flag.DurationVar(&p.duration, "duration", 150*time.Second, "for how long Deployments are rolled out")
	flag.DurationVar(&p.interval, "interval", 15*time.Second, "how often a line is printed")
	flag.IntVar(&p.nodes, "nodes", 10, "simulated nodes")
	flag.IntVar(&p.deployments, "deployments", 20, "Deployments of one pod, which are rolled out at the same time")
	flag.DurationVar(&p.pause, "pause", 0, "how long each Deployment rests between rollouts; with 3s and 20 Deployments there are about 135 writes a second")
	flag.StringVar(&p.limit, "memory-limit", "", "GOMEMLIMIT of the program, such as 150MiB")
	flag.StringVar(&p.profile, "profile", "", "folder for a heap profile at the end")
	flag.Parse()
	if flag.NArg() > 0 {
		return &process.UsageError{Reason: fmt.Sprintf("unexpected argument %q", flag.Arg(0))}
	}
	var err error
	if p.levelwire, err = filepath.Abs(p.levelwire); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "churn")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // best effort: it is a temporary folder
	return p.run(ctx, dir)
}

// run starts the cluster, rolls out for the duration, and watches.
func (p *plan) run(ctx context.Context, dir string) error {
	data := filepath.Join(dir, "data")
	cmd := exec.CommandContext(ctx, p.levelwire, "up", "--nodes", strconv.Itoa(p.nodes), "--secure-port=0", "--data-dir", data, "--profiling")
	if p.limit != "" {
		cmd.Env = append(os.Environ(), "GOMEMLIMIT="+p.limit)
	}
	child, output, err := process.Execute(ctx, dir, "levelwire up", cmd)
	if err != nil {
		return err
	}
	go func() { _, _ = io.Copy(io.Discard, output) }()
	c, err := connect(ctx, filepath.Join(data, "admin.kubeconfig"))
	if err != nil {
		return child.Because(err)
	}
	watcher := &observer{client: c, pid: cmd.Process.Pid, database: filepath.Join(data, "etcd", "member", "snap", "db"), started: time.Now()}
	rolling, stop := context.WithTimeout(ctx, p.duration)
	defer stop()
	group, groupCtx := errgroup.WithContext(rolling)
	for i := range p.deployments {
		group.Go(func() error { return roll(groupCtx, c, fmt.Sprintf("churn-%d", i), p.pause) })
	}
	group.Go(func() error { return watcher.report(groupCtx, p.interval) })
	if err := group.Wait(); err != nil && rolling.Err() == nil {
		return child.Because(err)
	}
	if p.profile != "" {
		if err := watcher.heapProfile(ctx, filepath.Join(p.profile, "heap.pprof")); err != nil {
			return err
		}
	}
	return child.Stop()
}

// connect waits until the cluster's nodes can be read.
func connect(ctx context.Context, kubeconfig string) (*client.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		c, err := client.FromKubeconfig(kubeconfig, client.Options{})
		if err == nil {
			if _, err = revision(ctx, c); err == nil {
				return c, nil
			}
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(100 * time.Millisecond):
		}
	}
}
