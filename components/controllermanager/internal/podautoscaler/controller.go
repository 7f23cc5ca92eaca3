package podautoscaler

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/client/discovery"
	"github.com/levelwire/levelwire/client/events"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/components/controllermanager/internal/ownership"
	"github.com/levelwire/levelwire/components/controllermanager/internal/pods"
	"github.com/levelwire/levelwire/components/controllermanager/internal/scaling"
)

const (
	workers = 4
	// syncPeriod is how often replicas are computed, as in Kubernetes.
	syncPeriod = 15 * time.Second
)

// Options configures a Controller.
type Options struct {
	// Period is how often replicas are computed. Default 15 s.
	Period time.Duration
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Logger receives what operators should see. Default: slog.Default().
	Logger *slog.Logger
}

// Controller is the HorizontalPodAutoscaler controller.
type Controller struct {
	*controller.Controller
	client      *client.Client
	api         client.Resource[*autoscalingv2.HorizontalPodAutoscaler]
	autoscalers *informer.SharedInformer[*autoscalingv2.HorizontalPodAutoscaler]
	pods        *pods.Source
	mapper      *discovery.Mapper
	events      *events.Recorder
	written     *controller.WriteTracker
	opts        Options

	mu sync.Mutex
	// remembered is bounded by the autoscalers.
	remembered map[types.UID]*memory
}

// memory is what is remembered of an autoscaler. Workers have one key at a time, so only
// one uses it.
type memory struct {
	history
	next time.Time // when replicas are computed again
}

// New registers the controller with the factory's informers.
func New(cl *client.Client, factory *informer.Factory, source *pods.Source, recorder *events.Recorder, opts Options) (*Controller, error) {
	if opts.Period <= 0 {
		opts.Period = syncPeriod
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	c := &Controller{
		client: cl, api: client.For[*autoscalingv2.HorizontalPodAutoscaler](cl),
		autoscalers: informer.For[*autoscalingv2.HorizontalPodAutoscaler](factory, informer.ListOptions{}),
		pods:        source, mapper: discovery.NewMapper(cl, discovery.Options{}), events: recorder,
		written: controller.NewWriteTracker(), opts: opts, remembered: map[types.UID]*memory{},
	}
	var err error
	c.Controller, err = controller.New(c.reconcile, controller.Options{Name: "podautoscaler", Workers: workers, Logger: opts.Logger})
	if err != nil {
		return nil, err
	}
	controller.Handle(c.Controller, c.autoscalers, informer.HandlerFuncs[*autoscalingv2.HorizontalPodAutoscaler]{
		Add: func(h *autoscalingv2.HorizontalPodAutoscaler, _ bool) { c.Add(controller.KeyOf(h)) },
		Update: func(old, h *autoscalingv2.HorizontalPodAutoscaler) {
			if old.UID != h.UID || !equality.Semantic.DeepEqual(old.Spec, h.Spec) {
				c.soon(h.UID)
				c.Add(controller.KeyOf(h))
			}
		},
		Delete: func(h *autoscalingv2.HorizontalPodAutoscaler, _ bool) {
			c.written.Forget(h.UID)
			c.mu.Lock()
			delete(c.remembered, h.UID)
			c.mu.Unlock()
		},
	})
	c.RequireSync("the pods", source.Informer)
	return c, nil
}

// soon has replicas computed at the next opportunity.
func (c *Controller) soon(of types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := c.remembered[of]; m != nil {
		m.next = time.Time{}
	}
}

// due returns what is remembered of an autoscaler, and how long to wait before replicas
// are computed.
func (c *Controller) due(of types.UID, now time.Time) (*memory, time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.remembered[of]
	if m == nil {
		m = &memory{}
		c.remembered[of] = m
	}
	if wait := m.next.Sub(now); wait > 0 {
		return m, wait
	}
	m.next = now.Add(c.opts.Period)
	return m, 0
}

func (c *Controller) reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	h, ok := c.autoscalers.Lister().Get(key.Namespace, key.Name)
	if !ok || h.DeletionTimestamp != nil {
		return controller.Result{}, nil
	}
	if err := c.written.Current(ctx, h); err != nil {
		return controller.Result{}, err
	}
	now := c.opts.Now()
	m, wait := c.due(h.UID, now)
	if wait > 0 {
		return controller.After(wait), nil
	}
	update := h.DeepCopy()
	if err := c.autoscale(ctx, update, m, now); err != nil {
		c.soon(h.UID)
		return controller.Result{}, err
	}
	return controller.After(c.opts.Period), c.writeStatus(ctx, h, update)
}

func (c *Controller) writeStatus(ctx context.Context, h, update *autoscalingv2.HorizontalPodAutoscaler) error {
	if equality.Semantic.DeepEqual(h.Status, update.Status) {
		return nil
	}
	written, err := c.api.Namespace(h.Namespace).UpdateStatus(ctx, update, metav1.UpdateOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("write status: %w", err)
	}
	c.written.Record(written)
	return nil
}

// autoscale computes the replicas, sets them, and says in the status of h what it did. The error is
// one of controller.Consistent: the pods or h itself may be others than when the scale was read from the server.
// A count of them is remembered for minutes, and no later one puts right what an autoscaler does that is gone.
func (c *Controller) autoscale(ctx context.Context, h *autoscalingv2.HorizontalPodAutoscaler, m *memory, now time.Time) error {
	s := status{of: h, now: now}
	scale, resource, err := c.readScale(ctx, h)
	if err != nil {
		c.events.Warning(h, "FailedGetScale", "%s", err.Error())
		s.set(autoscalingv2.AbleToScale, false, "FailedGetScale", "the HPA controller was unable to get the target's current scale: %v", err)
		return nil
	}
	s.set(autoscalingv2.AbleToScale, true, "SucceededGetScale", "the HPA controller was able to get the target's current scale")
	current := scale.Spec.Replicas
	h.Status.CurrentReplicas = scale.Status.Replicas
	up, down := rules(h.Spec.Behavior)
	m.prune(&up, &down, now)
	var desired int32
	var reason string
	switch {
	case current == 0 && minReplicas(&h.Spec) != 0:
		s.set(autoscalingv2.ScalingActive, false, "ScalingDisabled", "scaling is disabled since the replica count of the target is zero")
		h.Status.DesiredReplicas = 0
		return nil
	case current > h.Spec.MaxReplicas:
		desired, reason = h.Spec.MaxReplicas, "Current number of replicas above Spec.MaxReplicas"
	case current < minReplicas(&h.Spec):
		desired, reason = minReplicas(&h.Spec), "Current number of replicas below Spec.MinReplicas"
	default:
		computed, metric, err := c.compute(ctx, h, scale, &s)
		if err != nil {
			c.events.Warning(h, "FailedComputeMetricsReplicas", "%s", err.Error())
			h.Status.DesiredReplicas = current
			return nil
		}
		if computed != current {
			if err := controller.Consistent(ctx, asOf(scale)); err != nil {
				return err
			}
		}
		desired = m.stabilize(current, computed, &up, &down, now)
		switch {
		case desired > computed:
			s.set(autoscalingv2.AbleToScale, true, "ScaleDownStabilized", "recent recommendations were higher than current one, applying the highest recent recommendation")
		case desired < computed:
			s.set(autoscalingv2.AbleToScale, true, "ScaleUpStabilized", "recent recommendations were lower than current one, applying the lowest recent recommendation")
		default:
			s.set(autoscalingv2.AbleToScale, true, "ReadyForNewScale", "recommended size matches current size")
		}
		var why limited
		desired, why = m.restrict(current, desired, &h.Spec, &up, &down, now)
		s.set(autoscalingv2.ScalingLimited, why != notLimited, why.reason, "%s", why.message)
		reason = "All metrics below target"
		if desired > current {
			reason = metric + " above target"
		}
	}
	h.Status.DesiredReplicas = desired
	if desired == current {
		return nil
	}
	if err := controller.Consistent(ctx, asOf(scale)); err != nil {
		return err
	}
	scale.Spec.Replicas = desired
	err = client.Metadata(c.client, resource).Namespace(h.Namespace).SubResource(scaling.Subresource).Update(ctx, scale.Name, scale, metav1.UpdateOptions{})
	if err != nil {
		c.events.Warning(h, "FailedRescale", "New size: %d; reason: %s; error: %v", desired, reason, err)
		s.set(autoscalingv2.AbleToScale, false, "FailedUpdateScale", "the HPA controller was unable to update the target scale: %v", err)
		h.Status.DesiredReplicas = current
		c.soon(h.UID)
		return nil
	}
	s.set(autoscalingv2.AbleToScale, true, "SucceededRescale", "the HPA controller was able to update the target scale to %d", desired)
	c.events.Normal(h, "SuccessfulRescale", "New size: %d; reason: %s", desired, reason)
	m.changes = append(m.changes, change{desired - current, now})
	h.Status.LastScaleTime = &metav1.Time{Time: now}
	return nil
}

// asOf is a scale for controller.Consistent, which takes a newer version of an object only with another
// generation. A scale has none; its replicas stand for it.
func asOf(scale *autoscalingv1.Scale) metav1.Object {
	meta := scale.ObjectMeta
	meta.Generation = int64(scale.Spec.Replicas)
	return &meta
}

// readScale reads the scale of the target, whatever kind it is.
func (c *Controller) readScale(ctx context.Context, h *autoscalingv2.HorizontalPodAutoscaler) (*autoscalingv1.Scale, schema.GroupVersionResource, error) {
	ref := h.Spec.ScaleTargetRef
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return nil, schema.GroupVersionResource{}, fmt.Errorf("invalid API version in scale target reference: %w", err)
	}
	served, err := scaling.Served(ctx, c.mapper, gv.WithKind(ref.Kind))
	if err != nil {
		return nil, schema.GroupVersionResource{}, fmt.Errorf("unable to determine resource for scale target reference: %w", err)
	}
	resource := served.GroupVersionResource()
	scale := &autoscalingv1.Scale{}
	err = client.Metadata(c.client, resource).Namespace(h.Namespace).SubResource(scaling.Subresource).Get(ctx, ref.Name, scale, metav1.GetOptions{})
	return scale, resource, err
}

// mostMetrics bounds the requests of one reconciliation: each metric takes one, after the other, on one of few workers.
const mostMetrics = 100

// compute returns the most replicas that a metric asks for, and that metric. One metric
// that cannot be read does not prevent that there are more, only that there are less.
func (c *Controller) compute(ctx context.Context, h *autoscalingv2.HorizontalPodAutoscaler, scale *autoscalingv1.Scale, s *status) (replicas int32, metric string, err error) {
	if n := len(h.Spec.Metrics); n > mostMetrics {
		err := fmt.Errorf("it has %d metrics, and %d are the most that are read", n, mostMetrics)
		s.set(autoscalingv2.ScalingActive, false, "TooManyMetrics", "the HPA was unable to compute the replica count: %v", err)
		return 0, "", err
	}
	selector, err := s.selector(scale)
	if err != nil {
		return 0, "", err
	}
	selected := c.pods.Informer.Lister().List(h.Namespace, selector)
	statuses := make([]autoscalingv2.MetricStatus, 0, len(h.Spec.Metrics))
	replicas = -1
	var failed error
	failedReason := ""
	in := input{h, scale, selected, s.now}
	for i := range h.Spec.Metrics {
		p, reason, err := c.metric(ctx, in, &h.Spec.Metrics[i])
		if err != nil {
			if failed == nil {
				failed, failedReason = err, reason
			}
			continue
		}
		statuses = append(statuses, p.status)
		if p.replicas > replicas {
			replicas, metric = p.replicas, p.metric
		}
	}
	h.Status.CurrentMetrics = statuses
	if failed != nil && replicas < scale.Spec.Replicas {
		s.set(autoscalingv2.ScalingActive, false, failedReason, "the HPA was unable to compute the replica count: %v", failed)
		return 0, "", fmt.Errorf("invalid metrics (%d invalid out of %d), first error is: %w", len(h.Spec.Metrics)-len(statuses), len(h.Spec.Metrics), failed)
	}
	s.set(autoscalingv2.ScalingActive, true, "ValidMetricFound", "the HPA was able to successfully calculate a replica count from %s", metric)
	return replicas, metric, nil
}

// selector parses the scale's selector, which may be large, into one whose cost per pod is the pod's labels.
func (s *status) selector(scale *autoscalingv1.Scale) (labels.Selector, error) {
	if scale.Status.Selector == "" {
		s.set(autoscalingv2.ScalingActive, false, "InvalidSelector", "the HPA target's scale is missing a selector")
		return nil, fmt.Errorf("selector is required")
	}
	selector, err := labels.Parse(scale.Status.Selector)
	if err != nil {
		s.set(autoscalingv2.ScalingActive, false, "InvalidSelector", "the HPA target's scale has an invalid selector: %v", err)
		return nil, err
	}
	return ownership.Indexed(selector), nil
}

// status sets conditions.
type status struct {
	of  *autoscalingv2.HorizontalPodAutoscaler
	now time.Time
}

func (s *status) set(kind autoscalingv2.HorizontalPodAutoscalerConditionType, is bool, reason, format string, args ...any) {
	state := corev1.ConditionFalse
	if is {
		state = corev1.ConditionTrue
	}
	want := autoscalingv2.HorizontalPodAutoscalerCondition{
		Type: kind, Status: state, Reason: reason, Message: fmt.Sprintf(format, args...), LastTransitionTime: metav1.NewTime(s.now),
	}
	for i := range s.of.Status.Conditions {
		if has := &s.of.Status.Conditions[i]; has.Type == kind {
			if has.Status == want.Status {
				want.LastTransitionTime = has.LastTransitionTime
			}
			*has = want
			return
		}
	}
	s.of.Status.Conditions = append(s.of.Status.Conditions, want)
}
