package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/levelwire/levelwire/benchmarks/load"
	"github.com/levelwire/levelwire/benchmarks/measure"
)

// The sides of the comparison.
const (
	ours   = "levelwire"
	theirs = "kube-apiserver"
)

var allSides = []string{ours, theirs}

// plan is what is to be measured.
type plan struct {
	pods     []int
	nodes    []int // pods are bound to each of these numbers
	repeat   int
	probes   float64 // updates a second
	limit    time.Duration
	sides    []string
	binaries string
	report   string
}

// programs lists those that are run.
func (p *plan) programs() []string {
	programs := []string{"kube-controller-manager", "kube-scheduler"}
	if slices.Contains(p.sides, ours) {
		programs = append(programs, "levelwire")
	}
	if slices.Contains(p.sides, theirs) {
		programs = append(programs, "kube-apiserver", "etcd")
	}
	return programs
}

func (p *plan) run(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "upstreambench")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w; the logs are in %s", err, dir)
			return
		}
		err = os.RemoveAll(dir)
	}()
	for _, t := range p.tables() {
		if err := p.fill(ctx, t, dir); err != nil {
			return err
		}
		if err := p.write(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

// tables returns one for each size, which has nothing yet.
func (p *plan) tables() (tables []*table) {
	for _, nodes := range p.nodes {
		for _, pods := range p.pods {
			tables = append(tables, &table{pods: pods, nodes: nodes, outcomes: map[string][]outcome{}})
		}
	}
	return tables
}

// fill measures what a table says, with the logs in a folder.
func (p *plan) fill(ctx context.Context, t *table, dir string) error {
	what := fmt.Sprintf("%d pods, %d nodes", t.pods, t.nodes)
	for n := range p.repeat {
		sides := slices.Clone(p.sides)
		if n%2 == 1 { // what the machine has left of one side's run is not always the same side's disadvantage
			slices.Reverse(sides)
		}
		for _, side := range sides {
			o, err := p.measure(ctx, filepath.Join(dir, fmt.Sprintf("%s-%d-%d-%d", side, t.nodes, t.pods, n)), side, t)
			if err != nil {
				return fmt.Errorf("%s on %s: %w", what, side, err)
			}
			t.outcomes[side] = append(t.outcomes[side], o)
			fmt.Fprintf(os.Stderr, "%s on %s: bound after %.1f s, gone after %.1f s\n", what, side, o.all[untilBound], o.all[untilGone])
		}
	}
	return nil
}

// measure starts a side in a folder, and has the pods of a table come and go there.
func (p *plan) measure(ctx context.Context, dir, side string, t *table) (o outcome, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return o, err
	}
	c, err := startControlPlane(ctx, p.binaries, dir, side)
	defer c.Stop()
	if err != nil {
		return o, err
	}
	w, err := newWorkload(c, t.nodes, t.pods)
	if err != nil {
		return o, err
	}
	if err := w.prepare(ctx); err != nil {
		return o, err
	}
	if err := c.settle(ctx); err != nil {
		return o, err
	}
	if err := c.servers().resetPeak(); err != nil {
		return o, err
	}
	endProbe, err := beginProbe(ctx, c.server, p.probes)
	if err != nil {
		return o, err
	}
	phases, err := w.comeAndGo(ctx, p.limit)
	lag, probeErr := endProbe()
	if err := errors.Join(err, probeErr); err != nil {
		return o, err
	}
	return newOutcome(c, phases, lag)
}

// used is the processor time that programs have used until a moment.
type used struct {
	at                                      time.Time
	server, store, components, own, machine time.Duration
}

// sample reads what was used until now.
func (c *controlPlane) sample() (u used, err error) {
	u.at = time.Now()
	var errs [5]error
	u.server, errs[0] = c.servers().cpu()
	u.store, errs[1] = c.stores().cpu()
	u.own, errs[2] = measure.OwnCPU()
	u.machine, errs[3] = measure.BusyCPU()
	u.components, errs[4] = programs(c.Components()).cpu()
	return u, errors.Join(errs[:]...)
}

// phase is how long a part of the measurement took, and the processor time that was used in it.
type phase struct{ took, server, store, components, others time.Duration }

// until is the phase between two moments.
func (u used) until(end used) phase {
	p := phase{took: end.at.Sub(u.at), server: end.server - u.server, store: end.store - u.store, components: end.components - u.components}
	p.others = max(0, end.machine-u.machine-p.server-p.components-(end.own-u.own))
	return p
}

// newOutcome puts together what was measured, at the end of the phases: until all pods are bound, and until all are gone.
func newOutcome(c *controlPlane, phases [2]phase, lag load.Histogram) (o outcome, err error) {
	o = outcome{all: map[string]float64{}, store: map[string]float64{}}
	all, err := c.servers().memory()
	if err != nil {
		return o, err
	}
	stores, err := c.stores().memory()
	if err != nil {
		return o, err
	}
	o.all[peakMemory], o.store[peakMemory] = megabytes(all.Peak), megabytes(stores.Peak)
	o.all[lagP50], o.all[lagP99], o.all[lagCount] = milliseconds(lag.Quantile(0.5)), milliseconds(lag.Quantile(0.99)), float64(lag.Count)
	for i, names := range [][2]string{{untilBound, cpuBound}, {untilGone, cpuGone}} {
		o.all[names[0]] = phases[i].took.Seconds()
		o.all[names[1]] = phases[i].server.Seconds()
		o.store[names[1]] = phases[i].store.Seconds()
		o.all[cpuComponents] += phases[i].components.Seconds()
		o.all[cpuOthers] += phases[i].others.Seconds()
	}
	return o, nil
}

func megabytes(bytes int64) float64        { return float64(bytes) / 1e6 }
func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
