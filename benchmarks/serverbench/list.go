package main

import (
	"context"
	"fmt"
	"time"

	"github.com/levelwire/levelwire/benchmarks/measure"
	"github.com/levelwire/levelwire/benchmarks/serverbench/baretls"
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

// bareBytes measures the limit for answers of so many bytes each.
func (b *bench) bareBytes(ctx context.Context, bytes int64, clients int) (result, error) {
	used, err := baretls.MeasureBytes(ctx, b.dir, bytes, clients)
	return result{Values: map[string]float64{
		serverCPU: used.Server.Seconds(), clientCPU: used.Client.Seconds(),
		wallTime: used.Took.Seconds(), megabytes: mb(bytes * int64(clients)),
	}}, err
}

// many is how many clients ask at once.
const many = 16

// concurrentGroup is what many clients cost that want everything at once.
func concurrentGroup() *group {
	return &group{name: "concurrent", title: fmt.Sprintf("%d clients at once", many), rows: []*row{
		crowding("list, JSON", aim{ratio: 12}, getTask{Path: listPath, Accept: jsonType}),
		crowding("list, protobuf", aim{ratio: 5}, getTask{Path: listPath, Accept: protobufType}),
		crowding("streaming list, JSON", aim{ratio: 20}, getTask{Path: streamPath, Accept: jsonType, Stream: true}),
	}}
}

// crowding is the row of many clients. It is measured once, as upstream needs
// minutes, and what it does not finish is reported and not an error.
func crowding(name string, cpu aim, task getTask) *row {
	task.Clients = many
	task.Within = 3 * time.Minute
	return &row{
		name: name, once: true, limit: task.Within + time.Minute,
		quantities: []quantity{
			{name: finished, more: true}, {name: serverCPU, aim: cpu}, {name: wallTime}, {name: megabytes},
			{name: growthMB, aim: aim{atMost: 200}}, {name: peakMB}, {name: clientCPU},
		},
		measure: func(ctx context.Context, b *bench, t *tested.Server) (result, error) {
			if err := t.ResetPeak(); err != nil {
				return result{}, err
			}
			before, err := t.Memory()
			if err != nil {
				return result{}, err
			}
			found, each, err := b.measureReading(ctx, t, task)
			if err != nil {
				return found, err
			}
			after, err := t.Memory()
			if err != nil {
				return found, err
			}
			found.Values[growthMB] = mb(max(after.Peak-before.Resident, 0))
			found.Values[peakMB] = mb(after.Peak)
			found.Values[finished] = 0
			for _, r := range each {
				if r.Err == "" {
					found.Values[finished]++
				} else if found.Note == "" {
					found.Note = fmt.Sprintf("cut off after %.0f s", r.Took.Seconds())
				}
			}
			return found, nil
		},
		bare: func(ctx context.Context, b *bench, our result) (result, error) {
			return b.bareBytes(ctx, int64(our.Values[megabytes]*1e6/many), many)
		},
	}
}
