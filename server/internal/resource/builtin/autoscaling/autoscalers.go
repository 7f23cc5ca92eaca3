package autoscaling

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
)

// defaultUtilization is the share of the requested cpu, in percent, that an
// autoscaler without metrics aims at.
const defaultUtilization int32 = 80

func autoscalerRules() define.Rules[*autoscalingv2.HorizontalPodAutoscaler] {
	return define.Rules[*autoscalingv2.HorizontalPodAutoscaler]{
		Default:        defaultAutoscaler,
		ValidateCreate: func(a *autoscalingv2.HorizontalPodAutoscaler) field.ErrorList { return validateAutoscaler(a, nil) },
		ValidateUpdate: validateAutoscaler,
		CompleteStatus: func(a *autoscalingv2.HorizontalPodAutoscaler) { define.NoEmptyList(&a.Status.CurrentMetrics) },
		ValidateStatus: func(a, _ *autoscalingv2.HorizontalPodAutoscaler) field.ErrorList { return validateStatus(&a.Status) },
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
