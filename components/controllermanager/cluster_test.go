package controller_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"

	"go.uber.org/goleak"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/components/controllermanager"
	"github.com/levelwire/levelwire/components/kubelet"
	"github.com/levelwire/levelwire/components/scheduler"
	"github.com/levelwire/levelwire/internal/testwait"
	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/levelwiretest"
)

// testTimeout is how long anything may take before a test fails.
const testTimeout = 3 * time.Minute

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// cluster is a whole one in this process: the real server, scheduler and
// kubelets.
type cluster struct {
	t      *testing.T
	ctx    context.Context
	server *levelwiretest.Server
	client *client.Client
	group  sync.WaitGroup
}

// newCluster starts a server, a scheduler and nodes; what controls them is for
// the test to start.
func newCluster(t *testing.T, nodes int) *cluster {
	t.Helper()
	s := levelwiretest.Start(t)
	ctx, cancel := context.WithTimeout(context.Background(), 3*testTimeout)
	c := &cluster{t: t, ctx: ctx, server: s}
	t.Cleanup(func() {
		cancel()
		c.group.Wait()
	})
	c.client = c.connect()
	sched, err := scheduler.New(c.connectAs("system:kube-scheduler"), scheduler.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	c.start(ctx, "scheduler", sched.Run)
	for i := range nodes {
		c.startNode(ctx, fmt.Sprintf("node-%d", i+1), 40*time.Second)
	}
	awaitEach(c, client.For[*corev1.Node](c.client), metav1.ListOptions{}, "nodes", func(all map[string]*corev1.Node) bool { return len(all) == nodes })
	return c
}

func (c *cluster) connect() *client.Client {
	c.t.Helper()
	return c.server.Client(client.Options{ContentType: client.Protobuf})
}

// connectAs makes the client of a component: it may do what Kubernetes' default roles
// allow, so that each test fails if the component needs more.
func (c *cluster) connectAs(user string, groups ...string) *client.Client {
	c.t.Helper()
	connected, err := client.New(c.server.UserConfig(user, groups...), client.Options{ContentType: client.Protobuf})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(connected.CloseIdleConnections)
	return connected
}

func (c *cluster) start(ctx context.Context, name string, run func(context.Context) error) {
	c.group.Go(func() {
		if err := run(ctx); err != nil && ctx.Err() == nil {
			c.t.Errorf("%s: %v", name, err)
		}
	})
}

func (c *cluster) startNode(ctx context.Context, name string, lease time.Duration) {
	c.t.Helper()
	k, err := kubelet.New(c.connectAs("system:node:"+name, "system:nodes"), kubelet.Options{
		NodeName: name, LeaseDuration: lease, Logger: slog.New(slog.DiscardHandler),
		StartAfter: time.Millisecond, StopAfter: time.Millisecond, RunFor: time.Millisecond,
	})
	if err != nil {
		c.t.Fatal(err)
	}
	c.start(ctx, name, k.Run)
}

// startManager runs the controllers and returns what kills them: no goodbye,
// and what they were doing stays half done.
func (c *cluster) startManager() (kill func()) {
	c.t.Helper()
	m, err := controller.NewManager(c.connectAs("system:kube-controller-manager"), controller.Options{
		Logger: slog.New(slog.DiscardHandler),
		ClientFor: func(account string) (*client.Client, error) {
			return c.connectAs("system:serviceaccount:kube-system:"+account, "system:serviceaccounts", "system:serviceaccounts:kube-system"), nil
		},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(c.ctx)
	ended := make(chan struct{})
	c.start(ctx, "controllers", func(ctx context.Context) error {
		defer close(ended)
		return m.Run(ctx)
	})
	return func() { cancel(); <-ended }
}

// await watches one object until it is as wanted. An object that does not
// exist is nil.
func await[T client.Object](c *cluster, api client.Resource[T], name, what string, wanted func(T) bool) T {
	c.t.Helper()
	var last T
	awaitEach(c, api, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String()},
		fmt.Sprintf("%s: %s", name, what), func(objs map[string]T) bool {
			for _, last = range objs {
				if wanted(last) {
					return true
				}
			}
			return false
		})
	return last
}

// awaitEach watches objects until together they are as wanted.
func awaitEach[T client.Object](c *cluster, api client.Resource[T], opts metav1.ListOptions, what string, wanted func(map[string]T) bool) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.ctx, testTimeout)
	defer cancel()
	list, err := api.List(ctx, opts)
	if err != nil {
		c.t.Fatal(err)
	}
	objs := map[string]T{}
	for _, obj := range list.Items {
		objs[obj.GetName()] = obj
	}
	opts.ResourceVersion = list.ResourceVersion
	w, err := api.Watch(ctx, opts)
	if err != nil {
		c.t.Fatal(err)
	}
	defer w.Close()
	for !wanted(objs) {
		ev, err := w.Next()
		if err != nil {
			for name, obj := range objs {
				c.t.Logf("%s: %+v", name, obj)
			}
			c.t.Fatalf("waited in vain for %s: %v", what, err)
		}
		switch ev.Type {
		case watch.Added, watch.Modified:
			objs[ev.Object.GetName()] = ev.Object
		case watch.Deleted:
			delete(objs, ev.Object.GetName())
		case watch.Bookmark, watch.Error:
		}
	}
}

// awaitFrom returns the first state of an object after one of its versions that is as wanted: however late the test
// looks, it sees states that are gone by then.
func awaitFrom[T client.Object](c *cluster, api client.Resource[T], from T, what string, wanted func(T) bool) T {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.ctx, testTimeout)
	defer cancel()
	w, err := api.Watch(ctx, metav1.ListOptions{
		ResourceVersion: from.GetResourceVersion(), FieldSelector: fields.OneTermEqualSelector("metadata.name", from.GetName()).String(),
	})
	if err != nil {
		c.t.Fatal(err)
	}
	seen := testwait.Events(c.t, from.GetName()+": "+what, testwait.Follow(c.t, w), testwait.Last(func(ev client.WatchEvent[T]) bool {
		return ev.Type == watch.Modified && wanted(ev.Object)
	}))
	return seen[len(seen)-1].Object
}

// change applies fn to an object, again after a conflict.
func change[T client.Object](c *cluster, api client.Resource[T], name string, fn func(T)) {
	c.t.Helper()
	for {
		obj, err := api.Get(c.ctx, name, metav1.GetOptions{})
		if err != nil {
			c.t.Fatal(err)
		}
		fn(obj)
		_, err = api.Update(c.ctx, obj, metav1.UpdateOptions{})
		if err == nil {
			return
		}
		if !isConflict(err) {
			c.t.Fatal(err)
		}
	}
}
