package replicaset

import (
	"log/slog"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/client/events"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/components/controllermanager/internal/ownership"
	"github.com/levelwire/levelwire/components/controllermanager/internal/pods"
)

// Controller is the ReplicaSet controller.
type Controller struct {
	*controller.Controller
	selectors ownership.Selectors
	sets      *informer.SharedInformer[*appsv1.ReplicaSet]
	pods      *pods.Source
	api       client.Resource[*appsv1.ReplicaSet]
	control   *pods.Control
}

const workers = 8

var kind = appsv1.SchemeGroupVersion.WithKind("ReplicaSet")

// New registers the controller with the factory's informers.
func New(cl *client.Client, factory *informer.Factory, source *pods.Source, recorder *events.Recorder, log *slog.Logger) (*Controller, error) {
	c := &Controller{
		sets:    informer.For[*appsv1.ReplicaSet](factory, informer.ListOptions{}),
		pods:    source,
		api:     client.For[*appsv1.ReplicaSet](cl),
		control: pods.NewControl(cl, recorder, kind),
	}
	var err error
	c.Controller, err = controller.New(c.reconcile, controller.Options{Name: "replicaset", Workers: workers, Logger: log})
	if err != nil {
		return nil, err
	}
	controller.Handle(c.Controller, c.sets, informer.HandlerFuncs[*appsv1.ReplicaSet]{
		Add: func(set *appsv1.ReplicaSet, _ bool) { c.Add(controller.KeyOf(set)) },
		Update: func(old, set *appsv1.ReplicaSet) {
			if old.UID != set.UID {
				c.control.Expectations.Forget(controller.KeyOf(old))
			}
			c.Add(controller.KeyOf(set))
		},
		Delete: func(set *appsv1.ReplicaSet, _ bool) {
			c.control.Expectations.Forget(controller.KeyOf(set))
			c.Add(controller.KeyOf(set))
		},
	})
	orphan := ownership.OfferTo[*corev1.Pod](c.sets, &c.selectors, func(set *appsv1.ReplicaSet) *metav1.LabelSelector { return set.Spec.Selector }, c.Add)
	controller.Handle(c.Controller, source.Informer, c.control.Watch(c.Add, orphan))
	return c, nil
}
