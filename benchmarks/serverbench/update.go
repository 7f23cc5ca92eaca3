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
	"time"

	"golang.org/x/net/http2/hpack"
	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/benchmarks/load"
	"github.com/levelwire/levelwire/benchmarks/serverbench/process"
	"github.com/levelwire/levelwire/benchmarks/serverbench/tested"
	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/etcd"
)

const (
	updatesPerSecond = "updates per s"
	cpuPerUpdate     = "server CPU µs per update"

	leasePath   = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
	mergeType   = "application/strategic-merge-patch+json"
	updatedPods = 1024
	leases      = 10_000
)

// updateKind is what is done with objects that exist.
type updateKind string

const (
	putPod      updateKind = "put"    // with another annotation, as a controller does
	patchStatus updateKind = "status" // of two conditions, strategic, as a kubelet does
	renewLease  updateKind = "lease"  // by a put, as a kubelet does
)

// updateGroup is objects that are changed by clients that wait for each answer. Each
// client has objects of its own, and changes one after the other.
func updateGroup() *group {
	return &group{name: "update", title: "Updates, durable", servers: empty, limit: "etcd alone", rows: []*row{
		updating("put of a pod, 1 writer", putPod, updatedPods, 1, 800),
		updating("put of a pod, 16 writers", putPod, updatedPods, 16, 300),
		updating("status patch of a pod, 1 writer", patchStatus, updatedPods, 1, 800),
		updating("status patch of a pod, 16 writers", patchStatus, updatedPods, 16, 300),
		updating("renewal of one of 10,000 leases, 64 writers", renewLease, leases, 64, 150),
	}}
}

func updating(name string, kind updateKind, objects, writers int, cost float64) *row {
	task := createTask{Update: kind, Objects: objects, Writers: writers, For: writeFor}
	return &row{
		name: name,
		quantities: []quantity{
			{name: updatesPerSecond, more: true}, {name: cpuPerUpdate, aim: aim{atMost: cost}},
			{name: medianMillis}, {name: p99Millis}, {name: clientCPU},
		},
		measure: func(ctx context.Context, b *bench, t *tested.Server) (result, error) {
			task := task
			task.Access = t.Access
			return renamed(b.writing(ctx, t, task))
		},
		bare: func(ctx context.Context, b *bench, _ result) (result, error) {
			dir, err := os.MkdirTemp(b.dir, "puts")
			if err != nil {
				return result{}, err
			}
			task := task
			task.Dir, task.For = dir, writeFor/2
			found, err := renamed(b.writing(ctx, nil, task))
			return found, errors.Join(err, os.RemoveAll(dir))
		},
	}
}

// renamed calls the writes updates.
func renamed(found result, err error) (result, error) {
	for from, to := range map[string]string{createsPerSecond: updatesPerSecond, cpuPerCreate: cpuPerUpdate} {
		if v, ok := found.Values[from]; ok {
			found.Values[to] = v
			delete(found.Values, from)
		}
	}
	return found, err
}

// updated is an object that a writer changes.
type updated struct {
	path string
	last []byte // the last answer
	turn int
}

// update is the process of many writers, each with a connection and objects of its own.
func update(ctx context.Context, p *process.Parent) error {
	var task createTask
	if err := p.Receive(&task); err != nil {
		return err
	}
	connections := make([]*load.Conn, task.Writers)
	objects := make([][]updated, task.Writers)
	group, creating := errgroup.WithContext(ctx)
	for w := range connections {
		var err error
		if connections[w], err = dial(ctx, task.Access); err != nil {
			return err
		}
		defer connections[w].Close()
		group.Go(func() (err error) {
			objects[w], err = task.createObjects(creating, connections[w], w)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	next := make([]int, task.Writers)
	return task.write(ctx, p, func(ctx context.Context, w int, _ string) error {
		o := &objects[w][next[w]%len(objects[w])]
		next[w]++
		answer := connections[w].Do(ctx, task.Update.request(o))
		o.last = answer.Body
		return answer.Check(200)
	})
}

// createObjects creates a writer's share of the objects.
func (task *createTask) createObjects(ctx context.Context, c *load.Conn, writer int) ([]updated, error) {
	path, body := createPath, podToUpdate
	if task.Update == renewLease {
		path, body = leasePath, leaseToUpdate
	}
	objects := make([]updated, max(1, task.Objects/task.Writers))
	for i := range objects {
		// Objects of one writer are not those of the row before.
		name := fmt.Sprintf("%s-%d-%d-%d", task.Update, task.Writers, writer, i)
		text, err := body(name)
		if err != nil {
			return nil, err
		}
		answer := c.Do(ctx, load.Request{Method: "POST", Path: path, Header: sending(jsonType), Body: text})
		if err := answer.Check(201); err != nil {
			return nil, err
		}
		objects[i] = updated{path: path + "/" + name, last: answer.Body}
		if task.Update == patchStatus {
			first := load.Request{Method: "PUT", Path: objects[i].path + "/status", Header: sending(jsonType), Body: text}
			if err := c.Do(ctx, first).Check(200); err != nil {
				return nil, err
			}
		}
	}
	return objects, nil
}

func podToUpdate(name string) ([]byte, error) {
	head, tail, err := createBody()
	if err != nil {
		return nil, err
	}
	annotated, found := bytes.CutPrefix(tail, []byte(`",`))
	if !found {
		return nil, errors.New("the pod's name is its only metadata")
	}
	return bytes.Join([][]byte{head, []byte(name), []byte(`","annotations":{"turn":"0000000000"},`), annotated}, nil), nil
}

func leaseToUpdate(name string) ([]byte, error) {
	seconds, at := int32(40), metav1.NewMicroTime(time.Unix(1_790_000_000, 1000))
	return json.Marshal(&coordinationv1.Lease{
		TypeMeta: metav1.TypeMeta{Kind: "Lease", APIVersion: "coordination.k8s.io/v1"},
		ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "v1", Kind: "Node", Name: name, UID: "4a1c0b1e-0000-4000-8000-000000000000",
		}}},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &name, LeaseDurationSeconds: &seconds, RenewTime: &at},
	})
}

func sending(mediaType string) []hpack.HeaderField {
	return []hpack.HeaderField{{Name: "content-type", Value: mediaType}, {Name: "accept", Value: jsonType}}
}

// request is the next change of an object.
func (kind updateKind) request(o *updated) load.Request {
	o.turn++
	at := time.Unix(1_790_000_000+int64(o.turn), 0).UTC()
	switch kind {
	case patchStatus:
		ready := "True"
		if o.turn%2 == 0 {
			ready = "False"
		}
		return load.Request{Method: "PATCH", Path: o.path + "/status", Header: sending(mergeType), Body: fmt.Appendf(nil,
			`{"status":{"$setElementOrder/conditions":[{"type":"Initialized"},{"type":"Ready"},{"type":"ContainersReady"},{"type":"PodScheduled"}],`+
				`"conditions":[{"lastTransitionTime":%[2]q,"status":%[1]q,"type":"Ready"},{"lastTransitionTime":%[2]q,"status":%[1]q,"type":"ContainersReady"}]}}`,
			ready, at.Format(time.RFC3339))}
	case renewLease:
		return load.Request{Method: "PUT", Path: o.path, Header: sending(jsonType), Body: replaced(o.last, `"renewTime":"`, at.Format(metav1.RFC3339Micro))}
	default:
		return load.Request{Method: "PUT", Path: o.path, Header: sending(jsonType), Body: replaced(o.last, `"turn":"`, fmt.Sprintf("%010d", o.turn))}
	}
}

// replaced returns the text with another value of the same length behind the mark.
func replaced(text []byte, mark, value string) []byte {
	text = bytes.Clone(text)
	if i := bytes.Index(text, []byte(mark)); i >= 0 {
		copy(text[i+len(mark):], value)
	}
	return text
}

// updatePuts changes values in etcd and does nothing else.
func (task *createTask) updatePuts(ctx context.Context, p *process.Parent) error {
	store, err := etcd.Embed(ctx, etcd.EmbedConfig{Dir: filepath.Join(task.Dir, "etcd")})
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }() // what it holds is thrown away
	value, err := encoding(tested.Ours)(123_456)
	if task.Update == renewLease {
		value, err = leaseToUpdate("name-of-the-lease")
	}
	if err != nil {
		return err
	}
	each := max(1, task.Objects/task.Writers)
	revisions := make([][]storage.Revision, task.Writers)
	key := func(writer, i int) string {
		return "/registry/objects/default/" + strconv.Itoa(writer) + "-" + strconv.Itoa(i)
	}
	group, creating := errgroup.WithContext(ctx)
	for w := range revisions {
		group.Go(func() (err error) {
			revisions[w] = make([]storage.Revision, each)
			for i := range each {
				if revisions[w][i], err = store.Create(creating, key(w, i), value, 0); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	next := make([]int, task.Writers)
	return task.write(ctx, p, func(ctx context.Context, w int, _ string) (err error) {
		i := next[w] % each
		next[w]++
		revisions[w][i], err = store.Update(ctx, key(w, i), value, revisions[w][i], 0)
		return err
	})
}
