package disruption

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/client/discovery"
	"github.com/levelwire/levelwire/client/events"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/components/controllermanager/internal/ownership"
	"github.com/levelwire/levelwire/components/controllermanager/internal/pods"
)

const workers = 4

// Controller is the disruption controller.
type Controller struct {
	*controller.Controller
	selectors    ownership.Selectors
	client       *client.Client
	api          client.Resource[*policyv1.PodDisruptionBudget]
	budgets      *informer.SharedInformer[*policyv1.PodDisruptionBudget]
	pods         *pods.Source
	sets         *informer.SharedInformer[*appsv1.ReplicaSet]
	deployments  *informer.SharedInformer[*appsv1.Deployment]
	statefulSets *informer.SharedInformer[*appsv1.StatefulSet]
	mapper       *discovery.Mapper
	events       *events.Recorder
	now          func() time.Time
}

// New registers the controller with the factory's informers.
func New(cl *client.Client, factory *informer.Factory, source *pods.Source, recorder *events.Recorder, log *slog.Logger) (*Controller, error) {
	c := &Controller{
		client:       cl,
		api:          client.For[*policyv1.PodDisruptionBudget](cl),
		budgets:      informer.For[*policyv1.PodDisruptionBudget](factory, informer.ListOptions{}),
		pods:         source,
		sets:         informer.For[*appsv1.ReplicaSet](factory, informer.ListOptions{}),
		deployments:  informer.For[*appsv1.Deployment](factory, informer.ListOptions{}),
		statefulSets: informer.For[*appsv1.StatefulSet](factory, informer.ListOptions{}),
		mapper:       discovery.NewMapper(cl, discovery.Options{}),
		events:       recorder,
		now:          time.Now,
	}
	var err error
	c.Controller, err = controller.New(c.reconcile, controller.Options{Name: "disruption", Workers: workers, Logger: log})
	if err != nil {
		return nil, err
	}
	controller.For(c.Controller, c.budgets)
	controller.Handle(c.Controller, source.Informer, c.podHandler())
	controller.Handle(c.Controller, c.sets, scaled(c, func(s *appsv1.ReplicaSet) *int32 { return s.Spec.Replicas }))
	controller.Handle(c.Controller, c.deployments, scaled(c, func(d *appsv1.Deployment) *int32 { return d.Spec.Replicas }))
	controller.Handle(c.Controller, c.statefulSets, scaled(c, func(s *appsv1.StatefulSet) *int32 { return s.Spec.Replicas }))
	return c, nil
}

// podHandler queues the budgets of a pod when what they count has changed.
func (c *Controller) podHandler() informer.Handler[*corev1.Pod] {
	return informer.HandlerFuncs[*corev1.Pod]{
		Add: func(pod *corev1.Pod, _ bool) { c.podChanged(pod) },
		Update: func(old, pod *corev1.Pod) {
			if counts(old, pod) {
				c.podChanged(pod)
				if !labels.Equals(old.Labels, pod.Labels) {
					c.podChanged(old)
				}
			}
		},
		Delete: func(pod *corev1.Pod, _ bool) { c.podChanged(pod) },
	}
}

// counts reports whether a pod's change may matter to a budget.
func counts(old, pod *corev1.Pod) bool {
	before, after := metav1.GetControllerOfNoCopy(old), metav1.GetControllerOfNoCopy(pod)
	sameOwner := before == nil && after == nil || before != nil && after != nil && before.UID == after.UID
	return !sameOwner || old.UID != pod.UID || pods.Ready(old) != pods.Ready(pod) ||
		(old.DeletionTimestamp == nil) != (pod.DeletionTimestamp == nil) || !labels.Equals(old.Labels, pod.Labels)
}

func (c *Controller) podChanged(pod *corev1.Pod) {
	selector := func(budget *policyv1.PodDisruptionBudget) *metav1.LabelSelector { return budget.Spec.Selector }
	for _, budget := range ownership.Selecting(c.budgets, &c.selectors, selector, pod) {
		c.Add(controller.KeyOf(budget))
	}
}

// scaled makes a handler that queues the budgets of a namespace when one of
// its workloads wants another number of pods. There are few of either.
func scaled[T client.Object](c *Controller, replicas func(T) *int32) informer.Handler[T] {
	queue := func(obj T) {
		for _, budget := range c.budgets.Lister().List(obj.GetNamespace(), nil) {
			c.Add(controller.KeyOf(budget))
		}
	}
	return informer.HandlerFuncs[T]{
		Add: func(obj T, _ bool) { queue(obj) },
		Update: func(old, obj T) {
			if old.GetUID() != obj.GetUID() || !equality.Semantic.DeepEqual(replicas(old), replicas(obj)) {
				queue(obj)
			}
		},
		Delete: func(obj T, _ bool) { queue(obj) },
	}
}

func (c *Controller) reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	budget, ok := c.budgets.Lister().Get(key.Namespace, key.Name)
	if !ok {
		c.selectors.Forget(key)
		return controller.Result{}, nil
	}
	status, again, err := c.compute(ctx, budget)
	if err != nil {
		return controller.Result{}, errors.Join(err, c.write(ctx, budget, failedStatus(budget, err)))
	}
	if opens(budget, status) {
		if err := controller.Consistent(ctx, budget); err != nil {
			return controller.Result{}, err
		}
	}
	return controller.After(again), c.write(ctx, budget, status)
}

func (c *Controller) compute(ctx context.Context, budget *policyv1.PodDisruptionBudget) (status policyv1.PodDisruptionBudgetStatus, again time.Duration, err error) {
	selector, err := c.selectors.Of(budget, budget.Spec.Selector)
	if err != nil {
		return status, 0, fmt.Errorf("selector: %w", err)
	}
	// A budget without a selector covers nothing, one with an empty selector
	// the whole namespace.
	covered := c.pods.Informer.Lister().List(budget.Namespace, selector)
	counted := countPods(covered, budget.Status.DisruptedPods, c.now())
	for _, pod := range counted.stayed {
		c.events.Warning(pod, "NotDeleted", "Pod was expected by PDB %s/%s to be deleted but it wasn't", budget.Namespace, budget.Name)
	}
	d, err := demandOf(&budget.Spec, int32(len(covered)), func() (int32, error) { return c.expected(ctx, covered) })
	if err != nil {
		return status, 0, err
	}
	return statusOf(budget, d, counted), counted.again, nil
}

// write is guarded by the budget's version: an eviction that was allowed
// meanwhile must not be forgotten.
func (c *Controller) write(ctx context.Context, budget *policyv1.PodDisruptionBudget, status policyv1.PodDisruptionBudgetStatus) error {
	if equality.Semantic.DeepEqual(status, budget.Status) {
		return nil
	}
	update := budget.DeepCopy()
	update.Status = status
	_, err := c.api.Namespace(budget.Namespace).UpdateStatus(ctx, update, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // a newer state is on its way and brings us back
	}
	if err != nil {
		return fmt.Errorf("write status: %w", err)
	}
	return nil
}
