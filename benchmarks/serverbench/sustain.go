package main

import (
	"context"
	"fmt"
	"time"

	"github.com/levelwire/levelwire/benchmarks/serverbench/process"
	"github.com/levelwire/levelwire/benchmarks/serverbench/tested"
)

const (
	// sustainFor is how long a rate must be kept up, in two halves.
	sustainFor = 10 * time.Second
	// halvings is how often the last step of the ramp is cut in half.
	halvings = 3
	// mostUpdates ends the ramp: the writer is not to be what is measured.
	mostUpdates = 5_000
)

const (
	sustained = "delivered events per second"
	cpuThen   = "server CPU µs per event, writes included"
)

// sustainGroup is the most that is delivered without falling behind.
func sustainGroup() *group {
	g := &group{name: "sustain", title: "Fan-out: the most that is sustained", servers: empty}
	for _, f := range []fanOut{{watchers: 1000, perConn: 100}, {watchers: 1000, perConn: 1}} {
		g.rows = append(g.rows, &row{
			name: f.String(), once: true, limit: 5 * time.Minute,
			quantities: []quantity{{name: sustained, more: true, aim: aim{ratio: 5}}, {name: cpuThen}, {name: p99Millis}},
			measure:    f.ramp,
		})
	}
	return g
}

// ramp doubles the rate until it is not kept up, and then looks between that
// and the last that was.
func (f fanOut) ramp(ctx context.Context, b *bench, t *tested.Server) (result, error) {
	w, err := b.startWriter(ctx, t)
	if err != nil {
		return result{}, err
	}
	defer w.Kill()
	best := result{Note: "nothing that was tried was sustained"}
	try := func(updates float64) (bool, error) {
		d, why, err := f.sustain(ctx, b, t, w, updates)
		if err != nil {
			return false, err
		}
		events := updates * float64(f.watchers)
		b.progress("%s: %v: %.0f events per second: %s", t.Side, f, events, orElse(why, "sustained"))
		if why != "" {
			return false, nil
		}
		best = result{Values: map[string]float64{
			sustained: events, cpuThen: micros(d.server) / float64(d.Events), p99Millis: millis(d.Latency.Quantile(0.99)),
		}}
		return true, t.Settle(ctx)
	}
	good, bad := 0.0, fanRate/float64(f.watchers)
	for ok := true; ok && bad < mostUpdates; {
		if ok, err = try(bad); err != nil {
			return best, err
		}
		if ok {
			good, bad = bad, 2*bad
		}
	}
	for range halvings {
		middle := (good + bad) / 2
		ok, err := try(middle)
		if err != nil {
			return best, err
		}
		if ok {
			good = middle
		} else {
			bad = middle
		}
	}
	return best, nil
}

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// sustain tries a rate, and returns why it was not kept up, or nothing.
func (f fanOut) sustain(ctx context.Context, b *bench, t *tested.Server, w *process.Child, updates float64) (d delivery, why string, err error) {
	if err := t.Settle(ctx); err != nil {
		return d, "", err
	}
	c, err := b.gather(ctx, t, f.options())
	if err != nil {
		return d, "", err
	}
	defer c.child.Kill()
	used, err := t.CPU()
	if err != nil {
		return d, "", err
	}
	var medians [2]time.Duration
	for half := range medians {
		within := time.Duration(0)
		if half == 1 {
			within = time.Second
		}
		done, err := tryUpdates(w, writerRun{Rate: updates, Duration: sustainFor / 2})
		if err != nil {
			return d, "", err
		}
		d.writes += done.Sent
		latency := d.Latency
		if d.crowdReport, err = c.report(d.writes*int64(f.watchers), within, true); err != nil {
			return d, "", err
		}
		medians[half] = d.Latency.Quantile(0.5)
		d.Latency.Merge(&latency)
		switch {
		case done.Sent < done.Due:
			return d, fmt.Sprintf("%d of %d writes failed: %q", done.Due-done.Sent, done.Due, done.Errors), nil
		case d.Ended > 0:
			return d, fmt.Sprintf("%d watchers were cut off", d.Ended), nil
		}
	}
	ended, err := t.CPU()
	if err != nil {
		return d, "", err
	}
	d.server, d.Events = ended-used, d.Total
	p99 := d.Latency.Quantile(0.99)
	switch {
	case !d.Complete:
		why = "not all had arrived a second after the last write"
	case p99 > time.Second:
		why = fmt.Sprintf("p99 is %v", p99)
	case medians[1] > medians[0]+sustainFor/100:
		why = fmt.Sprintf("the median grew from %v to %v", medians[0], medians[1])
	}
	return d, why, d.check(true)
}
