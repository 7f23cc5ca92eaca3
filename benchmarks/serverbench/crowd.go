package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http2/hpack"

	"github.com/levelwire/levelwire/benchmarks/load"
	"github.com/levelwire/levelwire/benchmarks/measure"
	"github.com/levelwire/levelwire/benchmarks/serverbench/process"
	"github.com/levelwire/levelwire/benchmarks/serverbench/tested"
	"github.com/levelwire/levelwire/benchmarks/workload"
)

// The pods that are written while others watch: podsPerSlot of them share a
// node, a namespace and a label, so that a watcher that selects by one of these sees a
// known share of the writes. Slots are slotStep apart in their numbers, so that
// among thousands of watchers, each with a slot of its own, those that are
// written to are spread.
const (
	writtenPods = 500
	podsPerSlot = 10
	slotStep    = 100
)

// slotOf is the slot of the i-th pod that is written.
func slotOf(i int) int { return i / podsPerSlot * slotStep }

// writtenBytes is the size of a pod's JSON as servers send it.
const writtenBytes = 3000

// written is the i-th pod that is written. With padding it has writtenBytes,
// whatever a server adds: ours adds managedFields, the peer does not.
func written(i, padding int) (namespace string, body []byte, err error) {
	slot := strconv.Itoa(slotOf(i))
	p := workload.Small(i)
	p.Kind, p.APIVersion = "Pod", "v1"
	p.Name, p.GenerateName, p.Namespace = "pod-"+strconv.Itoa(i), "", "load-"+slot
	p.UID, p.OwnerReferences = "", nil
	p.Labels = map[string]string{"slot": slot}
	p.Annotations = map[string]string{load.SentAnnotation: load.SentPlaceholder, "b.load/padding": strings.Repeat("x", padding)}
	p.Spec.NodeName = "node-" + slot
	body, err = json.Marshal(p)
	return p.Namespace, body, err
}

// crowdTask is a crowd and what it watches.
type crowdTask struct {
	Access  tested.Access
	Options load.CrowdOptions
}

// crowdWait is a command to a crowd: wait until it has seen Total events, but not
// for longer than Within, and then report.
type crowdWait struct {
	Total  int64
	Within time.Duration
	Lap    bool
}

// crowdReport is its answer.
type crowdReport struct {
	load.Report
	Complete bool // it has seen Total
	CPU      time.Duration
}

// crowd is the process of many watchers.
func crowd(ctx context.Context, p *process.Parent) error {
	var task crowdTask
	if err := p.Receive(&task); err != nil {
		return err
	}
	var err error
	if task.Options.TLS, task.Options.Address, err = task.Access.Reach(); err != nil {
		return err
	}
	c, err := load.Gather(ctx, task.Options)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := p.Send(c.Report(true).Open); err != nil {
		return err
	}
	for {
		var wait crowdWait
		if err := p.Receive(&wait); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		waiting, cancel := context.WithTimeout(ctx, wait.Within)
		complete := c.Await(waiting, wait.Total)
		cancel()
		used, err := measure.OwnCPU()
		if err != nil {
			return err
		}
		if err := p.Send(crowdReport{c.Report(wait.Lap), complete, used}); err != nil {
			return err
		}
	}
}

// watchers is a crowd as its parent sees it.
type watchers struct {
	child  *process.Child
	number int
}

// gather starts a crowd's process and returns when all watch from now on.
func (b *bench) gather(ctx context.Context, t *tested.Server, o load.CrowdOptions) (*watchers, error) {
	version, err := t.Version(ctx)
	if err != nil {
		return nil, err
	}
	o.Path += "&watch=true&timeoutSeconds=3600&resourceVersion=" + version
	c, err := process.Start(ctx, b.dir, "crowd", crowdTask{t.Access, o})
	if c == nil {
		return nil, err
	}
	w := &watchers{child: c}
	if err := errors.Join(err, c.Receive(&w.number)); err != nil {
		c.Kill()
		return nil, err
	}
	return w, nil
}

// report is what the crowd has seen when it has seen total events, or after a
// while. With lap it counts anew after it.
func (w *watchers) report(total int64, within time.Duration, lap bool) (r crowdReport, err error) {
	if err := w.child.Send(crowdWait{total, within, lap}); err != nil {
		return r, err
	}
	err = w.child.Receive(&r)
	return r, err
}

// writerTask is where pods are written.
type writerTask struct{ Access tested.Access }

// writerRun is a command to a writer.
type writerRun struct {
	Rate     float64 // updates per second
	Duration time.Duration
	Pods     int // it takes the first so many in turn; 0: all
}

// writer is the process that creates pods and updates them.
func writer(ctx context.Context, p *process.Parent) error {
	var task writerTask
	if err := p.Receive(&task); err != nil {
		return err
	}
	objects, o, err := prepare(ctx, task.Access)
	if err != nil {
		return err
	}
	if err := p.Send(len(objects)); err != nil {
		return err
	}
	for {
		var run writerRun
		if err := p.Receive(&run); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if o.Objects = objects; run.Pods > 0 {
			o.Objects = objects[:run.Pods]
		}
		w, err := load.NewWriter(ctx, o)
		if err != nil {
			return err
		}
		done, err := w.Run(ctx, run.Rate, run.Duration)
		w.Close()
		if err != nil {
			return err
		}
		if err := p.Send(done); err != nil {
			return err
		}
	}
}

// prepare creates the pods that are written, where they are not there yet.
func prepare(ctx context.Context, a tested.Access) (objects []load.Object, o load.WriterOptions, err error) {
	if o.TLS, o.Address, err = a.Reach(); err != nil {
		return nil, o, err
	}
	o.Header = []hpack.HeaderField{{Name: "accept", Value: jsonType}, {Name: "user-agent", Value: "load"}}
	header := append([]hpack.HeaderField{{Name: "content-type", Value: jsonType}}, o.Header...)
	c, err := load.Dial(ctx, o.Address, o.TLS, load.Options{})
	if err != nil {
		return nil, o, err
	}
	defer c.Close()
	var spaces []load.Request
	for i := 0; i < writtenPods; i += podsPerSlot {
		space := fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"load-%d"}}`, slotOf(i))
		spaces = append(spaces, load.Request{Method: "POST", Path: "/api/v1/namespaces", Header: header, Body: space})
	}
	const exists = 409
	if err := load.Post(ctx, c, 16, slices.Values(spaces), exists); err != nil {
		return nil, o, err
	}
	padding, err := paddingFor(ctx, c, header)
	if err != nil {
		return nil, o, err
	}
	var pods []load.Request
	for i := range writtenPods {
		namespace, body, err := written(i, padding)
		if err != nil {
			return nil, o, err
		}
		path := "/api/v1/namespaces/" + namespace + "/pods"
		pods = append(pods, load.Request{Method: "POST", Path: path, Header: header, Body: body})
		objects = append(objects, load.Object{Path: path + "/pod-" + strconv.Itoa(i), Body: body})
	}
	last := c.Do(ctx, load.Request{Path: objects[writtenPods-1].Path, Header: o.Header})
	if last.Check(0) == nil {
		return objects, o, nil // An earlier writer has made them.
	}
	return objects, o, load.Post(ctx, c, 16, slices.Values(pods), exists)
}

// paddingFor finds out what a server makes of a pod, and what it lacks.
func paddingFor(ctx context.Context, c *load.Conn, header []hpack.HeaderField) (int, error) {
	namespace, body, err := written(0, 0)
	if err != nil {
		return 0, err
	}
	probe := load.Request{Method: "POST", Path: "/api/v1/namespaces/" + namespace + "/pods?dryRun=All", Header: header}
	probe.Body = bytes.Replace(body, []byte(`"name":"pod-0"`), []byte(`"name":"probe"`), 1)
	answer := c.Do(ctx, probe)
	return max(writtenBytes-len(answer.Body), 0), answer.Check(0)
}

// tryUpdates has a writer's process update pods.
func tryUpdates(c *process.Child, run writerRun) (done load.Written, err error) {
	if err := c.Send(run); err != nil {
		return done, err
	}
	err = c.Receive(&done)
	return done, err
}

// updatePods is tryUpdates, but an update that fails is an error.
func updatePods(c *process.Child, run writerRun) (load.Written, error) {
	done, err := tryUpdates(c, run)
	if err == nil && done.Sent != done.Due {
		err = fmt.Errorf("%d of %d updates failed: %q", done.Due-done.Sent, done.Due, done.Errors)
	}
	return done, err
}

// startWriter starts the writer's process; its pods exist when it returns.
func (b *bench) startWriter(ctx context.Context, t *tested.Server) (*process.Child, error) {
	c, err := process.Start(ctx, b.dir, "writer", writerTask{t.Access})
	if c == nil {
		return nil, err
	}
	var pods int
	if err := errors.Join(err, c.Receive(&pods)); err != nil {
		c.Kill()
		return nil, err
	}
	return c, nil
}
