package podautoscaler

import (
	"fmt"
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/labels"
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

// TestLargeSelectors: a pass over the pods costs what labels they have. Held against each requirement of the selector and its values,
// they took an hour in each pass, beyond the time of all tests of the package.
func TestLargeSelectors(t *testing.T) {
	terms := []string{"app=web"}
	for i := range 50_000 {
		terms = append(terms, fmt.Sprint("app!=v", i), fmt.Sprint("!k", i))
	}
	scale := &autoscalingv1.Scale{Status: autoscalingv1.ScaleStatus{Selector: strings.Join(terms, ",")}}
	h := &autoscalingv2.HorizontalPodAutoscaler{}
	selector, err := (&status{of: h, now: noon}).selector(scale)
	if err != nil {
		t.Fatal(err)
	}
	pod := labels.Set{"app": "web"}
	for range 3_000_000 {
		if !selector.Matches(pod) {
			t.Fatal("it is not selected")
		}
	}
	if len(h.Status.Conditions) > 0 {
		t.Errorf("conditions: %+v", h.Status.Conditions)
	}
}
