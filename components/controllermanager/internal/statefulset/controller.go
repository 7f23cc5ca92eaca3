package statefulset

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
	"github.com/levelwire/levelwire/components/controllermanager/internal/revisionhistory"
)

const workers = 4

var kind = appsv1.SchemeGroupVersion.WithKind("StatefulSet")

// Controller is the StatefulSet controller.
type Controller struct {
	*controller.Controller
	selectors ownership.Selectors
	sets      *informer.SharedInformer[*appsv1.StatefulSet]
	pods      *pods.Source
	revisions *revisionhistory.Revisions
	api       client.Resource[*appsv1.StatefulSet]
	claimAPI  client.Resource[*corev1.PersistentVolumeClaim]
	control   *pods.Control
	now       func() time.Time
}

// New registers the controller with the factory's informers.
func New(cl *client.Client, factory *informer.Factory, source *pods.Source, revisions *revisionhistory.Revisions, recorder *events.Recorder, log *slog.Logger) (*Controller, error) {
	c := &Controller{
		sets:      informer.For[*appsv1.StatefulSet](factory, informer.ListOptions{}),
		pods:      source,
		revisions: revisions,
		api:       client.For[*appsv1.StatefulSet](cl),
		claimAPI:  client.For[*corev1.PersistentVolumeClaim](cl),
		control:   pods.NewControl(cl, recorder, kind),
		now:       time.Now,
	}
	var err error
	c.Controller, err = controller.New(c.reconcile, controller.Options{Name: "statefulset", Workers: workers, Logger: log})
	if err != nil {
		return nil, err
	}
	controller.For(c.Controller, c.sets)
	orphan := ownership.OfferTo[*corev1.Pod](c.sets, &c.selectors, func(set *appsv1.StatefulSet) *metav1.LabelSelector { return set.Spec.Selector }, c.Add)
	controller.Handle(c.Controller, source.Informer, c.control.Watch(c.Add, orphan))
	c.RequireSync("revisions", revisions.Informer())
	return c, nil
}
