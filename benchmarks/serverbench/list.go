package main

import (
	"context"
	"fmt"
	"time"

	"github.com/levelwire/levelwire/benchmarks/measure"
	"github.com/levelwire/levelwire/benchmarks/serverbench/process"
	"github.com/levelwire/levelwire/benchmarks/serverbench/tested"
)

const (
	jsonType     = "application/json"
	protobufType = "application/vnd.kubernetes.protobuf"

	listPath   = "/api/v1/pods"
	streamPath = "/api/v1/pods?watch=true&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan"
)

// What reading is measured in.
const (
	serverCPU = "server CPU s"
	wallTime  = "wall s"
	megabytes = "received MB"
	clientCPU = "client CPU s"
	growthMB  = "memory grew by MB"
	peakMB    = "memory at most MB"
	finished  = "finished"
)

// fillGroup is the start of a server on a store that has everything already.
func fillGroup() *group {
	return &group{name: "fill", title: "Start with all pods in the store", rows: []*row{{
		name:       "process start until lists are answered from the cache",
		quantities: []quantity{{name: wallTime, aim: aim{ratio: 3}}, {name: serverCPU}},
		// The processor time is that until the server has nothing more to do.
		measure: func(_ context.Context, _ *bench, t *tested.Server) (result, error) {
			used, err := t.CPU()
			return result{Values: map[string]float64{wallTime: t.Ready.Seconds(), serverCPU: (used - t.CPUBefore).Seconds()}}, err
		},
	}}}
}

// memoryGroup is what a server holds that has nothing to do.
func memoryGroup() *group {
	const resident, anonymous, file = "resident MB", "of it its own MB", "of it pages of files MB"
	return &group{name: "memory", title: "Memory with all pods, before any request", rows: []*row{{
		name:       "all processes of the server",
		quantities: []quantity{{name: resident, aim: aim{atMost: 1300}}, {name: anonymous}, {name: file}},
		measure: func(_ context.Context, _ *bench, t *tested.Server) (result, error) {
			m, err := t.Memory()
			return result{Values: map[string]float64{resident: mb(m.Resident), anonymous: mb(m.Anonymous), file: mb(m.File)}}, err
		},
	}}}
}

func mb(bytes int64) float64 { return float64(bytes) / 1e6 }

// listGroup is one list of all pods, in all forms.
func listGroup() *group {
	five := aim{ratio: 5}
	return &group{name: "list", title: "Lists of all pods", plots: listPlots(), rows: []*row{
		reading("JSON", aim{ratio: 12, ofLimit: 2}, getTask{Path: listPath, Accept: jsonType}),
		reading("JSON, resourceVersion=0", aim{ratio: 12, ofLimit: 2}, getTask{Path: listPath + "?resourceVersion=0", Accept: jsonType}),
		reading("protobuf", five, getTask{Path: listPath, Accept: protobufType}),
		reading("protobuf, again", five, getTask{Path: listPath, Accept: protobufType}),
		reading("JSON, gzip", five, getTask{Path: listPath, Accept: jsonType, Gzip: true}),
		reading("JSON, gzip, again", five, getTask{Path: listPath, Accept: jsonType, Gzip: true}),
		reading("protobuf, gzip", five, getTask{Path: listPath, Accept: protobufType, Gzip: true}),
		reading("protobuf, gzip, again", five, getTask{Path: listPath, Accept: protobufType, Gzip: true}),
	}}
}

// streamGroup is one streaming list.
func streamGroup() *group {
	return &group{name: "stream", title: "Streaming lists of all pods", rows: []*row{
		reading("JSON", aim{ratio: 20}, getTask{Path: streamPath, Accept: jsonType, Stream: true}),
		reading("protobuf", aim{ratio: 20}, getTask{Path: streamPath, Accept: protobufType, Stream: true}),
	}}
}

// reading is the row of one client. Its answer is verified after the first
// measurement.
func reading(name string, cpu aim, task getTask) *row {
	task.Clients = 1
	return &row{
		name:       name,
		quantities: []quantity{{name: serverCPU, aim: cpu}, {name: wallTime}, {name: megabytes}, {name: clientCPU}},
		measure: func(ctx context.Context, b *bench, t *tested.Server) (result, error) {
			found, err := b.read(ctx, t, task)
			if err != nil || b.now.repetition > 0 {
				return found, err
			}
			return found, b.verify(ctx, t, task)
		},
		bare: func(ctx context.Context, b *bench, our result) (result, error) {
			return b.bareBytes(ctx, int64(our.Values[megabytes]*1e6), 1)
		},
	}
}

// read has clients read, and fails if one of them does not get all of it.
func (b *bench) read(ctx context.Context, t *tested.Server, task getTask) (result, error) {
	found, each, err := b.measureReading(ctx, t, task)
	for _, r := range each {
		if r.Err != "" && err == nil {
			err = fmt.Errorf("after %v and %d bytes: %s", r.Took.Round(time.Millisecond), r.Bytes, r.Err)
		}
	}
	return found, err
}

// measureReading has clients read, whatever they get.
func (b *bench) measureReading(ctx context.Context, t *tested.Server, task getTask) (result, []received, error) {
	task.Access = t.Access
	before, err := t.CPU()
	if err != nil {
		return result{}, nil, err
	}
	begun := time.Now()
	var what got
	if err := process.Run(ctx, b.dir, "get", task, &what); err != nil {
		return result{}, nil, err
	}
	wall := time.Since(begun)
	after, err := t.CPU()
	if err != nil {
		return result{}, nil, err
	}
	values := map[string]float64{serverCPU: (after - before).Seconds(), clientCPU: what.CPU.Seconds()}
	for _, r := range what.Each {
		values[megabytes] += mb(r.Bytes)
		values[wallTime] = max(values[wallTime], r.Took.Seconds())
	}
	if len(what.Each) == 0 {
		values[wallTime] = wall.Seconds()
	}
	return result{Values: values}, what.Each, nil
}

// verify reads once more, and looks whether everything is there.
func (b *bench) verify(ctx context.Context, t *tested.Server, task getTask) error {
	task.Access, task.Verify = t.Access, true
	var what got
	if err := process.Run(ctx, b.dir, "get", task, &what); err != nil {
		return err
	}
	for _, r := range what.Each {
		if r.Err != "" || r.Objects != t.Objects {
			return fmt.Errorf("the answer has %d objects, not %d, in %s bytes: %s", r.Objects, t.Objects, measure.Number(float64(r.Bytes)), r.Err)
		}
	}
	return nil
}
