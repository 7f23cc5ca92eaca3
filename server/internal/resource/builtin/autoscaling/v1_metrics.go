package autoscaling

import (
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
)

// v1Metric turns a metric into the form that annotations of autoscaling/v1
// carry.
func v1Metric(m autoscalingv2.MetricSpec) autoscalingv1.MetricSpec {
	old := autoscalingv1.MetricSpec{Type: autoscalingv1.MetricSourceType(m.Type)}
	switch {
	case m.Object != nil:
		old.Object = &autoscalingv1.ObjectMetricSource{
			Target:     autoscalingv1.CrossVersionObjectReference(m.Object.DescribedObject),
			MetricName: m.Object.Metric.Name, Selector: m.Object.Metric.Selector,
			TargetValue: define.ValueOr(m.Object.Target.Value, resource.Quantity{}), AverageValue: m.Object.Target.AverageValue,
		}
	case m.Pods != nil:
		old.Pods = &autoscalingv1.PodsMetricSource{
			MetricName: m.Pods.Metric.Name, Selector: m.Pods.Metric.Selector,
			TargetAverageValue: define.ValueOr(m.Pods.Target.AverageValue, resource.Quantity{}),
		}
	case m.Resource != nil:
		old.Resource = &autoscalingv1.ResourceMetricSource{
			Name: m.Resource.Name, TargetAverageUtilization: m.Resource.Target.AverageUtilization, TargetAverageValue: m.Resource.Target.AverageValue,
		}
	case m.ContainerResource != nil:
		c := m.ContainerResource
		old.ContainerResource = &autoscalingv1.ContainerResourceMetricSource{
			Name: c.Name, Container: c.Container, TargetAverageUtilization: c.Target.AverageUtilization, TargetAverageValue: c.Target.AverageValue,
		}
	case m.External != nil:
		old.External = &autoscalingv1.ExternalMetricSource{
			MetricName: m.External.Metric.Name, MetricSelector: m.External.Metric.Selector,
			TargetValue: m.External.Target.Value, TargetAverageValue: m.External.Target.AverageValue,
		}
	}
	return old
}

// storedMetric is the reverse.
func storedMetric(m autoscalingv1.MetricSpec) autoscalingv2.MetricSpec {
	shown := autoscalingv2.MetricSpec{Type: autoscalingv2.MetricSourceType(m.Type)}
	switch {
	case m.Object != nil:
		value := &m.Object.TargetValue
		if m.Object.AverageValue != nil {
			value = nil
		}
		shown.Object = &autoscalingv2.ObjectMetricSource{
			DescribedObject: autoscalingv2.CrossVersionObjectReference(m.Object.Target),
			Metric:          autoscalingv2.MetricIdentifier{Name: m.Object.MetricName, Selector: m.Object.Selector},
			Target:          metricTarget(value, m.Object.AverageValue, nil),
		}
	case m.Pods != nil:
		shown.Pods = &autoscalingv2.PodsMetricSource{
			Metric: autoscalingv2.MetricIdentifier{Name: m.Pods.MetricName, Selector: m.Pods.Selector},
			Target: metricTarget(nil, &m.Pods.TargetAverageValue, nil),
		}
	case m.Resource != nil:
		shown.Resource = &autoscalingv2.ResourceMetricSource{
			Name: m.Resource.Name, Target: metricTarget(nil, m.Resource.TargetAverageValue, m.Resource.TargetAverageUtilization),
		}
	case m.ContainerResource != nil:
		c := m.ContainerResource
		shown.ContainerResource = &autoscalingv2.ContainerResourceMetricSource{
			Name: c.Name, Container: c.Container, Target: metricTarget(nil, c.TargetAverageValue, c.TargetAverageUtilization),
		}
	case m.External != nil:
		shown.External = &autoscalingv2.ExternalMetricSource{
			Metric: autoscalingv2.MetricIdentifier{Name: m.External.MetricName, Selector: m.External.MetricSelector},
			Target: metricTarget(m.External.TargetValue, m.External.TargetAverageValue, nil),
		}
	}
	return shown
}

// metricTarget makes a target of whichever value there is.
func metricTarget(value, average *resource.Quantity, utilization *int32) autoscalingv2.MetricTarget {
	target := autoscalingv2.MetricTarget{Type: autoscalingv2.ValueMetricType, Value: value, AverageValue: average, AverageUtilization: utilization}
	switch {
	case utilization != nil:
		target.Type = autoscalingv2.UtilizationMetricType
	case average != nil:
		target.Type = autoscalingv2.AverageValueMetricType
	}
	return target
}

// v1MetricStatus turns an observed metric into the form of the annotation.
func v1MetricStatus(m autoscalingv2.MetricStatus) autoscalingv1.MetricStatus {
	old := autoscalingv1.MetricStatus{Type: autoscalingv1.MetricSourceType(m.Type)}
	switch {
	case m.Object != nil:
		old.Object = &autoscalingv1.ObjectMetricStatus{
			Target:     autoscalingv1.CrossVersionObjectReference(m.Object.DescribedObject),
			MetricName: m.Object.Metric.Name, Selector: m.Object.Metric.Selector,
			CurrentValue: define.ValueOr(m.Object.Current.Value, resource.Quantity{}), AverageValue: m.Object.Current.AverageValue,
		}
	case m.Pods != nil:
		old.Pods = &autoscalingv1.PodsMetricStatus{
			MetricName: m.Pods.Metric.Name, Selector: m.Pods.Metric.Selector,
			CurrentAverageValue: define.ValueOr(m.Pods.Current.AverageValue, resource.Quantity{}),
		}
	case m.Resource != nil:
		old.Resource = &autoscalingv1.ResourceMetricStatus{
			Name: m.Resource.Name, CurrentAverageUtilization: m.Resource.Current.AverageUtilization,
			CurrentAverageValue: define.ValueOr(m.Resource.Current.AverageValue, resource.Quantity{}),
		}
	case m.ContainerResource != nil:
		c := m.ContainerResource
		old.ContainerResource = &autoscalingv1.ContainerResourceMetricStatus{
			Name: c.Name, Container: c.Container, CurrentAverageUtilization: c.Current.AverageUtilization,
			CurrentAverageValue: define.ValueOr(c.Current.AverageValue, resource.Quantity{}),
		}
	case m.External != nil:
		old.External = &autoscalingv1.ExternalMetricStatus{
			MetricName: m.External.Metric.Name, MetricSelector: m.External.Metric.Selector,
			CurrentValue: define.ValueOr(m.External.Current.Value, resource.Quantity{}), CurrentAverageValue: m.External.Current.AverageValue,
		}
	}
	return old
}

// storedMetricStatuses is the reverse, for all of them. If the annotation is
// missing, the cpu utilization is all that is known.
func storedMetricStatuses(list []autoscalingv1.MetricStatus, cpu *int32) []autoscalingv2.MetricStatus {
	var shown []autoscalingv2.MetricStatus
	for _, m := range list {
		s := autoscalingv2.MetricStatus{Type: autoscalingv2.MetricSourceType(m.Type)}
		switch {
		case m.Object != nil:
			s.Object = &autoscalingv2.ObjectMetricStatus{
				DescribedObject: autoscalingv2.CrossVersionObjectReference(m.Object.Target),
				Metric:          autoscalingv2.MetricIdentifier{Name: m.Object.MetricName, Selector: m.Object.Selector},
				Current:         autoscalingv2.MetricValueStatus{Value: &m.Object.CurrentValue, AverageValue: m.Object.AverageValue},
			}
		case m.Pods != nil:
			s.Pods = &autoscalingv2.PodsMetricStatus{
				Metric:  autoscalingv2.MetricIdentifier{Name: m.Pods.MetricName, Selector: m.Pods.Selector},
				Current: autoscalingv2.MetricValueStatus{AverageValue: &m.Pods.CurrentAverageValue},
			}
		case m.Resource != nil:
			s.Resource = &autoscalingv2.ResourceMetricStatus{Name: m.Resource.Name, Current: autoscalingv2.MetricValueStatus{
				AverageUtilization: m.Resource.CurrentAverageUtilization, AverageValue: &m.Resource.CurrentAverageValue}}
		case m.ContainerResource != nil:
			c := m.ContainerResource
			s.ContainerResource = &autoscalingv2.ContainerResourceMetricStatus{Name: c.Name, Container: c.Container, Current: autoscalingv2.MetricValueStatus{
				AverageUtilization: c.CurrentAverageUtilization, AverageValue: &c.CurrentAverageValue}}
		case m.External != nil:
			s.External = &autoscalingv2.ExternalMetricStatus{
				Metric:  autoscalingv2.MetricIdentifier{Name: m.External.MetricName, Selector: m.External.MetricSelector},
				Current: autoscalingv2.MetricValueStatus{Value: &m.External.CurrentValue, AverageValue: m.External.CurrentAverageValue},
			}
		}
		shown = append(shown, s)
	}
	if len(list) == 0 && cpu != nil {
		shown = append(shown, autoscalingv2.MetricStatus{
			Type:     autoscalingv2.ResourceMetricSourceType,
			Resource: &autoscalingv2.ResourceMetricStatus{Name: corev1.ResourceCPU, Current: autoscalingv2.MetricValueStatus{AverageUtilization: cpu}},
		})
	}
	return shown
}
