package main

import (
	"context"
	"fmt"
	"time"

	"github.com/levelwire/levelwire/benchmarks/serverbench/tested"
)

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
