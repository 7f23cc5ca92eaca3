package autoscaling

import (
	"encoding/json"
	"fmt"
	"maps"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

// Annotations in which autoscaling/v1 carries what it has no fields for, so
// that an object survives being read and written in that version.
const (
	metricsAnnotation        = "autoscaling.alpha.kubernetes.io/metrics"
	currentMetricsAnnotation = "autoscaling.alpha.kubernetes.io/current-metrics"
	conditionsAnnotation     = "autoscaling.alpha.kubernetes.io/conditions"
	behaviorAnnotation       = "autoscaling.alpha.kubernetes.io/behavior"
)

// v1FromStored shows a stored autoscaler as autoscaling/v1.
func v1FromStored(a *autoscalingv2.HorizontalPodAutoscaler) (*autoscalingv1.HorizontalPodAutoscaler, error) {
	a = a.DeepCopy()
	shown := &autoscalingv1.HorizontalPodAutoscaler{
		ObjectMeta: a.ObjectMeta,
		Spec: autoscalingv1.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv1.CrossVersionObjectReference(a.Spec.ScaleTargetRef),
			MinReplicas:    a.Spec.MinReplicas, MaxReplicas: a.Spec.MaxReplicas,
		},
		Status: autoscalingv1.HorizontalPodAutoscalerStatus{
			ObservedGeneration: a.Status.ObservedGeneration, LastScaleTime: a.Status.LastScaleTime,
			CurrentReplicas: a.Status.CurrentReplicas, DesiredReplicas: a.Status.DesiredReplicas,
		},
	}
	var metrics []autoscalingv1.MetricSpec
	for _, m := range a.Spec.Metrics {
		if cpu := cpuTarget(m); cpu != nil && shown.Spec.TargetCPUUtilizationPercentage == nil {
			shown.Spec.TargetCPUUtilizationPercentage = cpu
			continue
		}
		metrics = append(metrics, v1Metric(m))
	}
	var current []autoscalingv1.MetricStatus
	for _, m := range a.Status.CurrentMetrics {
		if r := m.Resource; r != nil && r.Name == corev1.ResourceCPU && r.Current.AverageUtilization != nil {
			shown.Status.CurrentCPUUtilizationPercentage = r.Current.AverageUtilization
		}
		current = append(current, v1MetricStatus(m))
	}
	var err error
	note := func(key string, value any, present bool) {
		if !present || err != nil {
			return
		}
		var encoded []byte
		if encoded, err = json.Marshal(value); err == nil {
			metav1.SetMetaDataAnnotation(&shown.ObjectMeta, key, string(encoded))
		}
	}
	note(metricsAnnotation, metrics, len(metrics) > 0)
	note(currentMetricsAnnotation, current, len(current) > 0)
	note(conditionsAnnotation, a.Status.Conditions, len(a.Status.Conditions) > 0)
	note(behaviorAnnotation, a.Spec.Behavior, a.Spec.Behavior != nil)
	return shown, err
}

// v1ToStored is the reverse.
func v1ToStored(a *autoscalingv1.HorizontalPodAutoscaler) (*autoscalingv2.HorizontalPodAutoscaler, error) {
	a = a.DeepCopy()
	stored := &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: a.ObjectMeta,
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference(a.Spec.ScaleTargetRef),
			MinReplicas:    a.Spec.MinReplicas, MaxReplicas: a.Spec.MaxReplicas,
		},
		Status: autoscalingv2.HorizontalPodAutoscalerStatus{
			ObservedGeneration: a.Status.ObservedGeneration, LastScaleTime: a.Status.LastScaleTime,
			CurrentReplicas: a.Status.CurrentReplicas, DesiredReplicas: a.Status.DesiredReplicas,
		},
	}
	var metrics []autoscalingv1.MetricSpec
	var current []autoscalingv1.MetricStatus
	for key, into := range map[string]any{
		metricsAnnotation: &metrics, currentMetricsAnnotation: &current,
		conditionsAnnotation: &stored.Status.Conditions, behaviorAnnotation: &stored.Spec.Behavior,
	} {
		if text, ok := a.Annotations[key]; ok {
			if err := json.Unmarshal([]byte(text), into); err != nil {
				return nil, fmt.Errorf("annotation %s: %w", key, err)
			}
		}
	}
	stored.Annotations = maps.Clone(a.Annotations)
	for _, key := range []string{metricsAnnotation, currentMetricsAnnotation, conditionsAnnotation, behaviorAnnotation} {
		delete(stored.Annotations, key)
	}
	if percent := a.Spec.TargetCPUUtilizationPercentage; percent != nil {
		stored.Spec.Metrics = append(stored.Spec.Metrics, cpuUtilization(*percent))
	}
	for _, m := range metrics {
		stored.Spec.Metrics = append(stored.Spec.Metrics, storedMetric(m))
	}
	if len(stored.Spec.Metrics) == 0 {
		stored.Spec.Metrics = []autoscalingv2.MetricSpec{cpuUtilization(defaultUtilization)}
	}
	stored.Status.CurrentMetrics = storedMetricStatuses(current, a.Status.CurrentCPUUtilizationPercentage)
	return stored, nil
}

// cpuTarget returns the cpu utilization a metric aims at, nil if it is about
// something else.
func cpuTarget(m autoscalingv2.MetricSpec) *int32 {
	if m.Type != autoscalingv2.ResourceMetricSourceType || m.Resource == nil || m.Resource.Name != corev1.ResourceCPU {
		return nil
	}
	return m.Resource.Target.AverageUtilization
}

func v1Rules() define.Rules[*autoscalingv1.HorizontalPodAutoscaler] {
	return define.Rules[*autoscalingv1.HorizontalPodAutoscaler]{
		Default: func(a *autoscalingv1.HorizontalPodAutoscaler) { define.SetDefaultPtr(&a.Spec.MinReplicas, 1) },
		Validate: func(a *autoscalingv1.HorizontalPodAutoscaler) field.ErrorList {
			target := validate.SpecPath.Child("scaleTargetRef")
			errs := validateReplicaRange(a.Spec.MinReplicas, a.Spec.MaxReplicas)
			errs = append(errs, validate.Required(target.Child("kind"), a.Spec.ScaleTargetRef.Kind)...)
			errs = append(errs, validate.Required(target.Child("name"), a.Spec.ScaleTargetRef.Name)...)
			return append(errs, validate.AtLeast(validate.SpecPath.Child("targetCPUUtilizationPercentage"), a.Spec.TargetCPUUtilizationPercentage, 1)...)
		},
	}
}
