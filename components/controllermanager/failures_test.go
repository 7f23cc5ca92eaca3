package controller_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/events"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/components/controllermanager/internal/nodelifecycle"
	"github.com/levelwire/levelwire/components/controllermanager/internal/pods"
)

func storageOf(size string) corev1.VolumeResourceRequirements {
	return corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}}
}

// TestKilledControllersLeaveNothingTwice kills the manager again and again in
// the middle of its work.
func TestKilledControllersLeaveNothingTwice(t *testing.T) {
	c := newCluster(t, 3)
	deployments, jobs := in[*appsv1.Deployment](c), in[*batchv1.Job](c)
	create(c, deployments, newDeployment("web", 12))
	create(c, jobs, newJob("work", 20, 5, batchv1.NonIndexedCompletion, "0"))
	for round := range 6 {
		kill := c.startManager()
		// Kill it as soon as it has got a little further.
		awaitEach(c, in[*corev1.Pod](c), metav1.ListOptions{}, "some pods", func(all map[string]*corev1.Pod) bool { return len(all) > 2*round })
		change(c, deployments, "web", func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers[0].Image = fmt.Sprintf("web:%d", round)
		})
		kill()
	}
	c.startManager()
	await(c, deployments, "web", "rolled out", rolledOut)
	job := await(c, jobs, "work", "ended", jobEnded)
	if job.Status.Succeeded != 20 || job.Status.Failed != 0 {
		t.Errorf("job: %+v", job.Status)
	}
	sets, err := in[*appsv1.ReplicaSet](c).List(c.ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	images := map[string]bool{}
	for _, set := range sets.Items {
		image := set.Spec.Template.Spec.Containers[0].Image
		if images[image] {
			t.Errorf("two sets for %s", image)
		}
		images[image] = true
	}
	list, err := in[*corev1.Pod](c).List(c.ctx, metav1.ListOptions{LabelSelector: batchv1.JobNameLabel + "=work"})
	if err != nil || len(list.Items) != 20 {
		t.Errorf("%d pods for 20 completions, %v", len(list.Items), err)
	}
}

// TestSilentNodeLosesItsPods runs only the node lifecycle controller, with
// short times.
func TestSilentNodeLosesItsPods(t *testing.T) {
	c := newCluster(t, 0)
	nodes, podAPI := client.For[*corev1.Node](c.client), in[*corev1.Pod](c)
	opts := nodelifecycle.Options{
		GracePeriod: time.Hour, CheckInterval: 50 * time.Millisecond, Quarantine: 100 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	}
	stopLifecycle := startLifecycle(c, c.connect(), opts) // a node on a busy machine may be silent for seconds
	ctx, stopNode := context.WithCancel(c.ctx)
	c.startNode(ctx, "flaky", time.Second)
	await(c, nodes, "flaky", "registered", func(*corev1.Node) bool { return true }) // pods of a node that does not exist are deleted after the quarantine
	spec := podTemplate("web:1").Spec
	spec.NodeName = "flaky"
	second := int64(1)
	spec.Tolerations = []corev1.Toleration{{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &second}}
	create(c, podAPI, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: spec})
	await(c, podAPI, "p", "ready", podReady)
	c.startNode(c.ctx, "sound", time.Second) // while no node is heard of, none loses its pods

	change(c, nodes, "flaky", func(n *corev1.Node) { n.Spec.Unschedulable = true })
	await(c, nodes, "flaky", "tainted unschedulable", func(n *corev1.Node) bool { return tainted(n, corev1.TaintNodeUnschedulable) })
	change(c, nodes, "flaky", func(n *corev1.Node) { n.Spec.Unschedulable = false })
	await(c, nodes, "flaky", "without taints", func(n *corev1.Node) bool { return len(n.Spec.Taints) == 0 })

	stopNode()
	stopLifecycle()
	opts.GracePeriod = 2 * time.Second
	startLifecycle(c, c.connect(), opts)
	await(c, nodes, "flaky", "unreachable", func(n *corev1.Node) bool {
		return tainted(n, corev1.TaintNodeUnreachable) && slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionUnknown && c.Reason == "NodeStatusUnknown"
		})
	})
	await(c, podAPI, "p", "not ready", func(p *corev1.Pod) bool { return !podReady(p) })
	await(c, podAPI, "p", "being deleted", func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil })

	// No kubelet can end the pod as long as the node is only silent; that it is
	// gone says that nothing runs there any more.
	remove(c, nodes, "flaky", metav1.DeleteOptions{})
	awaitEach(c, podAPI, metav1.ListOptions{}, "the pod gone", func(all map[string]*corev1.Pod) bool { return len(all) == 0 })
}

func TestNodeThatComesBackIsTrustedAgain(t *testing.T) {
	c := newCluster(t, 0)
	nodes := client.For[*corev1.Node](c.client)
	startLifecycle(c, c.connect(), nodelifecycle.Options{
		GracePeriod: 2 * time.Second, CheckInterval: 50 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	})
	ctx, stopNode := context.WithCancel(c.ctx)
	c.startNode(ctx, "flaky", time.Second)
	await(c, nodes, "flaky", "registered", func(n *corev1.Node) bool { return true })
	stopNode()
	await(c, nodes, "flaky", "unreachable", func(n *corev1.Node) bool { return tainted(n, corev1.TaintNodeUnreachable) })
	c.startNode(c.ctx, "flaky", time.Second)
	await(c, nodes, "flaky", "without taints", func(n *corev1.Node) bool { return len(n.Spec.Taints) == 0 })
}

func tainted(node *corev1.Node, key string) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == key })
}

// startLifecycle runs the node lifecycle controller and returns what stops it.
func startLifecycle(c *cluster, cl *client.Client, opts nodelifecycle.Options) (stop func()) {
	c.t.Helper()
	factory := informer.NewFactory(cl, informer.Options{Logger: opts.Logger})
	source, err := pods.NewSource(factory)
	if err != nil {
		c.t.Fatal(err)
	}
	lifecycle, err := nodelifecycle.New(cl, factory, source, events.New(cl, "test", events.Options{Logger: opts.Logger}), opts)
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(c.ctx)
	ended := make(chan struct{})
	factory.Start(ctx)
	c.start(ctx, "node lifecycle", func(ctx context.Context) error {
		defer close(ended)
		defer factory.Shutdown()
		return lifecycle.Run(ctx)
	})
	return func() { cancel(); <-ended }
}

// TestTolerationsCountFromArrival: the time that a pod tolerates a taint begins when the
// controller sees both, however old the taint is.
func TestTolerationsCountFromArrival(t *testing.T) {
	c := newCluster(t, 0)
	nodes, podAPI := client.For[*corev1.Node](c.client), in[*corev1.Pod](c)
	now := &movedClock{now: time.Now()}
	startLifecycle(c, c.connect(), nodelifecycle.Options{GracePeriod: 100 * time.Hour, CheckInterval: 20 * time.Millisecond, Now: now.Now, Logger: slog.New(slog.DiscardHandler)})
	c.startNode(c.ctx, "node", time.Second)
	await(c, nodes, "node", "ready", func(n *corev1.Node) bool { return len(n.Spec.Taints) == 0 && len(n.Status.Conditions) > 0 })
	old := metav1.NewTime(now.Now().Add(-2 * time.Hour))
	change(c, nodes, "node", func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: "maintenance", Effect: corev1.TaintEffectNoExecute, TimeAdded: &old}}
	})
	bound := func(name string, seconds int64) *corev1.Pod {
		spec := podTemplate("web:1").Spec
		spec.NodeName = "node"
		spec.Tolerations = []corev1.Toleration{{Key: "maintenance", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds}}
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
	}
	create(c, podAPI, bound("an-hour", 3600))
	create(c, podAPI, bound("at-once", 0)) // seen later, so that the first was judged before
	gone := func(name string) {
		t.Helper()
		awaitEach(c, podAPI, metav1.ListOptions{}, name+" gone", func(all map[string]*corev1.Pod) bool { return all[name] == nil })
	}
	gone("at-once")
	if pod, err := podAPI.Get(c.ctx, "an-hour", metav1.GetOptions{}); err != nil || pod.DeletionTimestamp != nil {
		t.Fatalf("the pod that tolerates the taint for an hour leaves at once: %+v (%v)", pod, err)
	}
	now.move(time.Hour + time.Second)
	gone("an-hour")
}

// movedClock is a clock that a test moves.
type movedClock struct {
	mu  sync.Mutex
	now time.Time
}

func (m *movedClock) Now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now
}

func (m *movedClock) move(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = m.now.Add(d)
}
