package podautoscaler

import (
	"math"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
)

func specOf(behavior *autoscalingv2.HorizontalPodAutoscalerBehavior) *autoscalingv2.HorizontalPodAutoscalerSpec {
	least := int32(1)
	return &autoscalingv2.HorizontalPodAutoscalerSpec{MinReplicas: &least, MaxReplicas: 100, Behavior: behavior}
}

// play gives an autoscaler what each moment asks for, and returns how many replicas there
// are after each.
func play(spec *autoscalingv2.HorizontalPodAutoscalerSpec, current int32, every time.Duration, asked ...int32) []int32 {
	up, down := rules(spec.Behavior)
	var h history
	var got []int32
	for i, n := range asked {
		now := noon.Add(time.Duration(i) * every)
		h.prune(&up, &down, now)
		desired, _ := h.restrict(current, h.stabilize(current, n, &up, &down, now), spec, &up, &down, now)
		if desired != current {
			h.changes = append(h.changes, change{desired - current, now})
		}
		current = desired
		got = append(got, current)
	}
	return got
}

func TestBehavior(t *testing.T) {
	window := func(s int32) *int32 { return &s }
	disabled := autoscalingv2.DisabledPolicySelect
	least := autoscalingv2.MinChangePolicySelect
	for name, test := range map[string]struct {
		behavior *autoscalingv2.HorizontalPodAutoscalerBehavior
		current  int32
		every    time.Duration
		asked    []int32
		want     []int32
	}{
		"default: four more, then twice as many": {nil, 1, 15 * time.Second, []int32{50, 50, 50, 50}, []int32{5, 10, 20, 40}},
		"default: not less for five minutes":     {nil, 10, time.Minute, []int32{10, 1, 1, 1, 1, 1}, []int32{10, 10, 10, 10, 10, 1}},
		"default: a peak delays":                 {nil, 10, 2 * time.Minute, []int32{1, 10, 1, 1, 1}, []int32{10, 10, 10, 10, 1}},
		"more is stabilized": {
			&autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: window(60)}},
			2, 30 * time.Second, []int32{2, 4, 4, 4}, []int32{2, 2, 4, 4},
		},
		"one pod a minute less": {
			&autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleDown: &autoscalingv2.HPAScalingRules{
				StabilizationWindowSeconds: window(0), Policies: []autoscalingv2.HPAScalingPolicy{{Type: autoscalingv2.PodsScalingPolicy, Value: 1, PeriodSeconds: 60}},
			}},
			5, 30 * time.Second, []int32{1, 1, 1, 1}, []int32{4, 4, 3, 3},
		},
		"never less": {
			&autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleDown: &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: window(0), SelectPolicy: &disabled}},
			5, time.Minute, []int32{1, 1}, []int32{5, 5},
		},
		"the least of two": {
			&autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleDown: &autoscalingv2.HPAScalingRules{
				StabilizationWindowSeconds: window(0), SelectPolicy: &least, Policies: []autoscalingv2.HPAScalingPolicy{
					{Type: autoscalingv2.PodsScalingPolicy, Value: 3, PeriodSeconds: 15}, {Type: autoscalingv2.PercentScalingPolicy, Value: 10, PeriodSeconds: 15},
				},
			}},
			10, time.Minute, []int32{1}, []int32{9},
		},
	} {
		got := play(specOf(test.behavior), test.current, test.every, test.asked...)
		for i := range got {
			if got[i] != test.want[i] {
				t.Errorf("%s: %v, want %v", name, got, test.want)
				break
			}
		}
	}
}

// TestHugePolicies: a policy that allows more pods than there are numbers allows all.
func TestHugePolicies(t *testing.T) {
	spec := specOf(&autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: &autoscalingv2.HPAScalingRules{
		Policies: []autoscalingv2.HPAScalingPolicy{{Type: autoscalingv2.PodsScalingPolicy, Value: math.MaxInt32, PeriodSeconds: 15}},
	}})
	if got := play(spec, 5, time.Minute, 50); got[0] != 50 {
		t.Errorf("%v replicas, want 50", got)
	}
}
