package endpoints

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/components/controllermanager/internal/ownership"
	"github.com/levelwire/levelwire/components/controllermanager/internal/pace"
)

const workers = 8

// Controller is the EndpointSlice controller.
type Controller struct {
	*controller.Controller
	services    *informer.SharedInformer[*corev1.Service]
	pods        *informer.SharedInformer[*corev1.Pod]
	slices      *informer.SharedInformer[*discoveryv1.EndpointSlice]
	nodes       *informer.SharedInformer[*corev1.Node]
	serviceAPI  client.Resource[*corev1.Service]
	sliceAPI    client.Resource[*discoveryv1.EndpointSlice]
	legacyAPI   client.Resource[*corev1.Endpoints] //nolint:staticcheck // Older clients read them.
	expectation *controller.Expectations
	rests       pace.Rests[controller.Key]
	deleted     sync.Map // keys of Services, whose Endpoints of somebody else's are to be deleted
}

// New registers the controller with the factory's informers. slices writes the
// EndpointSlices, legacy the Endpoints: Kubernetes has a controller for each.
func New(slices, legacy *client.Client, factory *informer.Factory, log *slog.Logger) (*Controller, error) {
	c := &Controller{
		services:    informer.For[*corev1.Service](factory, informer.ListOptions{}),
		pods:        informer.For[*corev1.Pod](factory, informer.ListOptions{}),
		slices:      informer.For[*discoveryv1.EndpointSlice](factory, informer.ListOptions{}),
		nodes:       informer.For[*corev1.Node](factory, informer.ListOptions{}),
		serviceAPI:  client.For[*corev1.Service](slices),
		sliceAPI:    client.For[*discoveryv1.EndpointSlice](slices),
		legacyAPI:   client.For[*corev1.Endpoints](legacy), //nolint:staticcheck // As above.
		expectation: controller.NewExpectations(),
	}
	var err error
	c.Controller, err = controller.New(c.reconcile, controller.Options{Name: "endpoints", Workers: workers, Logger: log})
	if err != nil {
		return nil, err
	}
	controller.Handle(c.Controller, c.services, c.serviceHandler())
	controller.Handle(c.Controller, c.pods, c.podHandler())
	controller.Handle(c.Controller, c.slices, c.sliceHandler())
	c.RequireSync("nodes", c.nodes)
	return c, nil
}

func (c *Controller) serviceHandler() informer.Handler[*corev1.Service] {
	add := func(service *corev1.Service) { c.Add(controller.KeyOf(service)) }
	return informer.HandlerFuncs[*corev1.Service]{
		Add:    func(service *corev1.Service, _ bool) { add(service) },
		Update: func(_, service *corev1.Service) { add(service) },
		Delete: func(service *corev1.Service, _ bool) {
			c.expectation.Forget(controller.KeyOf(service))
			c.rests.Forget(controller.KeyOf(service))
			c.deleted.Store(controller.KeyOf(service), nil)
			add(service)
		},
	}
}

func (c *Controller) podHandler() informer.Handler[*corev1.Pod] {
	return informer.HandlerFuncs[*corev1.Pod]{
		Add: func(pod *corev1.Pod, _ bool) { c.podChanged(pod) },
		Update: func(old, pod *corev1.Pod) {
			if !sameEndpoint(old, pod) {
				c.podChanged(pod)
				if !labels.Equals(old.Labels, pod.Labels) {
					c.podChanged(old)
				}
			}
		},
		Delete: func(pod *corev1.Pod, _ bool) { c.podChanged(pod) },
	}
}

// sameEndpoint reports whether a pod's change leaves its endpoints as they are.
func sameEndpoint(old, pod *corev1.Pod) bool {
	return old.UID == pod.UID && old.Status.PodIP == pod.Status.PodIP && old.Spec.NodeName == pod.Spec.NodeName &&
		stateOf(old) == stateOf(pod) && labels.Equals(old.Labels, pod.Labels) &&
		equality.Semantic.DeepEqual(old.Spec.Containers, pod.Spec.Containers)
}

// podChanged queues the services that select the pod.
func (c *Controller) podChanged(pod *corev1.Pod) {
	for _, service := range c.services.Lister().List(pod.Namespace, nil) {
		if len(service.Spec.Selector) > 0 && ownership.SelectsAll(service.Spec.Selector, pod.Labels) {
			c.Add(controller.KeyOf(service))
		}
	}
}

func (c *Controller) sliceHandler() informer.Handler[*discoveryv1.EndpointSlice] {
	add := func(slice *discoveryv1.EndpointSlice) {
		if slice.Labels[discoveryv1.LabelManagedBy] == managedBy {
			c.Add(controller.Key{Namespace: slice.Namespace, Name: slice.Labels[discoveryv1.LabelServiceName]})
		}
	}
	return informer.HandlerFuncs[*discoveryv1.EndpointSlice]{
		Add: func(slice *discoveryv1.EndpointSlice, _ bool) {
			if slice.Labels[discoveryv1.LabelManagedBy] == managedBy {
				c.expectation.Created(slice.UID)
			}
			add(slice)
		},
		Update: func(old, slice *discoveryv1.EndpointSlice) {
			add(old)
			add(slice)
		},
		Delete: func(slice *discoveryv1.EndpointSlice, _ bool) {
			c.expectation.Observed(slice.UID)
			add(slice)
		},
	}
}

func (c *Controller) reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	if settled, again := c.expectation.Ask(ctx, key, c.sliceUID(key.Namespace)); !settled {
		return controller.After(again), nil
	}
	service, ok := c.services.Lister().Get(key.Namespace, key.Name)
	if !ok {
		c.rests.Forget(key) // work that went on when the service was deleted has begun a rest
		return controller.Result{}, c.deleteLegacy(ctx, key)
	}
	c.deleted.Delete(key) // there is another one
	if len(service.Spec.Selector) == 0 || service.Spec.Type == corev1.ServiceTypeExternalName || service.DeletionTimestamp != nil {
		return controller.Result{}, nil // the garbage collector removes the slices of what is gone
	}
	if left := c.rests.Left(key); left > 0 {
		return controller.Result{RequeueAfter: left, Pending: true}, nil // a rest ends no back-off
	}
	began := time.Now()
	pods := c.pods.Lister().List(service.Namespace, labels.SelectorFromSet(service.Spec.Selector))
	wanted, nowhere := c.desired(service, pods)
	c.rests.Worked(key, time.Since(began)) // without the writes: they may wait for the server
	if len(nowhere) > 0 {                  // no event of a node that comes later brings us back
		if err := controller.Consistent(ctx, append(nowhere, service)...); err != nil {
			return controller.Result{}, err
		}
	}
	err := c.fit(ctx, service, wanted)
	return controller.Result{}, errors.Join(err, c.writeLegacy(ctx, service, wanted))
}

func (c *Controller) sliceUID(namespace string) func(context.Context, string) (types.UID, error) {
	return func(ctx context.Context, name string) (types.UID, error) {
		slice, err := c.sliceAPI.Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		return slice.UID, nil
	}
}
