package autoscaling

import (
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
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

// TestTargetsOfV1: autoscaling/v1 shows the metrics for which it has no field, in the stored order.
func TestTargetsOfV1(t *testing.T) {
	cpu := cpuUtilization(80)
	memory := autoscalingv2.MetricSpec{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
		Name: "memory", Target: autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: ptr(resource.MustParse("1Gi"))},
	}}
	used := func(name corev1.ResourceName, current autoscalingv2.MetricValueStatus) autoscalingv2.MetricStatus {
		return autoscalingv2.MetricStatus{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricStatus{Name: name, Current: current}}
	}
	cpuUsed := used("cpu", autoscalingv2.MetricValueStatus{AverageUtilization: ptr(int32(12)), AverageValue: ptr(resource.MustParse("120m"))})
	memoryUsed := used("memory", autoscalingv2.MetricValueStatus{AverageValue: ptr(resource.MustParse("2Gi"))})
	for _, test := range []struct {
		want     string
		specs    []autoscalingv2.MetricSpec
		statuses []autoscalingv2.MetricStatus
	}{
		{"cpu: <unknown>/80%", []autoscalingv2.MetricSpec{cpu}, nil},
		{"memory: <unknown>/1Gi", []autoscalingv2.MetricSpec{memory}, nil},
		{"cpu: 12%/80%, memory: 2Gi/1Gi", []autoscalingv2.MetricSpec{cpu, memory}, []autoscalingv2.MetricStatus{cpuUsed, memoryUsed}},
		{"memory: 2Gi/1Gi, cpu: 12%/80%", []autoscalingv2.MetricSpec{memory, cpu}, []autoscalingv2.MetricStatus{memoryUsed, cpuUsed}},
		{"memory: 2Gi/1Gi, memory: <unknown>/1Gi + 1 more...", []autoscalingv2.MetricSpec{memory, memory, cpu}, []autoscalingv2.MetricStatus{memoryUsed}},
	} {
		stored := &autoscalingv2.HorizontalPodAutoscaler{Spec: autoscalingv2.HorizontalPodAutoscalerSpec{Metrics: test.specs}, Status: autoscalingv2.HorizontalPodAutoscalerStatus{CurrentMetrics: test.statuses}}
		shown, err := v1FromStored(stored)
		if err != nil {
			t.Fatal(err)
		}
		for name, cells := range map[string][]any{
			"autoscaling/v1": autoscalerV1Layout().Cells(shown, time.Now()), "autoscaling/v2": autoscalerLayout().Cells(stored, time.Now()),
		} {
			if got := cells[2]; got != test.want {
				t.Errorf("%s: %q, want %q", name, got, test.want)
			}
		}
	}
}

func ptr[T any](v T) *T { return &v }
