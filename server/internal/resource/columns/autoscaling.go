package columns

import (
	"fmt"
	"strconv"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func autoscalingGroup(all layouts) {
	all.add(autoscalingv1.SchemeGroupVersion, "HorizontalPodAutoscaler", autoscalersV1())
	all.add(autoscalingv1.SchemeGroupVersion, "Scale", scales())
	all.add(autoscalingv2.SchemeGroupVersion, "HorizontalPodAutoscaler", autoscalers())
}

var autoscalerColumns = []metav1.TableColumnDefinition{
	nameColumn,
	text("Reference", "What is scaled."),
	text("Targets", "Each metric's current and wanted value."),
	text("MinPods", "The least number of pods."),
	text("MaxPods", "The greatest number of pods."),
	text("Replicas", "The number of pods that exist."),
	ageColumn,
}

func autoscalers() layout {
	return table(func(a *autoscalingv2.HorizontalPodAutoscaler, now time.Time) []any {
		return []any{
			a.Name, a.Spec.ScaleTargetRef.Kind + "/" + a.Spec.ScaleTargetRef.Name,
			metricTargets(a.Spec.Metrics, a.Status.CurrentMetrics), number(a.Spec.MinReplicas, unset, ""),
			int64(a.Spec.MaxReplicas), int64(a.Status.CurrentReplicas), since(a.CreationTimestamp, now),
		}
	}, autoscalerColumns...)
}

// autoscalersV1 shows the one metric that autoscaling/v1 has fields for.
func autoscalersV1() layout {
	return table(func(a *autoscalingv1.HorizontalPodAutoscaler, now time.Time) []any {
		targets := none
		if want := a.Spec.TargetCPUUtilizationPercentage; want != nil {
			targets = "cpu: " + number(a.Status.CurrentCPUUtilizationPercentage, unknown, "%") + "/" + number(want, "", "%")
		}
		return []any{
			a.Name, a.Spec.ScaleTargetRef.Kind + "/" + a.Spec.ScaleTargetRef.Name, targets,
			number(a.Spec.MinReplicas, unset, ""), int64(a.Spec.MaxReplicas), int64(a.Status.CurrentReplicas),
			since(a.CreationTimestamp, now),
		}
	}, autoscalerColumns...)
}

func metricTargets(specs []autoscalingv2.MetricSpec, statuses []autoscalingv2.MetricStatus) string {
	if len(specs) == 0 {
		return none
	}
	list := make([]string, len(specs))
	for i := range specs {
		var status autoscalingv2.MetricStatus // the statuses are in the specs' order
		if i < len(statuses) {
			status = statuses[i]
		}
		list[i] = metricTarget(&specs[i], &status)
	}
	return atMost(2, ", ", list)
}

func metricTarget(spec *autoscalingv2.MetricSpec, status *autoscalingv2.MetricStatus) string {
	var now autoscalingv2.MetricValueStatus
	switch {
	case spec.Type == autoscalingv2.ExternalMetricSourceType && spec.External != nil:
		if status.External != nil {
			now = status.External.Current
		}
		return valueOrAverage(&spec.External.Target, &now)
	case spec.Type == autoscalingv2.ObjectMetricSourceType && spec.Object != nil:
		if status.Object != nil {
			now = status.Object.Current
		}
		return valueOrAverage(&spec.Object.Target, &now)
	case spec.Type == autoscalingv2.PodsMetricSourceType && spec.Pods != nil:
		if status.Pods != nil {
			now = status.Pods.Current
		}
		return quantity(now.AverageValue) + "/" + quantity(spec.Pods.Target.AverageValue)
	case spec.Type == autoscalingv2.ResourceMetricSourceType && spec.Resource != nil:
		if status.Resource != nil {
			now = status.Resource.Current
		}
		return fmt.Sprintf("%s: %s", spec.Resource.Name, averageOrUtilization(&spec.Resource.Target, &now))
	case spec.Type == autoscalingv2.ContainerResourceMetricSourceType && spec.ContainerResource != nil:
		if status.ContainerResource != nil {
			now = status.ContainerResource.Current
		}
		return fmt.Sprintf("%s: %s", spec.ContainerResource.Name, averageOrUtilization(&spec.ContainerResource.Target, &now))
	}
	return "<unknown type>"
}

func valueOrAverage(target *autoscalingv2.MetricTarget, now *autoscalingv2.MetricValueStatus) string {
	if target.AverageValue != nil {
		return quantity(now.AverageValue) + "/" + quantity(target.AverageValue) + " (avg)"
	}
	return quantity(now.Value) + "/" + quantity(target.Value)
}

func averageOrUtilization(target *autoscalingv2.MetricTarget, now *autoscalingv2.MetricValueStatus) string {
	if target.AverageValue != nil {
		return quantity(now.AverageValue) + "/" + quantity(target.AverageValue)
	}
	return number(now.AverageUtilization, unknown, "%") + "/" + number(target.AverageUtilization, "<auto>", "%")
}

func quantity(q *resource.Quantity) string {
	if q == nil {
		return unknown
	}
	return q.String()
}

func number(n *int32, instead, unit string) string {
	if n == nil {
		return instead
	}
	return strconv.Itoa(int(*n)) + unit
}

func scales() layout {
	return table(func(s *autoscalingv1.Scale, now time.Time) []any {
		return []any{s.Name, int64(s.Spec.Replicas), int64(s.Status.Replicas), since(s.CreationTimestamp, now)}
	},
		nameColumn,
		integer("Desired", "The number of pods wanted."),
		integer("Available", "The number of pods that exist."),
		ageColumn,
	)
}
