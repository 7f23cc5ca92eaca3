package nodelifecycle

import (
	"context"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/client/events"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/components/controllermanager/internal/pods"
)

const workers = 4

// Controller is the node lifecycle controller.
type Controller struct {
	*controller.Controller
	opts    Options
	nodes   *informer.SharedInformer[*corev1.Node]
	leases  *informer.SharedInformer[*coordinationv1.Lease]
	pods    *pods.Source
	nodeAPI client.Resource[*corev1.Node]
	podAPI  client.Resource[*corev1.Pod]
	events  *events.Recorder
	beats   heartbeats

	mu sync.Mutex
	// missing is since when a node with pods has not existed. It holds only
	// nodes that pods are bound to.
	missing map[string]time.Time
	// seen has the pods that taints will make leave, by node.
	seen      map[string]map[sighting]time.Time
	disrupted disruption
}

// New registers the controller with the factory's informers. The keys of its
// loop are names of nodes, existing or not.
func New(cl *client.Client, factory *informer.Factory, source *pods.Source, recorder *events.Recorder, opts Options) (*Controller, error) {
	opts.ensureDefaults()
	c := &Controller{
		opts:    opts,
		nodes:   informer.For[*corev1.Node](factory, informer.ListOptions{}),
		leases:  informer.For[*coordinationv1.Lease](factory, informer.ListOptions{Namespace: corev1.NamespaceNodeLease}),
		pods:    source,
		nodeAPI: client.For[*corev1.Node](cl),
		podAPI:  client.For[*corev1.Pod](cl),
		events:  recorder,
		beats:   heartbeats{seen: map[string]heartbeat{}},
		missing: map[string]time.Time{},
		seen:    map[string]map[sighting]time.Time{},
	}
	if err := c.nodes.AddIndexers(readinessIndex); err != nil {
		return nil, err
	}
	var err error
	c.Controller, err = controller.New(c.reconcile, controller.Options{Name: "nodelifecycle", Workers: workers, Logger: opts.Logger})
	if err != nil {
		return nil, err
	}
	controller.For(c.Controller, c.nodes)
	controller.Handle(c.Controller, c.leases, c.leaseHandler())
	controller.Handle(c.Controller, source.Informer, c.podHandler())
	return c, nil
}

func (c *Controller) check(node string) { c.Add(controller.Key{Name: node}) }

// leaseHandler looks at a node again only if its lease speaks for one that is
// taken for dead: renewals of the living are timed at the next check.
func (c *Controller) leaseHandler() informer.Handler[*coordinationv1.Lease] {
	renewed := func(lease *coordinationv1.Lease) {
		node, ok := c.nodes.Lister().Get("", lease.Name)
		if !ok {
			return
		}
		c.beats.observe(node.Name, c.sign(node), c.opts.Now())
		if readyStatus(node) != corev1.ConditionTrue {
			c.check(node.Name)
		}
	}
	return informer.HandlerFuncs[*coordinationv1.Lease]{
		Add:    func(lease *coordinationv1.Lease, _ bool) { renewed(lease) },
		Update: func(_, lease *coordinationv1.Lease) { renewed(lease) },
	}
}

// podHandler looks at a node when a pod comes to it that may have to leave,
// or that waits for a node which is not there.
func (c *Controller) podHandler() informer.Handler[*corev1.Pod] {
	concerned := func(pod *corev1.Pod) {
		if pod.Spec.NodeName == "" {
			return
		}
		node, ok := c.nodes.Lister().Get("", pod.Spec.NodeName)
		if !ok || readyStatus(node) != corev1.ConditionTrue || noExecute(node.Spec.Taints) {
			c.check(pod.Spec.NodeName)
		}
	}
	return informer.HandlerFuncs[*corev1.Pod]{
		Add: func(pod *corev1.Pod, _ bool) { concerned(pod) },
		Update: func(old, pod *corev1.Pod) {
			if old.Spec.NodeName != pod.Spec.NodeName || old.DeletionTimestamp == nil != (pod.DeletionTimestamp == nil) || pods.Ready(old) != pods.Ready(pod) {
				concerned(pod)
			}
		},
	}
}

func noExecute(taints []corev1.Taint) bool {
	for i := range taints {
		if taints[i].Effect == corev1.TaintEffectNoExecute {
			return true
		}
	}
	return false
}

// sign is what the node last showed.
func (c *Controller) sign(node *corev1.Node) string {
	renewal := ""
	if lease, ok := c.leases.Lister().Get(corev1.NamespaceNodeLease, node.Name); ok {
		renewal = lease.ResourceVersion
	}
	return signOf(renewal, node)
}

func (c *Controller) reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	node, ok := c.nodes.Lister().Get("", key.Name)
	if !ok {
		c.beats.forget(key.Name)
		c.remember(key.Name, nil)
		again, err := c.buryPods(ctx, key.Name)
		return controller.After(again), err
	}
	c.found(key.Name)
	again, err := c.lookAt(ctx, node)
	return controller.After(again), err
}
