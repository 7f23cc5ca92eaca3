package podautoscaler

import (
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
)

// TestMetricsAreBounded: an autoscaler with too many metrics asks for none of them, and says so.
func TestMetricsAreBounded(t *testing.T) {
	h := &autoscalingv2.HorizontalPodAutoscaler{}
	h.Spec.Metrics = make([]autoscalingv2.MetricSpec, mostMetrics+1)
	scale := &autoscalingv1.Scale{Status: autoscalingv1.ScaleStatus{Selector: "app=web"}}
	_, _, err := (&Controller{}).compute(t.Context(), h, scale, &status{of: h, now: noon})
	const want = "it has 101 metrics, and 100 are the most that are read"
	if err == nil || err.Error() != want {
		t.Errorf("%v; want %s", err, want)
	}
	if c := h.Status.Conditions; len(c) != 1 || c[0].Reason != "TooManyMetrics" || c[0].Message != "the HPA was unable to compute the replica count: "+want {
		t.Errorf("conditions: %+v", c)
	}
}
