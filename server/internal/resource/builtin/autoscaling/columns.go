package autoscaling

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/resource/columns"
)

// Columns adds the columns of the kinds of the group.
func Columns(all columns.Layouts) {
	all.Add(autoscalingv1.SchemeGroupVersion, "HorizontalPodAutoscaler", autoscalerV1Layout())
	all.Add(autoscalingv1.SchemeGroupVersion, "Scale", scaleLayout())
	all.Add(autoscalingv2.SchemeGroupVersion, "HorizontalPodAutoscaler", autoscalerLayout())
}

var (
	autoscalerSpec    = autoscalingv2.HorizontalPodAutoscalerSpec{}.SwaggerDoc()
	autoscalerColumns = []metav1.TableColumnDefinition{
		columns.NameColumn,
		columns.Text("Reference", autoscalerSpec["scaleTargetRef"]),
		columns.Text("Targets", autoscalerSpec["metrics"]),
		columns.Text("MinPods", autoscalerSpec["minReplicas"]),
		columns.Text("MaxPods", autoscalerSpec["maxReplicas"]),
		columns.Text("Replicas", autoscalingv2.HorizontalPodAutoscalerStatus{}.SwaggerDoc()["currentReplicas"]),
		columns.AgeColumn,
	}
)

func autoscalerLayout() columns.Layout {
	return columns.Table(autoscalerCells, autoscalerColumns...)
}

func autoscalerCells(a *autoscalingv2.HorizontalPodAutoscaler, now time.Time) []any {
	return []any{
		a.Name, a.Spec.ScaleTargetRef.Kind + "/" + a.Spec.ScaleTargetRef.Name,
		targetCells(a.Spec.Metrics, a.Status.CurrentMetrics), number(a.Spec.MinReplicas, columns.Unset, ""),
		int64(a.Spec.MaxReplicas), int64(a.Status.CurrentReplicas), columns.Since(a.CreationTimestamp, now),
	}
}

// autoscalerV1Layout shows the metrics, too, that autoscaling/v1 carries in an annotation.
func autoscalerV1Layout() columns.Layout {
	return columns.Table(func(a *autoscalingv1.HorizontalPodAutoscaler, now time.Time) []any {
		stored, err := v1ToStored(a)
		if err != nil {
			return columns.MetadataCells(autoscalerColumns, a, now)
		}
		stored.Spec.Metrics = inOrderOf(stored.Spec.Metrics, stored.Status.CurrentMetrics)
		return autoscalerCells(stored, now)
	}, autoscalerColumns...)
}

// inOrderOf puts the cpu's utilization, which autoscaling/v1 has a field for, among the other metrics where it
// is among their statuses, which have the order of the metrics that are stored.
func inOrderOf(metrics []autoscalingv2.MetricSpec, statuses []autoscalingv2.MetricStatus) []autoscalingv2.MetricSpec {
	last := len(metrics) - 1
	at := slices.IndexFunc(statuses, func(s autoscalingv2.MetricStatus) bool {
		return s.Resource != nil && s.Resource.Name == corev1.ResourceCPU && s.Resource.Current.AverageUtilization != nil
	})
	if last < 0 || at < 0 || at >= last || cpuTarget(metrics[last]) == nil {
		return metrics
	}
	return slices.Insert(slices.Clone(metrics[:last]), at, metrics[last])
}

func targetCells(specs []autoscalingv2.MetricSpec, statuses []autoscalingv2.MetricStatus) string {
	if len(specs) == 0 {
		return columns.None
	}
	list := make([]string, len(specs))
	for i := range specs {
		var status autoscalingv2.MetricStatus // the statuses are in the specs' order
		if i < len(statuses) {
			status = statuses[i]
		}
		list[i] = targetCell(&specs[i], &status)
	}
	return columns.AtMost(2, ", ", list)
}

func targetCell(spec *autoscalingv2.MetricSpec, status *autoscalingv2.MetricStatus) string {
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
	return number(now.AverageUtilization, columns.Unknown, "%") + "/" + number(target.AverageUtilization, "<auto>", "%")
}

func quantity(q *resource.Quantity) string {
	if q == nil {
		return columns.Unknown
	}
	return q.String()
}

func number(n *int32, instead, unit string) string {
	if n == nil {
		return instead
	}
	return strconv.Itoa(int(*n)) + unit
}

func scaleLayout() columns.Layout {
	name := columns.NameColumn
	name.Format = "" // as in Kubernetes, of this kind alone
	return columns.Table(func(s *autoscalingv1.Scale, now time.Time) []any {
		return []any{s.Name, int64(s.Spec.Replicas), int64(s.Status.Replicas), columns.Since(s.CreationTimestamp, now)}
	},
		name,
		columns.Integer("Desired", autoscalingv1.ScaleSpec{}.SwaggerDoc()["replicas"]),
		columns.Integer("Available", autoscalingv1.ScaleStatus{}.SwaggerDoc()["replicas"]),
		columns.AgeColumn,
	)
}
