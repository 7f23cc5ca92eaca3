package autoscaling

import (
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestTargetCells(t *testing.T) {
	q := func(s string) *resource.Quantity { return ptr(resource.MustParse(s)) }
	cpu := autoscalingv2.MetricSpec{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
		Name: "cpu", Target: autoscalingv2.MetricTarget{AverageUtilization: ptr(int32(80))},
	}}
	memory := autoscalingv2.MetricSpec{
		Type: autoscalingv2.ContainerResourceMetricSourceType,
		ContainerResource: &autoscalingv2.ContainerResourceMetricSource{
			Name: "memory", Target: autoscalingv2.MetricTarget{AverageValue: q("1Gi")},
		}}
	pods := autoscalingv2.MetricSpec{Type: autoscalingv2.PodsMetricSourceType, Pods: &autoscalingv2.PodsMetricSource{
		Target: autoscalingv2.MetricTarget{AverageValue: q("10")},
	}}
	object := autoscalingv2.MetricSpec{Type: autoscalingv2.ObjectMetricSourceType, Object: &autoscalingv2.ObjectMetricSource{
		Target: autoscalingv2.MetricTarget{Value: q("100")},
	}}
	external := autoscalingv2.MetricSpec{Type: autoscalingv2.ExternalMetricSourceType, External: &autoscalingv2.ExternalMetricSource{
		Target: autoscalingv2.MetricTarget{AverageValue: q("30")},
	}}
	now := func(v autoscalingv2.MetricValueStatus) []autoscalingv2.MetricStatus {
		return []autoscalingv2.MetricStatus{{
			Resource:          &autoscalingv2.ResourceMetricStatus{Current: v},
			ContainerResource: &autoscalingv2.ContainerResourceMetricStatus{Current: v},
			Pods:              &autoscalingv2.PodsMetricStatus{Current: v},
			Object:            &autoscalingv2.ObjectMetricStatus{Current: v},
			External:          &autoscalingv2.ExternalMetricStatus{Current: v},
		}}
	}
	current := now(autoscalingv2.MetricValueStatus{AverageUtilization: ptr(int32(12)), AverageValue: q("5"), Value: q("7")})
	for want, test := range map[string]struct {
		specs    []autoscalingv2.MetricSpec
		statuses []autoscalingv2.MetricStatus
	}{
		"<none>":                          {nil, nil},
		"cpu: <unknown>/80%":              {[]autoscalingv2.MetricSpec{cpu}, nil},
		"cpu: 12%/80%":                    {[]autoscalingv2.MetricSpec{cpu}, current},
		"memory: 5/1Gi":                   {[]autoscalingv2.MetricSpec{memory}, current},
		"5/10":                            {[]autoscalingv2.MetricSpec{pods}, current},
		"7/100":                           {[]autoscalingv2.MetricSpec{object}, current},
		"5/30 (avg)":                      {[]autoscalingv2.MetricSpec{external}, current},
		"cpu: 12%/80%, <unknown>/10":      {[]autoscalingv2.MetricSpec{cpu, pods}, current},
		"7/100, <unknown>/10 + 1 more...": {[]autoscalingv2.MetricSpec{object, pods, cpu}, current},
		"<unknown type>":                  {[]autoscalingv2.MetricSpec{{Type: "Resource"}}, nil},
	} {
		if got := targetCells(test.specs, test.statuses); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func ptr[T any](v T) *T { return &v }
