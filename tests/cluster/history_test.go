//go:build linux

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/tests/workload"
)

// prefix is that of the objects that are written.
const prefix = "/registry/configmaps/"

// change is one of the history, as the store or a watch shows it.
type change struct {
	key     string // namespace/name
	version uint64
	deleted bool
}

// record is the changes that one watch has shown, in order.
type record struct {
	name string

	mu      sync.Mutex
	changes []change
	reached uint64 // the version that it is complete up to
	wrong   error  // why it cannot go on
	opened  int
}

func (r *record) add(c ...change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changes = append(r.changes, c...)
}

func (r *record) reach(version uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reached = max(r.reached, version)
}

func (r *record) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wrong = err
}

func (r *record) state() (reached uint64, wrong error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reached, r.wrong
}

// current is the newest version.
func (c *cluster) current(t *testing.T) storage.Revision {
	t.Helper()
	if c.upstream != nil {
		return c.upstream.current(t)
	}
	at, err := c.etcd.Current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// history returns all changes since a version, as the store has kept them.
func (c *cluster) history(t *testing.T, since storage.Revision) (changes []change) {
	t.Helper()
	if c.upstream != nil {
		return c.upstream.history(t)
	}
	ctx, cancel := context.WithTimeout(t.Context(), workload.Timeout)
	defer cancel()
	end, err := c.etcd.Current(ctx)
	if err != nil {
		t.Fatal(err)
	}
	err = c.etcd.Replay(ctx, prefix, since, end, func(events []storage.Event) error {
		for _, e := range events {
			changes = append(changes, change{strings.TrimPrefix(e.Key, prefix), uint64(e.Revision), e.Deleted})
		}
		return nil
	})
	if err != nil {
		t.Fatalf("the store's history: %v", err)
	}
	return changes
}

// observers follow every change, each on its own way.
type observers struct {
	start   storage.Revision
	records []*record
	stop    func()
}

// observe follows the store as a server does, and servers by watches over the balancer
// and to each of them, from now on.
func observe(t *testing.T, c *cluster, o *outages) *observers {
	t.Helper()
	start := c.current(t)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	all := &observers{start: start, stop: func() { cancel(); running.Wait() }}
	follow := func(name string, run func(*record)) {
		r := &record{name: name, reached: uint64(start)}
		all.records = append(all.records, r)
		running.Go(func() { run(r) })
	}
	if c.etcd != nil {
		follow("the store", func(r *record) { followStore(ctx, c.etcd, start, r) })
	}
	quick := client.Options{ReadIdleTimeout: time.Second, PingTimeout: time.Second, ContentType: client.Protobuf}
	if c.upstream != nil {
		upstream := workload.NewClient(t, c.upstream.config, quick)
		follow("at the upstream", func(r *record) { watchServer(ctx, upstream, r, func(uint64) {}) })
		c.upstream.seen = all.records[0]
	}
	balanced := workload.NewClient(t, c.config, quick)
	follow("over the balancer", func(r *record) { watchServer(ctx, balanced, r, o.seen) })
	for _, s := range c.servers {
		direct := workload.NewClient(t, s.config, quick)
		follow("at "+s.name, func(r *record) { watchServer(ctx, direct, r, func(uint64) {}) })
	}
	return all
}

// followStore reads one stream, which must not end whatever happens to members.
func followStore(ctx context.Context, store storage.Store, after storage.Revision, r *record) {
	stream, err := store.Watch(ctx, prefix, after)
	for err == nil {
		var batch storage.Batch
		if batch, err = stream.Next(); err != nil {
			break
		}
		for _, e := range batch.Events {
			r.add(change{strings.TrimPrefix(e.Key, prefix), uint64(e.Revision), e.Deleted})
		}
		r.reach(uint64(batch.Revision))
	}
	if ctx.Err() == nil {
		r.fail(err)
	}
}

// watchServer watches again from the last version whenever a watch ends.
func watchServer(ctx context.Context, c *client.Client, r *record, seen func(version uint64)) {
	defer c.CloseIdleConnections()
	for ; ctx.Err() == nil; workload.Wait(ctx, 100*time.Millisecond) {
		from, _ := r.state()
		w, err := client.For[*corev1.ConfigMap](c).Watch(ctx, metav1.ListOptions{
			ResourceVersion: strconv.FormatUint(from, 10), AllowWatchBookmarks: true,
		})
		if err == nil {
			err = readWatch(w, r, seen)
			w.Close()
		}
		if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			r.fail(err)
			return
		}
	}
}

func readWatch(w *client.Watch[*corev1.ConfigMap], r *record, seen func(version uint64)) error {
	r.mu.Lock()
	r.opened++
	r.mu.Unlock()
	for {
		event, err := w.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		r.note(event)
		if event.Type != watch.Bookmark {
			seen(workload.StampOf(event.Object).Version)
		}
	}
}

// note adds an event of a watch.
func (r *record) note(event client.WatchEvent[*corev1.ConfigMap]) {
	at := workload.StampOf(event.Object).Version
	if event.Type != watch.Bookmark {
		r.add(change{workload.KeyOf(event.Object), at, event.Type == watch.Deleted})
	}
	r.reach(at)
}

// check compares every record with the history that the store has kept. There must be no
// writes meanwhile.
func (o *observers) check(t *testing.T, c *cluster) (changes int) {
	t.Helper()
	history := c.history(t, o.start)
	if len(history) == 0 {
		t.Fatal("nothing has changed")
	}
	last := history[len(history)-1].version
	for _, r := range o.records {
		workload.Await(t, func() string { return r.name + " to show " + strconv.FormatUint(last, 10) }, func() bool {
			reached, wrong := r.state()
			return reached >= last || wrong != nil
		})
		if _, wrong := r.state(); wrong != nil {
			t.Errorf("the watch of changes %s ended for good: %v", r.name, wrong)
			continue
		}
		if err := r.compare(history); err != nil {
			t.Errorf("changes %s: %v", r.name, err)
		}
	}
	return len(history)
}

// compare asks for each change once, in order.
func (r *record) compare(history []change) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, want := range history {
		if i >= len(r.changes) || r.changes[i] != want {
			from := max(0, i-2)
			return fmt.Errorf("change %d of %d is %+v; seen, from the one two before: %+v", i, len(history), want, r.changes[from:min(len(r.changes), i+3)])
		}
	}
	if len(r.changes) > len(history) {
		return fmt.Errorf("%d changes, of which %d were made; those after: %+v", len(r.changes), len(history), r.changes[len(history)])
	}
	return nil
}

func (o *observers) opened() (watches int) {
	for _, r := range o.records {
		r.mu.Lock()
		watches += r.opened
		r.mu.Unlock()
	}
	return watches
}

// reads asks servers, each by itself, for consistent reads all the time: what is answered
// must show every write that was acknowledged before the question.
type reads struct {
	answered, refused atomic.Int64

	mu    sync.Mutex
	wrong []error
}

func (r *reads) note(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wrong = append(r.wrong, err)
}

// start reads until stop. Written objects are read again, too, through j.
func (r *reads) start(t *testing.T, c *cluster, o *outages, j *workload.Journal) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	var all []client.Resource[*corev1.ConfigMap]
	for _, s := range c.servers {
		direct := workload.NewClient(t, s.config, client.Options{
			ContentType: client.Protobuf, ReadIdleTimeout: time.Second, PingTimeout: time.Second, Retry: client.RetryOptions{Max: -1},
		})
		objects := client.For[*corev1.ConfigMap](direct)
		all = append(all, objects)
		running.Go(func() {
			defer direct.CloseIdleConnections()
			for ; ctx.Err() == nil; workload.Wait(ctx, 50*time.Millisecond) {
				r.list(ctx, s.name, objects, o)
			}
		})
	}
	var turn atomic.Int64
	j.Known = func(ctx context.Context, key string, now workload.Stamp, _, written bool) {
		if written {
			o.acknowledged(now.Version)
		}
		if n := turn.Add(1); n%8 == 0 {
			i := int(n/8) % len(all)
			r.get(ctx, c.servers[i].name, all[i], key, j)
		}
	}
	return func() { cancel(); running.Wait() }
}

// list asks for a consistent list.
func (r *reads) list(ctx context.Context, server string, objects client.Resource[*corev1.ConfigMap], o *outages) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second) //passes: the server may be gone, and a refusal is counted
	defer cancel()
	floor := o.newest()
	list, err := objects.Namespace("default").List(ctx, metav1.ListOptions{})
	if err != nil {
		r.refuse(err)
		return
	}
	r.answered.Add(1)
	if at, _ := strconv.ParseUint(list.ResourceVersion, 10, 64); at < floor {
		r.note(fmt.Errorf("a consistent list of %s shows version %d, after %d was acknowledged", server, at, floor))
	}
}

// get asks for an object that nothing writes meanwhile.
func (r *reads) get(ctx context.Context, server string, objects client.Resource[*corev1.ConfigMap], key string, j *workload.Journal) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second) //passes: the server may be gone, and a refusal is counted
	defer cancel()
	namespace, name, _ := strings.Cut(key, "/")
	obj, err := objects.Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		r.refuse(err)
		return
	}
	r.answered.Add(1)
	var got workload.Stamp
	if err == nil {
		got = workload.StampOf(obj)
	}
	if err := j.Check(key, got, err == nil); err != nil {
		r.note(fmt.Errorf("a consistent read of %s: %w", server, err))
	}
}

// refuse counts an answer that there is none. It must be one that says so.
func (r *reads) refuse(err error) {
	r.refused.Add(1)
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return
	}
	switch code := status.Status().Code; code {
	case http.StatusServiceUnavailable, http.StatusGatewayTimeout, http.StatusTooManyRequests:
	default:
		r.note(fmt.Errorf("a read was refused with %d: %w", code, err))
	}
}

func (r *reads) check(t *testing.T) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, err := range r.wrong[:min(len(r.wrong), 5)] {
		t.Error(err)
	}
}
