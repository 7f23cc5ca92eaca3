package autoscaling

import (
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const memoryMetric = `[{"type":"Resource","resource":{"name":"memory","targetAverageUtilization":50}}]`

// v1With is an autoscaler of autoscaling/v1 that carries something in annotations.
func v1With(annotations map[string]string) *autoscalingv1.HorizontalPodAutoscaler {
	percent := int32(70)
	return &autoscalingv1.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: annotations},
		Spec: autoscalingv1.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "d"},
			MaxReplicas:    3, TargetCPUUtilizationPercentage: &percent,
		},
	}
}

// TestDefaultTarget: an autoscaler that aims at nothing aims at a utilization, and says so.
func TestDefaultTarget(t *testing.T) {
	for annotation, want := range map[string]bool{"": true, "[]": true, memoryMetric: false} {
		a := v1With(map[string]string{metricsAnnotation: annotation})
		a.Spec.TargetCPUUtilizationPercentage = nil
		v1Rules().Default(a)
		if got := a.Spec.TargetCPUUtilizationPercentage; (got != nil) != want || got != nil && *got != defaultUtilization {
			t.Errorf("with %q the target is %v", annotation, got)
		}
	}
}

// TestUnreadableAnnotationsCarryNothing: whatever such an annotation says, the object can be
// written, and the annotation is not stored.
func TestUnreadableAnnotationsCarryNothing(t *testing.T) {
	for _, key := range []string{metricsAnnotation, currentMetricsAnnotation, conditionsAnnotation, behaviorAnnotation} {
		for _, text := range []string{"", "x", "7", "{", `"a"`, `{"a":1}`, "null", "[null]", "[]", "{}"} {
			stored, err := v1ToStored(v1With(map[string]string{key: text, "mine": "1"}))
			if err != nil {
				t.Errorf("%s=%q: %v", key, text, err)
				continue
			}
			if len(stored.Annotations) != 1 || stored.Spec.Behavior != nil {
				t.Errorf("%s=%q: annotations %v, behavior %v", key, text, stored.Annotations, stored.Spec.Behavior)
			}
			if _, err := v1FromStored(stored); err != nil {
				t.Errorf("%s=%q, shown: %v", key, text, err)
			}
		}
	}
}

// TestCarriedMetricsAreValidated: a metric that an annotation carries counts as one of the spec.
func TestCarriedMetricsAreValidated(t *testing.T) {
	validate := v1Rules().ValidateCreate
	for text, valid := range map[string]bool{memoryMetric: true, `[{}]`: false, `[{"type":"Pods"}]`: false} {
		if errs := validate(v1With(map[string]string{metricsAnnotation: text})); (len(errs) == 0) != valid {
			t.Errorf("%s: %v", text, errs)
		}
	}
}

// TestMetricsAreNotDoubled: what a client has read in autoscaling/v1 and writes back, in
// whatever version, is what it was.
func TestMetricsAreNotDoubled(t *testing.T) {
	stored, err := v1ToStored(v1With(map[string]string{metricsAnnotation: memoryMetric}))
	if err != nil {
		t.Fatal(err)
	}
	if len(stored.Spec.Metrics) != 2 || stored.Spec.Metrics[0].Resource.Name != "memory" {
		t.Fatalf("metrics %+v", stored.Spec.Metrics)
	}
	shown, err := v1FromStored(stored)
	if err != nil {
		t.Fatal(err)
	}
	again, err := v1ToStored(shown)
	if err != nil || len(again.Spec.Metrics) != 2 {
		t.Errorf("written back in v1: %+v (%v)", again.Spec.Metrics, err)
	}
	// The annotation of an answer in v1, in an object of v2.
	v2 := stored.DeepCopy()
	v2.Annotations = shown.Annotations
	autoscalerRules().Default(v2)
	if len(v2.Annotations) != 0 {
		t.Errorf("autoscaling/v2 keeps annotations %v", v2.Annotations)
	}
	v2.Annotations = shown.Annotations // as a server before has stored it
	if shown, err = v1FromStored(v2); err != nil || shown.Annotations[metricsAnnotation] == "" {
		t.Fatalf("%+v (%v)", shown, err)
	}
	if again, err = v1ToStored(shown); err != nil || len(again.Spec.Metrics) != 2 {
		t.Errorf("written back in v1: %+v (%v)", again.Spec.Metrics, err)
	}
}

// TestBehaviorHasBothSides: a behavior that is there is completed for both directions.
func TestBehaviorHasBothSides(t *testing.T) {
	a := &autoscalingv2.HorizontalPodAutoscaler{Spec: autoscalingv2.HorizontalPodAutoscalerSpec{Behavior: &autoscalingv2.HorizontalPodAutoscalerBehavior{}}}
	defaultAutoscaler(a)
	up, down := a.Spec.Behavior.ScaleUp, a.Spec.Behavior.ScaleDown
	if up == nil || down == nil || len(up.Policies) != 2 || len(down.Policies) != 1 || *up.StabilizationWindowSeconds != 0 || down.StabilizationWindowSeconds != nil {
		t.Errorf("up %+v, down %+v", up, down)
	}
}

// TestStatusOfAutoscalers: in both versions, what a controller counts is not below zero.
func TestStatusOfAutoscalers(t *testing.T) {
	wrong := &autoscalingv2.HorizontalPodAutoscaler{Status: autoscalingv2.HorizontalPodAutoscalerStatus{
		CurrentReplicas: -1, DesiredReplicas: -1,
		Conditions: []autoscalingv2.HorizontalPodAutoscalerCondition{{ObservedGeneration: new(int64(-1))}},
	}}
	if errs := autoscalerRules().ValidateStatus(wrong, wrong); len(errs) != 3 {
		t.Errorf("autoscaling/v2: %v", errs)
	}
	shown, err := v1FromStored(wrong)
	if err != nil {
		t.Fatal(err)
	}
	if errs := v1Rules().ValidateStatus(shown, shown); len(errs) != 3 {
		t.Errorf("autoscaling/v1: %v", errs)
	}
}
