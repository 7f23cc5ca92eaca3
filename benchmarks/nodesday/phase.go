package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/levelwire/levelwire/benchmarks/load"
	"github.com/levelwire/levelwire/benchmarks/measure"
	"github.com/levelwire/levelwire/benchmarks/serverbench/tested"
)

// step is what was measured at one rate.
type step struct {
	rate     float64 // share of the real rate
	took     time.Duration
	due      map[string]float64 // writes a second
	counts   map[string]*count
	events   []seen
	cpu, own time.Duration // of the server, and of this program
	memory   measure.Memory
}

// seen is what a crowd of watchers has got.
type seen struct {
	name     string
	watchers int
	load.Report
}

// What counts as broken.
const (
	mostLag  = time.Second // p99 of the events
	leastRun = 0.95        // share of the writes that are answered in time
)

// measure lives at factor times the rate of the day.
func (p *plan) measure(ctx context.Context, t *tested.Server, c *clients, crowds []crowd, factor float64) (s step, err error) {
	c.reset()
	for _, w := range crowds {
		w.Report(true)
	}
	cpu, err := t.CPU()
	own, ownErr := measure.OwnCPU()
	if err := errors.Join(err, ownErr); err != nil {
		return s, err
	}
	begun := time.Now()
	// What is not answered long after the end is not waited for.
	writing, stop := context.WithTimeout(ctx, 2*p.duration+10*time.Second)
	defer stop()
	c.write(writing, factor, p.duration)
	s = step{rate: p.day.rate * factor, took: time.Since(begun), counts: c.counts, due: map[string]float64{}}
	for kind, perSecond := range p.day.perSecond() {
		if c.served[kind] {
			s.due[kind] = perSecond * factor
		}
	}
	if err := tested.Pause(ctx, time.Second); err != nil { // until the last events are there
		return s, err
	}
	for _, w := range crowds {
		s.events = append(s.events, seen{w.name, w.watchers, w.Report(true)})
	}
	var errs [3]error
	s.cpu, errs[0] = t.CPU()
	s.own, errs[1] = measure.OwnCPU()
	s.memory, errs[2] = t.Memory()
	s.cpu, s.own = s.cpu-cpu, s.own-own
	return s, errors.Join(errs[:]...)
}

// broken is what did not hold, the worst first.
func (s *step) broken(duration time.Duration) (what []string) {
	for _, e := range s.events {
		if e.Ended > 0 {
			what = append(what, fmt.Sprintf("%d watches of %s were ended: %q", e.Ended, e.name, e.Errors))
		}
		if e.Disordered > 0 {
			what = append(what, fmt.Sprintf("%d events of %s were out of order", e.Disordered, e.name))
		}
	}
	for _, kind := range kinds {
		n := s.counts[kind]
		if n.Refused > 0 || n.Failed > 0 {
			what = append(what, fmt.Sprintf("%s: %d refused, %d failed %s", kind, n.Refused, n.Failed, n.Last))
		}
	}
	if s.took > duration+duration/10+time.Second {
		what = append(what, fmt.Sprintf("writes of %v took %v", duration, s.took.Round(100*time.Millisecond)))
	}
	for _, kind := range kinds {
		if due := float64(int(s.due[kind] * duration.Seconds())); due > 20 && float64(s.counts[kind].Sent) < leastRun*due {
			what = append(what, fmt.Sprintf("%s: %d of %.0f were answered", kind, s.counts[kind].Sent, due))
		}
	}
	for _, e := range s.events {
		if lag := e.Latency.Quantile(0.99); lag > mostLag {
			what = append(what, fmt.Sprintf("p99 of %s is %v", e.name, lag.Round(time.Millisecond)))
		}
	}
	return what
}
