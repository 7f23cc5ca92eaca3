package main

import (
	"context"
	"fmt"
	"time"

	"github.com/levelwire/levelwire/benchmarks/load"
	"github.com/levelwire/levelwire/benchmarks/serverbench/tested"
)

const (
	selectWrites = 100 // per second
	selectFor    = 3 * time.Second
)

// selection is watchers each of which selects something of its own: {i} is its
// number.
type selection struct{ name, path string }

var selections = []selection{
	{"spec.nodeName", "/api/v1/pods?fieldSelector=spec.nodeName%3Dnode-{i}"},
	{"namespace", "/api/v1/namespaces/load-{i}/pods?limit=0"},
	{"metadata.name", "/api/v1/pods?fieldSelector=metadata.name%3Dpod-{i}"},
	{"label", "/api/v1/pods?labelSelector=slot%3D{i}"},
}

// selectorsGroup is what a write costs when each of many watchers selects
// something else.
func selectorsGroup() *group {
	const many = 5000
	const one, all, ratio = "server CPU µs per write, 1 watcher", "the same, 5,000 watchers", "5,000 ÷ 1"
	g := &group{name: "selectors", title: "5,000 watchers, each with a selection of its own; 100 writes per second, of which each is seen by one watcher", servers: empty}
	for _, s := range selections {
		g.rows = append(g.rows, &row{
			name: s.name, once: true,
			quantities: []quantity{{name: one}, {name: all}, {name: ratio, aim: aim{atMost: 1.5}}},
			measure: func(ctx context.Context, b *bench, t *tested.Server) (result, error) {
				// A single watcher sees every write if only its pods are written.
				pods := podsPerSlot
				if s.name == "metadata.name" {
					pods = 1
				}
				few, note, err := s.perWrite(ctx, b, t, 1, pods)
				if err != nil || note != "" {
					return result{Note: note}, err
				}
				full, note, err := s.perWrite(ctx, b, t, many, 0)
				if err != nil || note != "" {
					return result{Note: note}, err
				}
				return result{Values: map[string]float64{one: few, all: full, ratio: full / few}}, nil
			},
		})
	}
	return g
}

// perWrite is the server's processor time per write, in µs, with so many
// watchers of which one sees each write. A note says why there is none.
func (s selection) perWrite(ctx context.Context, b *bench, t *tested.Server, watchers, pods int) (cost float64, note string, err error) {
	w, err := b.startWriter(ctx, t)
	if err != nil {
		return 0, "", err
	}
	defer w.Kill()
	o := load.CrowdOptions{Watchers: watchers, Path: s.path}
	d, err := b.deliver(ctx, t, w, o, 1, writerRun{Rate: selectWrites, Duration: selectFor, Pods: pods})
	if err != nil {
		return 0, "", err
	}
	return micros(d.server) / float64(d.writes), d.trouble(watchers), nil
}

// How many watchers there are: of those that select a write, and of those that do not.
var (
	interested   = []int{10, 100, 1000, 10_000}
	uninterested = []int{100, 1000, 10_000}
)

const (
	interestedName   = "%d interested watchers"
	uninterestedName = "%d watchers of other nodes"
)

// dispatchGroup is how the cost of a write grows with the number of watchers that
// select it, and of those that do not.
func dispatchGroup() *group {
	g := &group{name: "dispatch", title: "How dispatch grows with watchers", servers: empty, plots: dispatchPlots()}
	for _, n := range interested {
		g.rows = append(g.rows, &row{
			name: fmt.Sprintf(interestedName, n), once: true,
			quantities: []quantity{{name: cpuPerWrite}, {name: cpuPerEvent}},
			measure: func(ctx context.Context, b *bench, t *tested.Server) (result, error) {
				rate := min(selectWrites, fanRate/float64(n))
				return dispatched(ctx, b, t, selection{"all", allPods}, n, n, rate)
			},
		})
	}
	for _, n := range uninterested {
		g.rows = append(g.rows, &row{
			name: fmt.Sprintf(uninterestedName, n), once: true,
			quantities: []quantity{{name: cpuPerWrite}},
			measure: func(ctx context.Context, b *bench, t *tested.Server) (result, error) {
				others := selection{"another node", "/api/v1/pods?fieldSelector=spec.nodeName%3Dother-{i}"}
				return dispatched(ctx, b, t, others, n, 0, selectWrites)
			},
		})
	}
	return g
}

const cpuPerWrite = "server CPU µs per write"

// dispatched measures writes with watchers of which so many see each.
func dispatched(ctx context.Context, b *bench, t *tested.Server, s selection, watchers, each int, rate float64) (result, error) {
	w, err := b.startWriter(ctx, t)
	if err != nil {
		return result{}, err
	}
	defer w.Kill()
	run := writerRun{Rate: rate, Duration: selectFor}
	d, err := b.deliver(ctx, t, w, load.CrowdOptions{Watchers: watchers, Path: s.path}, each, run)
	if err != nil {
		return result{}, err
	}
	if note := d.trouble(watchers); note != "" {
		return result{Note: note}, nil
	}
	found := result{Values: map[string]float64{cpuPerWrite: micros(d.server) / float64(d.writes)}}
	if each == 0 {
		return found, nil
	}
	one, err := b.deliver(ctx, t, w, load.CrowdOptions{Watchers: 1, Path: s.path}, 1, run)
	if err != nil {
		return result{}, err
	}
	found.Values[cpuPerEvent] = micros(d.server-one.server) / float64(d.Events-d.writes)
	return found, nil
}
