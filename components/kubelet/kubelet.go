package kubelet

import (
	"context"
	"log/slog"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/client/events"
	"github.com/levelwire/levelwire/client/informer"
)

// Kubelet simulates one node.
type Kubelet struct {
	opts    Options
	log     *slog.Logger
	factory *informer.Factory
	pods    *informer.SharedInformer[*corev1.Pod]
	node    *informer.SharedInformer[*corev1.Node]
	podAPI  client.Resource[*corev1.Pod]
	nodeAPI client.Resource[*corev1.Node]
	leases  client.Resource[*coordinationv1.Lease]
	events  *events.Recorder
	loop    *controller.Controller
	ips     *addresses
	// allocations are bounded by the pods bound to the node.
	allocations *allocations
	// lease is the node's as it was last written; nil: not known. It belongs to register,
	// and then to heartbeat.
	lease *coordinationv1.Lease

	mu sync.Mutex
	// remembered is bounded by the pods bound to the node.
	remembered map[types.UID]times
}

// New makes a kubelet that reaches the API server through client.
func New(c *client.Client, opts Options) (*Kubelet, error) {
	if err := opts.ensureDefaults(); err != nil {
		return nil, err
	}
	log := opts.Logger.With("node", opts.NodeName)
	k := &Kubelet{
		opts:        opts,
		log:         log,
		factory:     informer.NewFactory(c, informer.Options{Logger: log}),
		podAPI:      client.For[*corev1.Pod](c),
		nodeAPI:     client.For[*corev1.Node](c),
		leases:      client.For[*coordinationv1.Lease](c).Namespace(corev1.NamespaceNodeLease),
		events:      events.New(c, "kubelet", events.Options{Host: opts.NodeName, Logger: log}),
		ips:         newAddresses(opts.PodCIDR),
		allocations: newAllocations(),
		remembered:  map[types.UID]times{},
	}
	k.pods = informer.For[*corev1.Pod](k.factory, informer.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", opts.NodeName).String(),
	})
	k.node = informer.For[*corev1.Node](k.factory, informer.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", opts.NodeName).String(),
	})
	var err error
	k.loop, err = controller.New(k.sync, controller.Options{Name: "kubelet", Workers: opts.Workers, Logger: log})
	if err != nil {
		return nil, err
	}
	// The handler claims the addresses and the amounts that pods have from before a restart; no
	// other is given out until it has seen them all.
	controller.Handle(k.loop, k.pods, informer.HandlerFuncs[*corev1.Pod]{
		Add: func(pod *corev1.Pod, _ bool) { k.podChanged(pod) },
		Update: func(old, pod *corev1.Pod) {
			if old.UID != pod.UID {
				k.podGone(old)
			}
			k.podChanged(pod)
		},
		Delete: func(pod *corev1.Pod, _ bool) { k.podGone(pod) },
	})
	k.loop.RequireSync("the node", k.node)
	return k, nil
}

// Run registers the node and plays its pods until ctx ends. It blocks. The
// node stays registered: its lease runs out, as that of a machine that was
// switched off does.
func (k *Kubelet) Run(ctx context.Context) error {
	var group sync.WaitGroup
	defer group.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	group.Go(func() { _ = k.events.Run(ctx) })
	if k.opts.Starting != nil {
		select {
		case k.opts.Starting <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	started := sync.OnceFunc(func() {
		if k.opts.Starting != nil {
			<-k.opts.Starting
		}
	})
	defer started()
	if err := k.register(ctx); err != nil {
		return err
	}
	group.Go(func() {
		select {
		case <-k.loop.Synced():
			started()
			k.log.Info("kubelet is running", "pods", k.pods.Lister().Len(), "podCIDR", k.opts.PodCIDR)
			k.heartbeat(ctx)
		case <-ctx.Done():
		}
	})
	return controller.Run(ctx, controller.RunOptions{Factory: k.factory}, k.loop)
}

func (k *Kubelet) podChanged(pod *corev1.Pod) {
	if ended(pod) {
		k.release(pod.UID)
	} else {
		if pod.Status.PodIP != "" {
			k.ips.claim(pod.UID, pod.Status.PodIP)
		}
		if pod.Status.StartTime != nil {
			k.allocations.claim(pod)
		}
	}
	k.loop.Add(controller.KeyOf(pod))
}

// release has others have what a pod held that has ended. It goes on showing its address: pods that have
// ended can be any number.
func (k *Kubelet) release(pod types.UID) {
	k.ips.release(pod)
	if k.allocations.release(pod) {
		k.resizeOthers()
	}
}

func (k *Kubelet) podGone(pod *corev1.Pod) {
	k.forget(pod.UID)
	k.loop.Forget(controller.KeyOf(pod))
}

func (k *Kubelet) forget(pod types.UID) {
	k.release(pod)
	k.mu.Lock()
	delete(k.remembered, pod)
	k.mu.Unlock()
}

// forgetIfGone takes back what a worker may have noted about a pod after
// podGone was called for it, or podChanged since it has ended. The cache is changed before they are
// called, so one of the two comes last.
func (k *Kubelet) forgetIfGone(pod *corev1.Pod) {
	switch now, ok := k.pods.Lister().Get(pod.Namespace, pod.Name); {
	case !ok || now.UID != pod.UID:
		k.forget(pod.UID)
	case ended(now):
		k.release(pod.UID)
	}
}

// remember notes when each stage of the pod's life was first seen.
func (k *Kubelet) remember(pod *corev1.Pod, now time.Time) times {
	k.mu.Lock()
	defer k.mu.Unlock()
	seen := k.remembered[pod.UID]
	seen.remember(&k.opts, pod, now)
	k.remembered[pod.UID] = seen
	return seen
}

// Name is the node's name.
func (k *Kubelet) Name() string { return k.opts.NodeName }
