package statefulset

import (
	"context"
	"log/slog"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/levelwire/levelwire/client/events"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/rest"
	"github.com/levelwire/levelwire/controller/history"
	"github.com/levelwire/levelwire/controller/pods"
	"github.com/levelwire/levelwire/controller/reconcile"
)

const workers = 4

var kind = appsv1.SchemeGroupVersion.WithKind("StatefulSet")

// Controller is the StatefulSet controller.
type Controller struct {
	loop     *reconcile.Loop
	sets     *informer.SharedInformer[*appsv1.StatefulSet]
	pods     *pods.Source
	history  *history.History
	api      rest.Resource[*appsv1.StatefulSet]
	claimAPI rest.Resource[*corev1.PersistentVolumeClaim]
	control  *pods.Control
	informed []reconcile.Source
	now      func() time.Time
}

// New registers the controller with the factory's informers.
func New(client *rest.Client, factory *informer.Factory, source *pods.Source, revisions *history.History, recorder *events.Recorder, log *slog.Logger) (*Controller, error) {
	c := &Controller{
		sets:     informer.For[*appsv1.StatefulSet](factory, informer.ListOptions{}),
		pods:     source,
		history:  revisions,
		api:      rest.For[*appsv1.StatefulSet](client),
		claimAPI: rest.For[*corev1.PersistentVolumeClaim](client),
		control:  pods.NewControl(client, recorder, kind),
		now:      time.Now,
	}
	c.loop = reconcile.NewLoop("statefulset", workers, log, c.reconcile)
	sets, err := c.sets.AddHandler(reconcile.Each(func(set *appsv1.StatefulSet) {
		c.loop.Add(reconcile.KeyOf(set))
	}), informer.HandlerOptions{})
	if err != nil {
		return nil, err
	}
	podHandler, err := source.Informer.AddHandler(c.control.Watch(c.loop.Add, nil), informer.HandlerOptions{})
	if err != nil {
		return nil, err
	}
	c.informed = []reconcile.Source{sets, podHandler, revisions}
	return c, nil
}

// Run reconciles until ctx ends, once the caches are filled. It blocks.
func (c *Controller) Run(ctx context.Context) error { return c.loop.RunAfter(ctx, c.informed...) }
