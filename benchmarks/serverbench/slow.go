package main

import (
	"context"
	"fmt"
	"time"

	"github.com/levelwire/levelwire/benchmarks/serverbench/tested"
)

// slowFor is how long watchers are watched, twice.
const slowFor = 4 * time.Second

// slowGroup is what watchers suffer from one among them that does not read.
func slowGroup() *group {
	const without, with, ratio = "p99 ms of 999 with no slow watcher", "p99 ms of 999 beside it", "beside it ÷ without"
	g := &group{name: "slow", title: "One of 1,000 watchers does not read", servers: empty}
	for _, socket := range []bool{false, true} {
		name := "its stream: the window stays closed, and others share the connection"
		if socket {
			name = "its connection: the client does not read from the socket"
		}
		g.rows = append(g.rows, &row{
			name: name, once: true,
			quantities: []quantity{{name: without}, {name: with}, {name: ratio, aim: aim{atMost: 1.2}}},
			measure: func(ctx context.Context, b *bench, t *tested.Server) (result, error) {
				// In turns, as each is as slow as its slowest write to the disk.
				var alone, beside delivery
				for range 2 {
					if err := alone.add(slowRun(ctx, b, t, 0, false)); err != nil {
						return result{}, err
					}
					if err := beside.add(slowRun(ctx, b, t, 1, socket)); err != nil {
						return result{}, err
					}
				}
				if note := alone.trouble(1000); note != "" {
					return result{Note: note + ", with no slow watcher"}, nil
				}
				a, s := millis(alone.Latency.Quantile(0.99)), millis(beside.Latency.Quantile(0.99))
				note := beside.trouble(999)
				if note == "" && beside.StalledEnded > 0 {
					note = "the slow one was cut off"
				}
				return result{Values: map[string]float64{without: a, with: s, ratio: s / a}, Note: note}, nil
			},
		})
	}
	return g
}

// add takes another delivery to this one.
func (d *delivery) add(another delivery, err error) error {
	latency := d.Latency
	ended, stalled := d.Ended, d.StalledEnded
	*d = another
	d.Latency.Merge(&latency)
	d.Ended += ended
	d.StalledEnded += stalled
	return err
}

func slowRun(ctx context.Context, b *bench, t *tested.Server, stalled int, socket bool) (delivery, error) {
	w, err := b.startWriter(ctx, t)
	if err != nil {
		return delivery{}, err
	}
	defer w.Kill()
	f := fanOut{watchers: 1000, perConn: 100}
	o := f.options()
	o.Stalled, o.StalledSocket = stalled, socket
	d, err := b.deliver(ctx, t, w, o, f.watchers-stalled, writerRun{Rate: fanRate / float64(f.watchers), Duration: slowFor})
	if err != nil {
		return d, fmt.Errorf("%d do not read: %w", stalled, err)
	}
	return d, nil
}
