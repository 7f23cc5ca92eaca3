package replicaset

import (
	"log/slog"

	corev1 "k8s.io/api/core/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/client/events"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/components/controllermanager/internal/ownership"
	"github.com/levelwire/levelwire/components/controllermanager/internal/pods"
)

// Controller is the controller of one kind of owners of pods: ReplicaSets or ReplicationControllers.
type Controller[T client.Object] struct {
	*controller.Controller
	owners    owners[T]
	selectors ownership.Selectors
	informer  *informer.SharedInformer[T]
	pods      *pods.Source
	api       client.Resource[T]
	control   *pods.Control
}

const workers = 8

func newController[T client.Object](of owners[T], cl *client.Client, factory *informer.Factory, source *pods.Source, recorder *events.Recorder, log *slog.Logger) (*Controller[T], error) {
	c := &Controller[T]{
		owners:   of,
		informer: informer.For[T](factory, informer.ListOptions{}),
		pods:     source,
		api:      client.For[T](cl),
		control:  pods.NewControl(cl, recorder, of.kind),
	}
	var err error
	c.Controller, err = controller.New(c.reconcile, controller.Options{Name: of.name, Workers: workers, Logger: log})
	if err != nil {
		return nil, err
	}
	controller.Handle(c.Controller, c.informer, informer.HandlerFuncs[T]{
		Add: func(owner T, _ bool) { c.Add(controller.KeyOf(owner)) },
		Update: func(old, owner T) {
			if old.GetUID() != owner.GetUID() {
				c.control.Expectations.Forget(controller.KeyOf(old))
			}
			c.Add(controller.KeyOf(owner))
		},
		Delete: func(owner T, _ bool) {
			c.control.Expectations.Forget(controller.KeyOf(owner))
			c.Add(controller.KeyOf(owner))
		},
	})
	orphan := ownership.OfferTo[*corev1.Pod](c.informer, &c.selectors, of.selector, c.Add)
	controller.Handle(c.Controller, source.Informer, c.control.Watch(c.Add, orphan))
	return c, nil
}
