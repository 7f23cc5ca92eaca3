package controller_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/events"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/components/controllermanager/internal/namespace"
	"github.com/levelwire/levelwire/components/controllermanager/internal/nodelifecycle"
	"github.com/levelwire/levelwire/components/controllermanager/internal/podautoscaler"
	"github.com/levelwire/levelwire/components/controllermanager/internal/pods"
	"github.com/levelwire/levelwire/internal/testwait"
)

// TestNodeWhoseLeaseIsNotSeen: a node that renews its Lease is not silent because the watch of Leases is. Nothing else
// changes in the cluster, so that no other informer is ahead of that of the Leases.
func TestNodeWhoseLeaseIsNotSeen(t *testing.T) {
	c := newCluster(t, 0)
	nodes, leases := client.For[*corev1.Node](c.client), client.For[*coordinationv1.Lease](c.client).Namespace(corev1.NamespaceNodeLease)
	node := create(c, nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"}}
	if _, err := nodes.UpdateStatus(c.ctx, node, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	renewed := metav1.NowMicro()
	create(c, leases, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: coordinationv1.LeaseSpec{RenewTime: &renewed}})

	connected, held := c.connectBehind("node-controller", "leases")
	stands := &clock{}
	startLifecycle(c, connected, nodelifecycle.Options{
		GracePeriod: time.Minute, CheckInterval: 10 * time.Millisecond, Now: stands.now, Logger: slog.New(slog.DiscardHandler),
	})
	<-held.opened
	// The controller has seen the node, with its Lease, at the present time.
	change(c, nodes, "n", func(n *corev1.Node) { n.Spec.Unschedulable = true })
	await(c, nodes, "n", "tainted", func(n *corev1.Node) bool { return tainted(n, corev1.TaintNodeUnschedulable) })

	held.hold()
	change(c, leases, "n", func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = new("n") })
	stands.at.Add(100)
	held.awaitAsked(t)
	held.awaitAsked(t)
	if n, err := nodes.Get(c.ctx, "n", metav1.GetOptions{}); err != nil || tainted(n, corev1.TaintNodeUnreachable) {
		t.Errorf("%v, %v: the node was taken for silent", n, err)
	}
	held.release()
	testwait.Stable(t, "the node is silent when the renewal that came late is as old", func() (any, bool) {
		stands.at.Add(1)
		n, err := nodes.Get(c.ctx, "n", metav1.GetOptions{})
		return []any{n, err}, err == nil && tainted(n, corev1.TaintNodeUnreachable)
	})
}

// startAutoscaler runs the autoscaler alone and returns what stops it.
func startAutoscaler(c *cluster, cl *client.Client, opts podautoscaler.Options) (stop func()) {
	c.t.Helper()
	opts.Logger = slog.New(slog.DiscardHandler)
	factory := informer.NewFactory(cl, informer.Options{Logger: opts.Logger})
	source, err := pods.NewSource(factory)
	if err != nil {
		c.t.Fatal(err)
	}
	autoscaler, err := podautoscaler.New(cl, factory, source, events.New(cl, "test", events.Options{Logger: opts.Logger}), opts)
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(c.ctx)
	ended := make(chan struct{})
	factory.Start(ctx)
	c.start(ctx, "autoscaler", func(ctx context.Context) error {
		defer close(ended)
		defer factory.Shutdown()
		return autoscaler.Run(ctx)
	})
	return func() { cancel(); <-ended }
}

func newAutoscaler(target string, spec autoscalingv2.HorizontalPodAutoscalerSpec) *autoscalingv2.HorizontalPodAutoscaler {
	spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: target}
	return &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: target}, Spec: spec}
}

// TestAutoscalerThatIsGone: an autoscaler that was deleted does not undo what is done by hand after it, which nothing would
// put right.
func TestAutoscalerThatIsGone(t *testing.T) {
	c := newCluster(t, 0)
	deployments, autoscalers := in[*appsv1.Deployment](c), in[*autoscalingv2.HorizontalPodAutoscaler](c)
	create(c, deployments, newDeployment("web", 1))
	create(c, autoscalers, newAutoscaler("web", autoscalingv2.HorizontalPodAutoscalerSpec{MinReplicas: new(int32(2)), MaxReplicas: 3}))
	connected, held := c.connectBehind("autoscaler", "horizontalpodautoscalers")
	stop := startAutoscaler(c, connected, podautoscaler.Options{Period: 10 * time.Millisecond})
	<-held.opened
	await(c, deployments, "web", "as many as the autoscaler has at least", func(d *appsv1.Deployment) bool { return *d.Spec.Replicas == 2 })

	held.hold()
	remove(c, autoscalers, "web", metav1.DeleteOptions{})
	change(c, deployments, "web", func(d *appsv1.Deployment) { *d.Spec.Replicas = 5 })
	held.awaitAsked(t)
	held.awaitAsked(t)
	held.release()
	stop()
	if d, err := deployments.Get(c.ctx, "web", metav1.GetOptions{}); err != nil || *d.Spec.Replicas != 5 {
		t.Errorf("%+v, %v: want 5 replicas", d, err)
	}
}

// load is a metric of external.metrics.k8s.io, in place of a server that has it.
type load struct {
	next  http.RoundTripper
	value atomic.Int64
}

func (l *load) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.HasPrefix(r.URL.Path, "/apis/external.metrics.k8s.io/") {
		return l.next.RoundTrip(r)
	}
	answer := httptest.NewRecorder()
	fmt.Fprintf(answer, `{"items":[{"metricName":"load","value":"%d"}]}`, l.value.Load())
	return answer.Result(), nil
}

// TestAutoscalerThatLacksPods: a count of pods that are not ready any more is not remembered. It would keep the
// autoscaler from scaling down for five minutes after it has seen what there is.
func TestAutoscalerThatLacksPods(t *testing.T) {
	c := newCluster(t, 0)
	deployments, autoscalers := in[*appsv1.Deployment](c), in[*autoscalingv2.HorizontalPodAutoscaler](c)
	create(c, deployments, newDeployment("web", 4))
	for _, name := range []string{"a", "b", "c"} {
		createPod(c, name, nil)
		setPodStatus(c, name, corev1.ConditionTrue)
	}
	ten := resource.MustParse("10")
	create(c, autoscalers, newAutoscaler("web", autoscalingv2.HorizontalPodAutoscalerSpec{MaxReplicas: 10, Metrics: []autoscalingv2.MetricSpec{{
		Type: autoscalingv2.ExternalMetricSourceType, External: &autoscalingv2.ExternalMetricSource{
			Metric: autoscalingv2.MetricIdentifier{Name: "load"}, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.ValueMetricType, Value: &ten},
		},
	}}}))
	measured := &load{}
	measured.value.Store(10)
	held := newLaggingWatch("pods")
	config := c.server.UserConfig("autoscaler", "system:masters")
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		measured.next = next
		held.next = measured
		return held
	})
	connected, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(connected.CloseIdleConnections)
	stands := &clock{} // nothing is computed until it moves
	stands.at.Store(time.Now().Unix())
	startAutoscaler(c, connected, podautoscaler.Options{Period: 10 * time.Millisecond, Now: stands.now})
	<-held.opened
	decided := func(value int64) *autoscalingv2.HorizontalPodAutoscaler {
		return await(c, autoscalers, "web", "decided", func(h *autoscalingv2.HorizontalPodAutoscaler) bool {
			return len(h.Status.CurrentMetrics) == 1 && h.Status.CurrentMetrics[0].External.Current.Value.Value() == value
		})
	}
	if h := decided(10); h.Status.DesiredReplicas != 4 {
		t.Fatalf("%d replicas at first", h.Status.DesiredReplicas)
	}

	held.hold()
	for _, name := range []string{"b", "c"} {
		setPodStatus(c, name, corev1.ConditionFalse)
	}
	change(c, deployments, "web", func(d *appsv1.Deployment) { d.Annotations = map[string]string{"newer": "than the pods"} })
	measured.value.Store(20)
	stands.at.Add(400) // what was recommended before is forgotten
	held.awaitAsked(t)
	held.awaitAsked(t)
	held.release()
	if h := decided(20); h.Status.DesiredReplicas != 2 {
		t.Errorf("%d replicas, want twice as many as there are ready pods, of which there is one", h.Status.DesiredReplicas)
	}
}

// TestQuotaOfPodsThatAreNotSeen: the first status of a quota counts the pods that there are. By one that counts those that
// an informer shows, more would be made than the quota allows, and stay.
func TestQuotaOfPodsThatAreNotSeen(t *testing.T) {
	c := newCluster(t, 0)
	held := c.startManagerBehind("pods")
	held.hold()
	defer held.release()
	create(c, in[*corev1.Pod](c), newPod("p"))
	quotas := in[*corev1.ResourceQuota](c)
	create(c, quotas, &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "q"}, Spec: corev1.ResourceQuotaSpec{
		Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1")},
	}})
	q := await(c, quotas, "q", "counted", func(q *corev1.ResourceQuota) bool { return len(q.Status.Used) > 0 })
	if used := q.Status.Used[corev1.ResourcePods]; used.Value() != 1 {
		t.Errorf("%s pods are used, want 1", used.String())
	}
}

// looks reports what a namespace controller knows of a namespace before it empties it.
type looks struct {
	next     http.RoundTripper
	uid      types.UID     // of the namespace that it may empty
	replaced chan struct{} // closed when there is another
	seen     chan struct{} // closed when it has found that out, or has emptied that one
	once     sync.Once
}

func (l *looks) RoundTrip(r *http.Request) (*http.Response, error) {
	emptied := isDone(l.replaced) && r.Method == http.MethodDelete && strings.HasSuffix(r.URL.Path, "/configmaps")
	resp, err := l.next.RoundTrip(r)
	if err != nil {
		return resp, err
	}
	if r.Method == http.MethodGet && r.URL.Path == "/api/v1/namespaces/team" {
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			return nil, err
		}
		_ = resp.Body.Close()
		resp.Body = io.NopCloser(bytes.NewReader(body))
		emptied = emptied || !bytes.Contains(body, []byte(l.uid))
	}
	if emptied {
		l.once.Do(func() { close(l.seen) })
	}
	return resp, nil
}

func isDone(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// TestNamespaceThatAnotherHasReplaced: a namespace that was finalized by hand is gone, and what there is in the one that has
// its name now stays, although the controller has not seen that.
func TestNamespaceThatAnotherHasReplaced(t *testing.T) {
	c := newCluster(t, 0)
	namespaces, configs := client.For[*corev1.Namespace](c.client), client.For[*corev1.ConfigMap](c.client).Namespace("team")
	old := create(c, namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}})
	keeps := newConfig("keeps")
	keeps.Finalizers = []string{"example.com/hold"}
	create(c, configs, keeps)
	remove(c, namespaces, "team", metav1.DeleteOptions{})

	watching, held := c.connectBehind("informers", "namespaces")
	look := &looks{uid: old.UID, replaced: make(chan struct{}), seen: make(chan struct{})}
	c.startEmptier(watching, func(next http.RoundTripper) http.RoundTripper {
		look.next = next
		return look
	})
	await(c, configs, "keeps", "being deleted", func(m *corev1.ConfigMap) bool { return m.DeletionTimestamp != nil })

	held.hold()
	finalize(c, "team")
	create(c, namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}})
	create(c, configs, newConfig("new"))
	close(look.replaced)
	select {
	case <-look.seen:
	case <-c.ctx.Done():
		t.Fatal("the controller has not looked at the namespace again")
	}
	if m, err := configs.Get(c.ctx, "new", metav1.GetOptions{}); err != nil || m.DeletionTimestamp != nil {
		t.Errorf("%v, %v: what is in the new namespace was deleted", m, err)
	}
	held.release()
}

// replacing has a namespace replaced right before the first request of a verb for its config maps.
type replacing struct {
	next    http.RoundTripper
	verb    string
	replace func()
	once    sync.Once

	replaced atomic.Bool
	answered chan struct{} // closed when it has then been asked whether the namespace is there, or to delete in it
	last     sync.Once
}

func (b *replacing) RoundTrip(r *http.Request) (*http.Response, error) {
	emptying := r.URL.Path == "/api/v1/namespaces/team/configmaps"
	if emptying && r.Method == b.verb {
		b.once.Do(func() { b.replace(); b.replaced.Store(true) })
	}
	after := b.replaced.Load() && (emptying && r.Method == http.MethodDelete || r.URL.Path == "/api/v1/namespaces/team")
	resp, err := b.next.RoundTrip(r)
	if after {
		b.last.Do(func() { close(b.answered) })
	}
	return resp, err
}

// TestNamespaceThatIsReplacedMeanwhile: the same while the controller empties the first one, at whichever request.
func TestNamespaceThatIsReplacedMeanwhile(t *testing.T) {
	for _, verb := range []string{http.MethodGet, http.MethodDelete} {
		t.Run(verb, func(t *testing.T) {
			c := newCluster(t, 0)
			namespaces, configs := client.For[*corev1.Namespace](c.client), client.For[*corev1.ConfigMap](c.client).Namespace("team")
			create(c, namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}})
			create(c, configs, newConfig("again"))
			look := &replacing{verb: verb, answered: make(chan struct{}), replace: func() {
				finalize(c, "team")
				create(c, namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}})
				remove(c, configs, "again", metav1.DeleteOptions{})
				create(c, configs, newConfig("again"))
				create(c, configs, newConfig("new"))
			}}
			c.startEmptier(c.connectAs("informers", "system:masters"), func(next http.RoundTripper) http.RoundTripper {
				look.next = next
				return look
			})
			remove(c, namespaces, "team", metav1.DeleteOptions{})
			select {
			case <-look.answered:
			case <-c.ctx.Done():
				t.Fatal("the controller has not emptied the namespace")
			}
			for _, name := range []string{"again", "new"} {
				if m, err := configs.Get(c.ctx, name, metav1.GetOptions{}); err != nil || m.DeletionTimestamp != nil {
					t.Errorf("%v, %v: %s is in the new namespace, and was deleted", m, err, name)
				}
			}
		})
	}
}

// startEmptier runs a namespace controller whose informers read by one client, and whose requests pass through a transport.
func (c *cluster) startEmptier(reads *client.Client, wrap func(http.RoundTripper) http.RoundTripper) {
	c.t.Helper()
	config := c.server.UserConfig("namespace-controller", "system:masters")
	config.Wrap(wrap)
	connected, err := client.New(config, client.Options{})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(connected.CloseIdleConnections)
	factory := informer.NewFactory(reads, informer.Options{Logger: slog.New(slog.DiscardHandler)})
	emptier, err := namespace.New(connected, factory, slog.New(slog.DiscardHandler))
	if err != nil {
		c.t.Fatal(err)
	}
	factory.Start(c.ctx)
	c.start(c.ctx, "namespace", func(ctx context.Context) error {
		defer factory.Shutdown()
		return emptier.Run(ctx)
	})
}

// finalize removes a namespace as people do by hand who do not want to wait for what is in it.
func finalize(c *cluster, name string) {
	c.t.Helper()
	namespaces := client.For[*corev1.Namespace](c.client)
	for {
		namespace, err := namespaces.Get(c.ctx, name, metav1.GetOptions{})
		if err != nil {
			c.t.Fatal(err)
		}
		namespace.Spec.Finalizers = nil
		err = namespaces.SubResource("finalize").Update(c.ctx, name, namespace, metav1.UpdateOptions{})
		if err == nil {
			return
		}
		if !isConflict(err) { // the controller has written its conditions
			c.t.Fatal(err)
		}
	}
}
