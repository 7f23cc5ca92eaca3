package autoscaling

import (
	"encoding/json"
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
	scaleDownAnnotation      = "autoscaling.alpha.kubernetes.io/scale-down-tolerance"
	scaleUpAnnotation        = "autoscaling.alpha.kubernetes.io/scale-up-tolerance"
)

// dropCarried takes away the annotations that carry what another version has fields for.
// autoscaling/v2 has fields for everything, so what such an annotation says there is old,
// as when a client has copied it from an answer in autoscaling/v1.
func dropCarried(a metav1.Object) {
	annotations := a.GetAnnotations()
	for _, key := range []string{metricsAnnotation, currentMetricsAnnotation, conditionsAnnotation, behaviorAnnotation, scaleDownAnnotation, scaleUpAnnotation} {
		if _, ok := annotations[key]; ok {
			annotations = maps.Clone(annotations)
			delete(annotations, key)
		}
	}
	a.SetAnnotations(annotations)
}

// carried returns what an annotation carries. One that cannot be read carries nothing.
func carried[T any](annotations map[string]string, key string) (value T) {
	var read T
	if text, ok := annotations[key]; ok && json.Unmarshal([]byte(text), &read) == nil {
		return read
	}
	return value
}

// v1FromStored shows a stored autoscaler as autoscaling/v1.
func v1FromStored(a *autoscalingv2.HorizontalPodAutoscaler) (*autoscalingv1.HorizontalPodAutoscaler, error) {
	a = a.DeepCopy()
	dropCarried(a)
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
	stored.Status.Conditions = carried[[]autoscalingv2.HorizontalPodAutoscalerCondition](a.Annotations, conditionsAnnotation)
	if behavior := carried[autoscalingv2.HorizontalPodAutoscalerBehavior](a.Annotations, behaviorAnnotation); behavior != (autoscalingv2.HorizontalPodAutoscalerBehavior{}) {
		stored.Spec.Behavior = &behavior
	}
	for _, m := range carried[[]autoscalingv1.MetricSpec](a.Annotations, metricsAnnotation) {
		stored.Spec.Metrics = append(stored.Spec.Metrics, storedMetric(m))
	}
	current := carried[[]autoscalingv1.MetricStatus](a.Annotations, currentMetricsAnnotation)
	dropCarried(stored)
	if percent := a.Spec.TargetCPUUtilizationPercentage; percent != nil {
		stored.Spec.Metrics = append(stored.Spec.Metrics, cpuUtilization(*percent))
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
		Default:        defaultV1,
		ValidateCreate: func(a *autoscalingv1.HorizontalPodAutoscaler) field.ErrorList { return validateV1(a, nil) },
		ValidateUpdate: validateV1,
		ValidateStatus: func(a, _ *autoscalingv1.HorizontalPodAutoscaler) field.ErrorList {
			stored, err := v1ToStored(a)
			if err != nil {
				return field.ErrorList{field.InternalError(field.NewPath("status"), err)}
			}
			return validateStatus(&stored.Status)
		},
	}
}

// defaultV1 completes an autoscaler. One that aims at nothing aims at a utilization of the cpu,
// which its writer then owns.
func defaultV1(a *autoscalingv1.HorizontalPodAutoscaler) {
	define.SetDefaultPtr(&a.Spec.MinReplicas, 1)
	if len(carried[[]autoscalingv1.MetricSpec](a.Annotations, metricsAnnotation)) == 0 {
		define.SetDefaultPtr(&a.Spec.TargetCPUUtilizationPercentage, defaultUtilization)
	}
}

// validateV1 is validateAutoscaler for the older version.
func validateV1(a, old *autoscalingv1.HorizontalPodAutoscaler) field.ErrorList {
	stored, err := v1ToStored(a)
	if err != nil {
		return field.ErrorList{field.InternalError(validate.SpecPath, err)}
	}
	if old == nil {
		return validateAutoscaler(stored, nil)
	}
	before, err := v1ToStored(old)
	if err != nil {
		return field.ErrorList{field.InternalError(validate.SpecPath, err)}
	}
	return validateAutoscaler(stored, before)
}
