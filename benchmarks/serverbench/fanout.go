package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/levelwire/levelwire/benchmarks/load"
	"github.com/levelwire/levelwire/benchmarks/serverbench/baretls"
	"github.com/levelwire/levelwire/benchmarks/serverbench/process"
	"github.com/levelwire/levelwire/benchmarks/serverbench/tested"
)

const (
	// fanRate is how many events are delivered each second, to all watchers
	// together.
	fanRate = 20_000
	warmUp  = time.Second
	fanFor  = 6 * time.Second
	// catchUp is how long watchers may take after the last write.
	catchUp = 10 * time.Second

	allPods = "/api/v1/pods?allowWatchBookmarks=false"
)

// fanOut is watchers that all get everything.
type fanOut struct {
	watchers, perConn int
	protobuf          bool
}

func (f fanOut) String() string {
	name := fmt.Sprintf("%d watchers", f.watchers)
	if f.perConn == 1 {
		name += ", a connection each"
	}
	if f.protobuf {
		name += ", protobuf"
	}
	return name
}

func (f fanOut) options() load.CrowdOptions {
	return load.CrowdOptions{Watchers: f.watchers, PerConn: f.perConn, Protobuf: f.protobuf, Path: allPods}
}

// fanoutGroup is what an event costs that many are sent.
func fanoutGroup() *group {
	g := &group{name: "fanout", title: "Fan-out: 20,000 delivered events of 3 kB per second", servers: empty, plots: []plot{fanoutPlot()}}
	for _, f := range []fanOut{
		{watchers: 100, perConn: 100}, {watchers: 1000, perConn: 100}, {watchers: 5000, perConn: 100},
		{watchers: 1000, perConn: 1}, {watchers: 1000, perConn: 100, protobuf: true},
	} {
		g.rows = append(g.rows, f.row())
	}
	return g
}

const (
	cpuPerEvent    = "server CPU µs per event"
	clientPerEvent = "client CPU µs per event"
	medianMillis   = "p50 ms"
	p99Millis      = "p99 ms"
	eventBytes     = "bytes per event"
)

func (f fanOut) row() *row {
	cost := quantity{name: cpuPerEvent, aim: aim{ratio: 7}}
	if f.perConn == 1 {
		cost.aim = aim{ofLimit: 1.4}
	}
	return &row{
		name: f.String(), once: f.protobuf,
		quantities: []quantity{cost, {name: medianMillis}, {name: p99Millis, aim: aim{ratio: 1}}, {name: clientPerEvent}, {name: eventBytes}},
		measure:    f.measure,
		bare:       f.bare,
	}
}

// measure delivers events for a while. What the writes cost, and a server that
// only waits, is measured with a single watcher and taken off.
func (f fanOut) measure(ctx context.Context, b *bench, t *tested.Server) (result, error) {
	w, err := b.startWriter(ctx, t)
	if err != nil {
		return result{}, err
	}
	defer w.Kill()
	rate := fanRate / float64(f.watchers)
	all, err := b.deliver(ctx, t, w, f.options(), f.watchers, writerRun{Rate: rate, Duration: fanFor})
	if err != nil {
		return result{}, err
	}
	alone := writerRun{Rate: rate, Duration: fanFor / 2}
	if f.watchers <= 100 {
		alone.Duration = fanFor // The many writes are most of what is used.
	}
	one, err := b.deliver(ctx, t, w, load.CrowdOptions{Watchers: 1, Path: allPods, Protobuf: f.protobuf}, 1, alone)
	if err != nil {
		return result{}, err
	}
	found := result{Values: map[string]float64{
		medianMillis: millis(all.Latency.Quantile(0.5)),
		p99Millis:    millis(all.Latency.Quantile(0.99)),
	}, Note: all.trouble(f.watchers)}
	if found.Note != "" {
		return found, nil // What a part of the events cost says nothing.
	}
	found.Values[clientPerEvent] = micros(all.client) / float64(all.Events)
	found.Values[eventBytes] = float64(all.Bytes) / float64(all.Events)
	writing := time.Duration(float64(one.server) * float64(all.writes) / float64(one.writes))
	more := float64(all.Events - all.writes) // one watcher's are in the other measurement, too
	found.Values[cpuPerEvent] = micros(all.server-writing) / more
	return found, nil
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// delivery is one run of a writer with a crowd that watches.
type delivery struct {
	crowdReport // of the time that was measured
	writes      int64
	// server and client are the processor time that the server and the crowd
	// have used for it.
	server, client time.Duration
}

// deliver has a new crowd watch while the writer writes. Each update is an event
// for so many of the watchers.
func (b *bench) deliver(ctx context.Context, t *tested.Server, w *process.Child, o load.CrowdOptions, each int, run writerRun) (d delivery, err error) {
	c, err := b.gather(ctx, t, o)
	if err != nil {
		return d, err
	}
	defer c.child.Kill()
	warm := run
	warm.Duration = max(warmUp, time.Duration(2/run.Rate*float64(time.Second)))
	first, err := updatePods(w, warm)
	if err != nil {
		return d, err
	}
	expected := first.Sent * int64(each)
	before, err := c.report(expected, catchUp, true)
	if err != nil {
		return d, err
	}
	if !before.Complete {
		return delivery{crowdReport: before, writes: first.Sent}, nil // That is the result: see trouble.
	}
	d, err = c.during(t, w, each, run, before)
	if err != nil {
		return d, err
	}
	return d, d.check(each == o.Watchers)
}

// during measures a run of the writer. before is the crowd's last report.
func (c *watchers) during(t *tested.Server, w *process.Child, each int, run writerRun, before crowdReport) (d delivery, err error) {
	begun, err := t.CPU()
	if err != nil {
		return d, err
	}
	done, err := updatePods(w, run)
	if err != nil {
		return d, err
	}
	d.writes = done.Sent
	if d.crowdReport, err = c.report(before.Total+done.Sent*int64(each), catchUp, true); err != nil {
		return d, err
	}
	ended, err := t.CPU()
	d.server, d.client = ended-begun, d.CPU-before.CPU
	return d, err
}

// check insists that watchers saw events once, and in order; uniform ones see
// the same. That some were cut off, or lag, is a result and no failure.
func (d *delivery) check(uniform bool) error {
	var errs []error
	if d.Disordered > 0 {
		errs = append(errs, fmt.Errorf("%d events were not newer than the one before", d.Disordered))
	}
	if uniform && d.Complete && d.Least != d.Most && d.Ended == 0 {
		errs = append(errs, fmt.Errorf("some watchers saw %d events, others %d", d.Least, d.Most))
	}
	return errors.Join(errs...)
}

// trouble is what a reader must know of a delivery, or nothing.
func (d *delivery) trouble(watchers int) string {
	switch {
	case d.Ended > 0:
		return fmt.Sprintf("%d of %d watchers were cut off", d.Ended, watchers)
	case !d.Complete:
		return fmt.Sprintf("not all was delivered %v after the last write", catchUp)
	}
	return ""
}

// bare sends the same number of bytes over the same number of connections by a
// server that does nothing but write them to TLS.
func (f fanOut) bare(ctx context.Context, b *bench, our result) (result, error) {
	task := baretls.SpreadTask{
		Conns: max(f.watchers/f.perConn, 1), PerConn: f.perConn, Bytes: int(our.Values[eventBytes]),
		Rate: fanRate / float64(f.watchers), Duration: fanFor / 2,
	}
	if task.Bytes == 0 {
		task.Bytes = writtenBytes // Ours has not delivered all, and so has not said it.
	}
	used, err := baretls.MeasureSpread(ctx, b.dir, task)
	if err != nil {
		return result{}, err
	}
	updates := float64(int(task.Rate * task.Duration.Seconds()))
	return result{Values: map[string]float64{cpuPerEvent: micros(used) / updates / float64(task.Conns*task.PerConn)}}, nil
}
