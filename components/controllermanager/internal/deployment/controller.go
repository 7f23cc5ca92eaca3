package deployment

import (
	"log/slog"
	"time"

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

const workers = 8

var kind = appsv1.SchemeGroupVersion.WithKind("Deployment")

// Controller is the Deployment controller.
type Controller struct {
	*controller.Controller
	selectors   ownership.Selectors
	deployments *informer.SharedInformer[*appsv1.Deployment]
	sets        *ownership.Index[*appsv1.ReplicaSet]
	pods        *pods.Source
	api         client.Resource[*appsv1.Deployment]
	setAPI      client.Resource[*appsv1.ReplicaSet]
	claimer     ownership.Claimer[*appsv1.ReplicaSet]
	orphan      func(*appsv1.ReplicaSet) // adds who might adopt it
	// written keeps a rollout from deciding on sets as they were before its
	// own last step.
	written *controller.WriteTracker
	events  *events.Recorder
	now     func() time.Time
}

// New registers the controller with the factory's informers.
func New(cl *client.Client, factory *informer.Factory, source *pods.Source, recorder *events.Recorder, log *slog.Logger) (*Controller, error) {
	sets, err := ownership.NewIndex(informer.For[*appsv1.ReplicaSet](factory, informer.ListOptions{}))
	if err != nil {
		return nil, err
	}
	c := &Controller{
		deployments: informer.For[*appsv1.Deployment](factory, informer.ListOptions{}),
		sets:        sets,
		pods:        source,
		api:         client.For[*appsv1.Deployment](cl),
		setAPI:      client.For[*appsv1.ReplicaSet](cl),
		written:     controller.NewWriteTracker(),
		events:      recorder,
		now:         time.Now,
	}
	c.claimer = ownership.Claimer[*appsv1.ReplicaSet]{API: c.setAPI, Kind: kind}
	c.Controller, err = controller.New(c.reconcile, controller.Options{Name: "deployment", Workers: workers, Logger: log})
	if err != nil {
		return nil, err
	}
	c.orphan = ownership.OfferTo[*appsv1.ReplicaSet](c.deployments, &c.selectors, func(d *appsv1.Deployment) *metav1.LabelSelector { return d.Spec.Selector }, c.Add)
	controller.For(c.Controller, c.deployments)
	controller.Handle(c.Controller, sets.Informer, c.setHandler())
	controller.Handle(c.Controller, source.Informer, informer.HandlerFuncs[*corev1.Pod]{
		Delete: func(pod *corev1.Pod, _ bool) { c.podGone(pod) },
	})
	return c, nil
}

func (c *Controller) setHandler() informer.Handler[*appsv1.ReplicaSet] {
	return informer.HandlerFuncs[*appsv1.ReplicaSet]{
		Add: func(set *appsv1.ReplicaSet, _ bool) { c.setChanged(set) },
		Update: func(old, set *appsv1.ReplicaSet) {
			if was, is := metav1.GetControllerOfNoCopy(old), metav1.GetControllerOfNoCopy(set); was != nil && (is == nil || was.UID != is.UID) {
				c.setChanged(old)
			}
			c.setChanged(set)
		},
		Delete: func(set *appsv1.ReplicaSet, _ bool) {
			c.written.Forget(set.UID)
			c.setChanged(set)
		},
	}
}

// setChanged queues the deployment of a set, or all that might adopt it.
func (c *Controller) setChanged(set *appsv1.ReplicaSet) {
	if ref := metav1.GetControllerOfNoCopy(set); ref != nil {
		if ref.Kind == kind.Kind {
			c.Add(controller.Key{Namespace: set.Namespace, Name: ref.Name})
		}
		return
	}
	c.orphan(set)
}

// podGone queues a deployment that waits for the last of its old pods.
func (c *Controller) podGone(pod *corev1.Pod) {
	ref := metav1.GetControllerOfNoCopy(pod)
	if ref == nil || ref.Kind != "ReplicaSet" {
		return
	}
	set, ok := c.sets.Informer.Lister().Get(pod.Namespace, ref.Name)
	if !ok {
		return
	}
	ref = metav1.GetControllerOfNoCopy(set)
	if ref == nil || ref.Kind != kind.Kind {
		return
	}
	if d, ok := c.deployments.Lister().Get(pod.Namespace, ref.Name); ok && d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		c.Add(controller.KeyOf(d))
	}
}
