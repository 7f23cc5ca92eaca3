package autoscaling

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

// defaultUtilization is the share of the requested cpu, in percent, that an
// autoscaler without metrics aims at.
const defaultUtilization int32 = 80

func autoscalerRules() define.Rules[*autoscalingv2.HorizontalPodAutoscaler] {
	return define.Rules[*autoscalingv2.HorizontalPodAutoscaler]{
		Default:  defaultAutoscaler,
		Validate: validateAutoscaler,
	}
}

func defaultAutoscaler(a *autoscalingv2.HorizontalPodAutoscaler) {
	dropCarried(a)
	define.SetDefaultPtr(&a.Spec.MinReplicas, 1)
	if len(a.Spec.Metrics) == 0 {
		a.Spec.Metrics = []autoscalingv2.MetricSpec{cpuUtilization(defaultUtilization)}
	}
	behavior := a.Spec.Behavior
	if behavior == nil {
		return
	}
	const fifteenSeconds = 15
	percent := autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PercentScalingPolicy, Value: 100, PeriodSeconds: fifteenSeconds}
	pods := autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PodsScalingPolicy, Value: 4, PeriodSeconds: fifteenSeconds}
	define.SetDefaultPtr(&behavior.ScaleUp, autoscalingv2.HPAScalingRules{})
	define.SetDefaultPtr(&behavior.ScaleUp.StabilizationWindowSeconds, 0)
	defaultScalingRules(behavior.ScaleUp, pods, percent)
	define.SetDefaultPtr(&behavior.ScaleDown, autoscalingv2.HPAScalingRules{})
	defaultScalingRules(behavior.ScaleDown, percent)
}

func defaultScalingRules(r *autoscalingv2.HPAScalingRules, policies ...autoscalingv2.HPAScalingPolicy) {
	define.SetDefaultPtr(&r.SelectPolicy, autoscalingv2.MaxChangePolicySelect)
	if r.Policies == nil {
		r.Policies = policies
	}
}

// cpuUtilization is the metric that the oldest form of an autoscaler has.
func cpuUtilization(percent int32) autoscalingv2.MetricSpec {
	return autoscalingv2.MetricSpec{
		Type: autoscalingv2.ResourceMetricSourceType,
		Resource: &autoscalingv2.ResourceMetricSource{
			Name:   corev1.ResourceCPU,
			Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &percent},
		},
	}
}

func validateAutoscaler(a *autoscalingv2.HorizontalPodAutoscaler) field.ErrorList {
	target := validate.SpecPath.Child("scaleTargetRef")
	errs := validateReplicaRange(a.Spec.MinReplicas, a.Spec.MaxReplicas)
	errs = append(errs, validate.Required(target.Child("kind"), a.Spec.ScaleTargetRef.Kind)...)
	errs = append(errs, validate.Required(target.Child("name"), a.Spec.ScaleTargetRef.Name)...)
	for i := range a.Spec.Metrics {
		errs = append(errs, validateMetric(validate.SpecPath.Child("metrics").Index(i), &a.Spec.Metrics[i])...)
	}
	if b := a.Spec.Behavior; b != nil {
		errs = append(errs, validateScalingRules(validate.SpecPath.Child("behavior", "scaleUp"), b.ScaleUp)...)
		errs = append(errs, validateScalingRules(validate.SpecPath.Child("behavior", "scaleDown"), b.ScaleDown)...)
	}
	return errs
}

func validateReplicaRange(minReplicas *int32, maxReplicas int32) field.ErrorList {
	errs := validate.NotNegative(validate.SpecPath.Child("minReplicas"), minReplicas)
	at := validate.SpecPath.Child("maxReplicas")
	if maxReplicas < 1 {
		errs = append(errs, field.Invalid(at, maxReplicas, "must be greater than 0"))
	}
	if minReplicas != nil && maxReplicas < *minReplicas {
		errs = append(errs, field.Invalid(at, maxReplicas, "must be greater than or equal to `minReplicas`"))
	}
	return errs
}

// validateMetric checks that the source that the type names is there, alone
// and complete.
func validateMetric(path *field.Path, m *autoscalingv2.MetricSpec) field.ErrorList {
	errs := validate.OneOf(path.Child("type"), m.Type, autoscalingv2.ObjectMetricSourceType, autoscalingv2.PodsMetricSourceType,
		autoscalingv2.ResourceMetricSourceType, autoscalingv2.ContainerResourceMetricSourceType, autoscalingv2.ExternalMetricSourceType)
	var name string
	var target *autoscalingv2.MetricTarget
	var at *field.Path
	switch {
	case m.Object != nil:
		at, name, target = path.Child("object"), m.Object.Metric.Name, &m.Object.Target
	case m.Pods != nil:
		at, name, target = path.Child("pods"), m.Pods.Metric.Name, &m.Pods.Target
	case m.Resource != nil:
		at, name, target = path.Child("resource"), string(m.Resource.Name), &m.Resource.Target
	case m.ContainerResource != nil:
		at, name, target = path.Child("containerResource"), string(m.ContainerResource.Name), &m.ContainerResource.Target
	case m.External != nil:
		at, name, target = path.Child("external"), m.External.Metric.Name, &m.External.Target
	default:
		return append(errs, field.Required(path, "must populate information for the given metric source"))
	}
	if name == "" {
		errs = append(errs, field.Required(at.Child("name"), "must specify a metric name"))
	}
	targetPath := at.Child("target")
	errs = append(errs, validate.OneOf(targetPath.Child("type"), target.Type,
		autoscalingv2.UtilizationMetricType, autoscalingv2.ValueMetricType, autoscalingv2.AverageValueMetricType)...)
	if target.Value == nil && target.AverageValue == nil && target.AverageUtilization == nil {
		errs = append(errs, field.Required(targetPath, "must set one of value, averageValue and averageUtilization"))
	}
	return append(errs, validate.AtLeast(targetPath.Child("averageUtilization"), target.AverageUtilization, 1)...)
}

func validateScalingRules(path *field.Path, r *autoscalingv2.HPAScalingRules) field.ErrorList {
	if r == nil {
		return nil
	}
	errs := validate.NotNegative(path.Child("stabilizationWindowSeconds"), r.StabilizationWindowSeconds)
	if len(r.Policies) == 0 {
		errs = append(errs, field.Required(path.Child("policies"), "must specify at least one Policy"))
	}
	for i, p := range r.Policies {
		at := path.Child("policies").Index(i)
		errs = append(errs, validate.OneOf(at.Child("type"), p.Type, autoscalingv2.PodsScalingPolicy, autoscalingv2.PercentScalingPolicy)...)
		errs = append(errs, validate.AtLeast(at.Child("value"), &p.Value, 1)...)
		errs = append(errs, validate.AtLeast(at.Child("periodSeconds"), &p.PeriodSeconds, 1)...)
	}
	return errs
}
