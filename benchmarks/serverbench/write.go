package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"golang.org/x/net/http2/hpack"
	"golang.org/x/sync/errgroup"

	"github.com/levelwire/levelwire/benchmarks/load"
	"github.com/levelwire/levelwire/benchmarks/measure"
	"github.com/levelwire/levelwire/benchmarks/serverbench/process"
	"github.com/levelwire/levelwire/benchmarks/serverbench/tested"
	"github.com/levelwire/levelwire/benchmarks/workload"
	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/etcd"
)

const (
	createsPerSecond = "creates per s"
	cpuPerCreate     = "server CPU µs per create"

	writeFor = 10 * time.Second
	// writeWarmUp is how long is written before it is measured.
	writeWarmUp = time.Second

	createPath = "/api/v1/namespaces/default/pods"
)

// writeGroup is pods that are created by clients that wait for each answer.
func writeGroup() *group {
	writers := map[string]float64{}
	g := &group{name: "write", title: "Creates, durable", servers: empty, limit: "etcd alone", plots: writePlots(writers)}
	for _, w := range []struct {
		writers int
		ratio   float64 // the aim; 0: it is only for the picture
	}{{1, 4}, {4, 0}, {16, 8}, {64, 10}} {
		r := creating(w.writers, w.ratio)
		writers[r.name] = float64(w.writers)
		g.rows = append(g.rows, r)
	}
	return g
}

func creating(writers int, ratio float64) *row {
	name := strconv.Itoa(writers) + " writers"
	if writers == 1 {
		name = "1 writer"
	}
	cost := aim{atMost: 300}
	if ratio == 0 {
		cost = aim{}
	}
	return &row{
		name: name, once: ratio == 0,
		quantities: []quantity{
			{name: createsPerSecond, more: true, aim: aim{ratio: ratio}}, {name: cpuPerCreate, aim: cost},
			{name: medianMillis}, {name: p99Millis}, {name: clientCPU},
		},
		measure: func(ctx context.Context, b *bench, t *tested.Server) (result, error) {
			found, err := b.create(ctx, t, writers, writeFor)
			if err != nil {
				return found, err
			}
			return found, b.verify(ctx, t, getTask{Path: createPath, Accept: jsonType, Clients: 1})
		},
		bare: func(ctx context.Context, b *bench, _ result) (result, error) {
			dir, err := os.MkdirTemp(b.dir, "puts")
			if err != nil {
				return result{}, err
			}
			found, err := b.writing(ctx, nil, createTask{Dir: dir, Writers: writers, For: writeFor / 2})
			return found, errors.Join(err, os.RemoveAll(dir))
		},
	}
}

// create has writers create pods for a while, which the server then holds in
// addition.
func (b *bench) create(ctx context.Context, t *tested.Server, writers int, length time.Duration) (result, error) {
	return b.writing(ctx, t, createTask{Access: t.Access, Writers: writers, For: length})
}

// createTask is what a writing process is to do: create pods on a server or, if
// Dir is set, put their like into an etcd of its own; or to update what it created.
type createTask struct {
	Access  tested.Access
	Dir     string
	Writers int
	For     time.Duration
	// Update, if set, is what is done with so many Objects instead of creating.
	Update  updateKind
	Objects int
}

// created is what it did.
type created struct {
	Count   int           // while it was measured
	Total   int           // with those of the warm-up
	Took    time.Duration // of the measured part
	CPU     time.Duration // of the process, in that part
	Latency load.Histogram
}

// writing runs a writing process and measures the server, or without one the
// process itself.
func (b *bench) writing(ctx context.Context, t *tested.Server, task createTask) (found result, err error) {
	role, cpu := "puts", func() (time.Duration, error) { return 0, nil }
	if t != nil {
		role, cpu = "create", t.CPU
		if task.Update != "" {
			role = "update"
		}
	}
	c, err := process.Start(ctx, b.dir, role, task)
	if c == nil {
		return found, err
	}
	defer c.Kill()
	var warm string
	if err := errors.Join(err, c.Receive(&warm)); err != nil {
		return found, err
	}
	before, err := cpu()
	if err != nil {
		return found, err
	}
	var done created
	if err := errors.Join(c.Send("go"), c.Receive(&done)); err != nil {
		return found, err
	}
	after, err := cpu()
	if err != nil {
		return found, err
	}
	used := after - before
	if t == nil {
		used = done.CPU
	} else if task.Update == "" {
		t.Objects += done.Total
	}
	return result{Values: map[string]float64{
		createsPerSecond: float64(done.Count) / done.Took.Seconds(),
		cpuPerCreate:     micros(used) / float64(done.Count),
		medianMillis:     millis(done.Latency.Quantile(0.5)),
		p99Millis:        millis(done.Latency.Quantile(0.99)),
		clientCPU:        done.CPU.Seconds(),
	}}, nil
}

// create is the process of many writers, each with a connection of its own.
func create(ctx context.Context, p *process.Parent) error {
	var task createTask
	if err := p.Receive(&task); err != nil {
		return err
	}
	head, tail, err := createBody()
	if err != nil {
		return err
	}
	header := []hpack.HeaderField{{Name: "content-type", Value: jsonType}, {Name: "accept", Value: jsonType}}
	connections := make([]*load.Conn, task.Writers)
	for i := range connections {
		if connections[i], err = dial(ctx, task.Access); err != nil {
			return err
		}
		defer connections[i].Close()
	}
	return task.write(ctx, p, func(ctx context.Context, writer int, name string) error {
		body := bytes.Join([][]byte{head, tail}, []byte(name))
		return connections[writer].Do(ctx, load.Request{Method: "POST", Path: createPath, Header: header, Body: body}).Check(201)
	})
}

// createBody is a pod of 2.9 kB around its name.
func createBody() (head, tail []byte, err error) {
	const name = "name-of-the-pod"
	p := workload.Small(123_456)
	p.Kind, p.APIVersion = "Pod", "v1"
	p.Name, p.GenerateName, p.Namespace, p.UID, p.Spec.NodeName = name, "", "default", "", ""
	body, err := json.Marshal(p)
	if err != nil {
		return nil, nil, err
	}
	head, tail, found := bytes.Cut(body, []byte(name))
	if !found || bytes.Contains(tail, []byte(name)) {
		return nil, nil, errors.New("the pod's name is not in it once")
	}
	return head, tail, nil
}

// puts is the process that writes the same into etcd and does nothing else.
func puts(ctx context.Context, p *process.Parent) error {
	var task createTask
	if err := p.Receive(&task); err != nil {
		return err
	}
	if task.Update != "" {
		return task.updatePuts(ctx, p)
	}
	value, err := encoding(tested.Ours)(123_456)
	if err != nil {
		return err
	}
	store, err := etcd.Embed(ctx, etcd.EmbedConfig{Dir: filepath.Join(task.Dir, "etcd")})
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }() // what it holds is thrown away
	return task.write(ctx, p, func(ctx context.Context, _ int, name string) error {
		return put(ctx, store, name, value)
	})
}

func put(ctx context.Context, store storage.Writer, name string, value []byte) error {
	_, err := store.Create(ctx, "/registry/pods/default/"+name, value, 0)
	return err
}

// write has the task's writers write one after the other, first for the warm-up,
// and then, when the parent says so, for the measurement.
func (task *createTask) write(ctx context.Context, p *process.Parent, one func(ctx context.Context, writer int, name string) error) error {
	warm, err := task.phase(ctx, "a"+strconv.Itoa(task.Writers), writeWarmUp, one)
	if err != nil {
		return err
	}
	var begin string
	if err := errors.Join(p.Send("warm"), p.Receive(&begin)); err != nil {
		return err
	}
	before, err := measure.OwnCPU()
	if err != nil {
		return err
	}
	done, err := task.phase(ctx, "b"+strconv.Itoa(task.Writers), task.For, one)
	if err != nil {
		return err
	}
	after, err := measure.OwnCPU()
	if err != nil {
		return err
	}
	done.CPU, done.Total = after-before, done.Count+warm.Count
	return p.Send(done)
}

// phase writes for a while; names begin with the prefix.
func (task *createTask) phase(
	ctx context.Context, prefix string, length time.Duration, one func(ctx context.Context, writer int, name string) error,
) (done created, err error) {
	begun := time.Now()
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	for w := range task.Writers {
		group.Go(func() error {
			var latency load.Histogram
			count := 0
			for ; time.Since(begun) < length; count++ {
				at := time.Now()
				if err := one(ctx, w, fmt.Sprintf("%s-%d-%d", prefix, w, count)); err != nil {
					return err
				}
				latency.Add(time.Since(at))
			}
			mu.Lock()
			defer mu.Unlock()
			done.Count += count
			done.Latency.Merge(&latency)
			return nil
		})
	}
	err = group.Wait()
	done.Took = time.Since(begun)
	return done, err
}
