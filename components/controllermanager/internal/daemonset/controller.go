package daemonset

import (
	"log/slog"
	"maps"
	"slices"
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

var kind = appsv1.SchemeGroupVersion.WithKind("DaemonSet")

// Controller is the DaemonSet controller.
type Controller struct {
	*controller.Controller
	selectors ownership.Selectors
	sets      *informer.SharedInformer[*appsv1.DaemonSet]
	nodes     *informer.SharedInformer[*corev1.Node]
	pods      *pods.Source
	revisions *revisionhistory.Revisions
	api       client.Resource[*appsv1.DaemonSet]
	control   *pods.Control
	now       func() time.Time
}

// New registers the controller with the factory's informers.
func New(cl *client.Client, factory *informer.Factory, source *pods.Source, revisions *revisionhistory.Revisions, recorder *events.Recorder, log *slog.Logger) (*Controller, error) {
	c := &Controller{
		sets:      informer.For[*appsv1.DaemonSet](factory, informer.ListOptions{}),
		nodes:     informer.For[*corev1.Node](factory, informer.ListOptions{}),
		pods:      source,
		revisions: revisions,
		api:       client.For[*appsv1.DaemonSet](cl),
		control:   pods.NewControl(cl, recorder, kind),
		now:       time.Now,
	}
	var err error
	c.Controller, err = controller.New(c.reconcile, controller.Options{Name: "daemonset", Workers: workers, Logger: log})
	if err != nil {
		return nil, err
	}
	controller.For(c.Controller, c.sets)
	controller.Handle(c.Controller, c.nodes, c.nodeHandler())
	orphan := ownership.OfferTo[*corev1.Pod](c.sets, &c.selectors, func(set *appsv1.DaemonSet) *metav1.LabelSelector { return set.Spec.Selector }, c.Add)
	controller.Handle(c.Controller, source.Informer, c.control.Watch(c.Add, orphan))
	c.RequireSync("revisions", revisions.Informer())
	return c, nil
}

// nodeHandler queues all sets when the nodes, or what decides where pods may
// run, have changed. A kubelet's heartbeat is no such change.
func (c *Controller) nodeHandler() informer.Handler[*corev1.Node] {
	all := func() {
		for _, set := range c.sets.Lister().List("", nil) {
			c.Add(controller.KeyOf(set))
		}
	}
	return informer.HandlerFuncs[*corev1.Node]{
		Add: func(*corev1.Node, bool) { all() },
		Update: func(old, node *corev1.Node) {
			same := maps.Equal(old.Labels, node.Labels) && slices.EqualFunc(old.Spec.Taints, node.Spec.Taints, func(a, b corev1.Taint) bool {
				return a.MatchTaint(&b) && a.Value == b.Value
			})
			if !same {
				all()
			}
		},
		Delete: func(*corev1.Node, bool) { all() },
	}
}
