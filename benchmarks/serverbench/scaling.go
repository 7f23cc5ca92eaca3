package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/levelwire/levelwire/benchmarks/measure"
	"github.com/levelwire/levelwire/benchmarks/serverbench/tested"
)

// What is measured with more and more pods.
const (
	podsHeld       = "pods"
	cpuPerList     = "list, server CPU s"
	cpuPerPod      = "list, server CPU µs per pod"
	cpuPerPart     = "list of 200 by a label, server CPU ms"
	cpuPerName     = "list of one by its name, server CPU ms"
	startTime      = "start, wall s"
	residentPerPod = "resident bytes per pod"
)

// scalingGroup is how cost grows with the number of objects: up to the plan's
// number on both sides, and to five times as many on ours.
func scalingGroup(p *plan) *group {
	g := &group{name: "scaling", title: "Growing numbers of pods", servers: own, plots: scalingPlots()}
	for _, objects := range []int{p.pods / 200, p.pods / 20, p.pods / 4, p.pods, 5 * p.pods} {
		g.rows = append(g.rows, withPods(max(objects, 1), objects > p.pods))
	}
	return g
}

func withPods(objects int, oursOnly bool) *row {
	return &row{
		name: measure.Grouped(objects) + " pods", once: true, limit: 8 * time.Minute, oursOnly: oursOnly,
		quantities: []quantity{
			{name: cpuPerList}, {name: cpuPerPod}, {name: cpuPerPart}, {name: cpuPerName}, {name: cpuPerCreate}, {name: createsPerSecond, more: true},
			{name: startTime}, {name: residentPerPod},
		},
		measure: func(ctx context.Context, b *bench, on *tested.Server) (found result, err error) {
			dir, err := b.seeded(ctx, on.Side, objects)
			if err != nil {
				return found, err
			}
			// What is written now must not be in the data of other rows.
			defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
			err = b.withTarget(ctx, on.Side, dir, objects, func(ctx context.Context, t *tested.Server) error {
				found, err = b.scale(ctx, t)
				return err
			})
			return found, err
		},
	}
}

// scale lists and writes on a server that holds some number of pods.
func (b *bench) scale(ctx context.Context, t *tested.Server) (result, error) {
	objects := float64(t.Objects)
	if err := t.Settle(ctx); err != nil {
		return result{}, err
	}
	memory, err := t.Memory()
	if err != nil {
		return result{}, err
	}
	// What a first list prepares is not what is asked here.
	list := getTask{Path: listPath, Accept: jsonType, Clients: 1}
	if _, err := b.read(ctx, t, list); err != nil {
		return result{}, fmt.Errorf("first list: %w", err)
	}
	if err := t.Settle(ctx); err != nil {
		return result{}, err
	}
	read, err := b.read(ctx, t, list)
	if err != nil {
		return result{}, err
	}
	if err := t.Settle(ctx); err != nil {
		return result{}, err
	}
	labelled, err := b.selected(ctx, t, t.Objects, labelPath)
	if err != nil {
		return result{}, fmt.Errorf("by a label: %w", err)
	}
	named, err := b.selected(ctx, t, t.Objects, namePath)
	if err != nil {
		return result{}, fmt.Errorf("by a name: %w", err)
	}
	const writers = 16
	written, err := b.create(ctx, t, writers, writeFor/2)
	if err != nil {
		return result{}, err
	}
	return result{Values: map[string]float64{
		podsHeld: objects, cpuPerList: read.Values[serverCPU], cpuPerPod: read.Values[serverCPU] / objects * 1e6,
		cpuPerPart: labelled.Values[perList], cpuPerName: named.Values[perList],
		cpuPerCreate: written.Values[cpuPerCreate], createsPerSecond: written.Values[createsPerSecond],
		startTime: t.Ready.Seconds(), residentPerPod: float64(memory.Resident) / objects,
	}}, nil
}
