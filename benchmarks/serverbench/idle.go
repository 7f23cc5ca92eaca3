package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/levelwire/levelwire/benchmarks/serverbench/process"
	"github.com/levelwire/levelwire/benchmarks/serverbench/tested"
	"golang.org/x/sys/unix"
)

// idleFor is how long idle watchers are held.
const idleFor = 5 * time.Second

const (
	perWatcher = "kB per watcher"
	opening    = "server CPU µs to open a watch"
	whileIdle  = "server CPU s while they wait 5 s"
)

// idleGroup is what watchers cost that have nothing to see. Each row has a
// server of its own: what one has needed once, a later one would find free.
func idleGroup() *group {
	g := &group{name: "idle", title: "Idle watchers", servers: own}
	for _, f := range []fanOut{
		{watchers: 1000, perConn: 100}, {watchers: 1000, perConn: 1}, {watchers: 10_000, perConn: 100}, {watchers: 100_000, perConn: 100},
	} {
		g.rows = append(g.rows, &row{
			name: f.String(), once: true, limit: 4 * time.Minute,
			oursOnly:   f.watchers > 10_000, // Upstream would take minutes, and as much for each as with fewer.
			quantities: []quantity{{name: perWatcher, aim: aim{atMost: 20}}, {name: opening}, {name: whileIdle}},
			measure:    f.idle,
		})
	}
	return g
}

// idle opens watches on a new server, holds them, and then writes once.
func (f fanOut) idle(ctx context.Context, b *bench, fresh *tested.Server) (found result, err error) {
	if err := enoughFiles(f.watchers / f.perConn); err != nil {
		return found, err
	}
	dir, err := os.MkdirTemp(b.dir, fresh.Side)
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	err = b.withTarget(ctx, fresh.Side, dir, 0, func(ctx context.Context, t *tested.Server) error {
		w, err := b.startWriter(ctx, t)
		if err != nil {
			return err
		}
		defer w.Kill()
		if err := t.Settle(ctx); err != nil {
			return err
		}
		found, err = f.hold(ctx, b, t, w)
		return err
	})
	return found, err
}

func (f fanOut) hold(ctx context.Context, b *bench, t *tested.Server, w *process.Child) (found result, err error) {
	var used [3]time.Duration
	before, err := t.Memory()
	if err != nil {
		return found, err
	}
	if used[0], err = t.CPU(); err != nil {
		return found, err
	}
	c, err := b.gather(ctx, t, f.options())
	if err != nil {
		return found, err
	}
	defer c.child.Kill()
	if used[1], err = t.CPU(); err != nil {
		return found, err
	}
	if err := tested.Pause(ctx, idleFor); err != nil {
		return found, err
	}
	if used[2], err = t.CPU(); err != nil {
		return found, err
	}
	after, err := t.Memory()
	if err != nil {
		return found, err
	}
	done, err := updatePods(w, writerRun{Rate: 1, Duration: time.Second})
	if err != nil {
		return found, err
	}
	r, err := c.report(done.Sent*int64(f.watchers), 30*time.Second, false)
	if err != nil {
		return found, err
	}
	if !r.Complete || r.Least != done.Sent || r.Most != done.Sent {
		return found, fmt.Errorf("the last write reached watchers between %d and %d times, %d were cut off: %q", r.Least, r.Most, r.Ended, r.Errors)
	}
	return result{Values: map[string]float64{
		perWatcher: float64(after.Resident-before.Resident) / float64(f.watchers) / 1000,
		opening:    micros(used[1]-used[0]) / float64(f.watchers),
		whileIdle:  (used[2] - used[1]).Seconds(),
	}}, nil
}

// enoughFiles reports whether a process may have so many connections. Go raises
// the limit to the hardest one by itself, here and in both servers.
func enoughFiles(connections int) error {
	const others = 200 // of etcd, say
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("getrlimit: %w", err)
	}
	if limit.Max < uint64(connections+others) {
		return fmt.Errorf("a process may have %d files open, and %d connections are wanted: raise the hard limit (ulimit -Hn, or LimitNOFILE of the service)", limit.Max, connections)
	}
	return nil
}
