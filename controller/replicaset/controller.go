package replicaset

import (
	"context"
	"log/slog"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/levelwire/levelwire/client/events"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/rest"
	"github.com/levelwire/levelwire/controller/pods"
	"github.com/levelwire/levelwire/controller/reconcile"
)

// Controller is the ReplicaSet controller.
type Controller struct {
	loop     *reconcile.Loop
	sets     *informer.SharedInformer[*appsv1.ReplicaSet]
	pods     *pods.Source
	api      rest.Resource[*appsv1.ReplicaSet]
	control  *pods.Control
	informed []reconcile.Source
}

const workers = 8

var kind = appsv1.SchemeGroupVersion.WithKind("ReplicaSet")

// New registers the controller with the factory's informers.
func New(client *rest.Client, factory *informer.Factory, source *pods.Source, recorder *events.Recorder, log *slog.Logger) (*Controller, error) {
	c := &Controller{
		sets:    informer.For[*appsv1.ReplicaSet](factory, informer.ListOptions{}),
		pods:    source,
		api:     rest.For[*appsv1.ReplicaSet](client),
		control: pods.NewControl(client, recorder, kind),
	}
	c.loop = reconcile.NewLoop("replicaset", workers, log, c.reconcile)
	setHandler := informer.HandlerFuncs[*appsv1.ReplicaSet]{
		Add: func(set *appsv1.ReplicaSet, _ bool) { c.loop.Add(reconcile.KeyOf(set)) },
		Update: func(old, set *appsv1.ReplicaSet) {
			if old.UID != set.UID {
				c.control.Expectations.Forget(reconcile.KeyOf(old))
			}
			c.loop.Add(reconcile.KeyOf(set))
		},
		Delete: func(set *appsv1.ReplicaSet, _ bool) {
			c.control.Expectations.Forget(reconcile.KeyOf(set))
			c.loop.Add(reconcile.KeyOf(set))
		},
	}
	registration, err := c.sets.AddHandler(setHandler, informer.HandlerOptions{})
	if err != nil {
		return nil, err
	}
	c.informed = append(c.informed, registration)
	registration, err = c.pods.Informer.AddHandler(c.control.Watch(c.loop.Add, c.offerOrphan), informer.HandlerOptions{})
	if err != nil {
		return nil, err
	}
	c.informed = append(c.informed, registration)
	return c, nil
}

// Run reconciles until ctx ends, once the caches are filled. It blocks.
func (c *Controller) Run(ctx context.Context) error {
	return c.loop.RunAfter(ctx, c.informed...)
}

// offerOrphan queues the sets that might adopt a pod without an owner.
func (c *Controller) offerOrphan(pod *corev1.Pod) {
	for _, set := range c.sets.Lister().List(pod.Namespace, nil) {
		selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
		if err == nil && !selector.Empty() && selector.Matches(labels.Set(pod.Labels)) {
			c.loop.Add(reconcile.KeyOf(set))
		}
	}
}
