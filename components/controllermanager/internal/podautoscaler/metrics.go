package podautoscaler

import (
	"context"
	"fmt"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/levelwire/levelwire/client"
)

// input is what the replicas of an autoscaler are computed from, beside its metrics.
type input struct {
	of    *autoscalingv2.HorizontalPodAutoscaler
	scale *autoscalingv1.Scale
	pods  []*corev1.Pod // that the scale selects
	now   time.Time
}

// proposal is how many replicas one metric asks for.
type proposal struct {
	replicas int32
	status   autoscalingv2.MetricStatus
	metric   string // its name, for people
}

// metric returns what one metric asks for. With an error comes the reason of the condition
// ScalingActive.
func (c *Controller) metric(ctx context.Context, in input, spec *autoscalingv2.MetricSpec) (p proposal, reason string, err error) {
	switch {
	case spec.Type == autoscalingv2.ResourceMetricSourceType && spec.Resource != nil:
		reason = "FailedGetResourceMetric"
		p, err = c.resource(ctx, in, spec.Resource)
	case spec.Type == autoscalingv2.ContainerResourceMetricSourceType && spec.ContainerResource != nil:
		reason = "FailedGetContainerResourceMetric"
		p, err = c.containerResource(ctx, in, spec.ContainerResource)
	case spec.Type == autoscalingv2.PodsMetricSourceType && spec.Pods != nil:
		reason = "FailedGetPodsMetric"
		p, err = c.podsMetric(ctx, in, spec.Pods)
	case spec.Type == autoscalingv2.ObjectMetricSourceType && spec.Object != nil:
		reason = "FailedGetObjectMetric"
		p, err = c.objectMetric(ctx, in, spec.Object)
	case spec.Type == autoscalingv2.ExternalMetricSourceType && spec.External != nil:
		reason = "FailedGetExternalMetric"
		p, err = c.externalMetric(ctx, in, spec.External)
	default:
		reason, err = "InvalidMetricSourceType", fmt.Errorf("unknown metric source type %q", spec.Type)
	}
	p.status.Type, p.replicas = spec.Type, max(p.replicas, 0)
	return p, reason, err
}

func (c *Controller) resource(ctx context.Context, in input, spec *autoscalingv2.ResourceMetricSource) (proposal, error) {
	p, value, err := c.usage(ctx, in, target{resource: spec.Name}, spec.Target, string(spec.Name)+" resource")
	p.status.Resource = &autoscalingv2.ResourceMetricStatus{Name: spec.Name, Current: value}
	return p, err
}

func (c *Controller) containerResource(ctx context.Context, in input, spec *autoscalingv2.ContainerResourceMetricSource) (proposal, error) {
	p, value, err := c.usage(ctx, in, target{resource: spec.Name, container: spec.Container}, spec.Target,
		fmt.Sprintf("%s container resource of container %s", spec.Name, spec.Container))
	p.status.ContainerResource = &autoscalingv2.ContainerResourceMetricStatus{Name: spec.Name, Container: spec.Container, Current: value}
	return p, err
}

// usage computes replicas from what metrics.k8s.io says of a resource.
func (c *Controller) usage(ctx context.Context, in input, t target, wanted autoscalingv2.MetricTarget, name string) (p proposal, value autoscalingv2.MetricValueStatus, err error) {
	switch {
	case wanted.AverageValue != nil:
		t.average = valueOf(t.resource, wanted.AverageValue.MilliValue(), wanted.AverageValue.Value())
		name += " average value"
	case wanted.AverageUtilization != nil:
		t.utilization = *wanted.AverageUtilization
		name += " utilization (percentage of request)"
	default:
		return p, value, fmt.Errorf("invalid target of %s: neither a utilization nor an average value", name)
	}
	p.metric = name
	list, err := client.For[*metricsv1beta1.PodMetrics](c.client).Namespace(in.of.Namespace).List(ctx, metav1.ListOptions{LabelSelector: in.scale.Status.Selector})
	if err != nil {
		return p, value, fmt.Errorf("failed to get %s: unable to get metrics for resource %s: %w", name, t.resource, err)
	}
	var used usage
	p.replicas, used, err = replicasFor(t, in.scale.Spec.Replicas, in.pods, samplesOf(list.Items, t.resource, t.container), in.now)
	if err != nil {
		return p, value, fmt.Errorf("failed to get %s: %w", name, err)
	}
	value.AverageValue = resource.NewQuantity(used.average, resource.DecimalSI)
	if t.resource == corev1.ResourceCPU {
		value.AverageValue = milli(used.average)
	}
	if t.utilization > 0 {
		value.AverageUtilization = &used.utilization
	}
	return p, value, nil
}

// milli returns a quantity that was computed in thousandths.
func milli(n int64) *resource.Quantity { return resource.NewMilliQuantity(n, resource.DecimalSI) }
