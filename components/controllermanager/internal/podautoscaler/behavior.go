package podautoscaler

import (
	"math"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
)

// The behavior of an autoscaler that says none, which is Kubernetes' default.
const (
	downscaleStabilization = 300
	defaultPeriod          = 15
)

// rules returns the rules of a behavior with what it does not say.
func rules(b *autoscalingv2.HorizontalPodAutoscalerBehavior) (up, down autoscalingv2.HPAScalingRules) {
	percent := autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PercentScalingPolicy, Value: 100, PeriodSeconds: defaultPeriod}
	pods := autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PodsScalingPolicy, Value: 4, PeriodSeconds: defaultPeriod}
	if b != nil && b.ScaleUp != nil {
		up = *b.ScaleUp
	}
	if b != nil && b.ScaleDown != nil {
		down = *b.ScaleDown
	}
	complete := func(r *autoscalingv2.HPAScalingRules, window int32, policies ...autoscalingv2.HPAScalingPolicy) {
		if r.StabilizationWindowSeconds == nil {
			r.StabilizationWindowSeconds = &window
		}
		if r.SelectPolicy == nil {
			most := autoscalingv2.MaxChangePolicySelect
			r.SelectPolicy = &most
		}
		if r.Policies == nil {
			r.Policies = policies
		}
	}
	complete(&up, 0, pods, percent)
	complete(&down, downscaleStabilization, percent)
	return up, down
}

// recommendation is a number of replicas that was computed, before it was limited.
type recommendation struct {
	replicas int32
	at       time.Time
}

// change is a change of replicas that was made: positive, or negative.
type change struct {
	by int32
	at time.Time
}

// history is what is remembered of an autoscaler.
type history struct {
	begun           bool
	recommendations []recommendation
	changes         []change
}

// maxHistory bounds what is remembered, whatever the windows and periods are: an hour of
// recommendations.
const maxHistory = 3600 / defaultPeriod * 4

// prune forgets what no window and no period reaches.
func (h *history) prune(up, down *autoscalingv2.HPAScalingRules, now time.Time) {
	window := max(*up.StabilizationWindowSeconds, *down.StabilizationWindowSeconds)
	var period int32
	for _, r := range []*autoscalingv2.HPAScalingRules{up, down} {
		for _, p := range r.Policies {
			period = max(period, p.PeriodSeconds)
		}
	}
	first := max(0, len(h.recommendations)-maxHistory)
	for first < len(h.recommendations) && h.recommendations[first].at.Before(now.Add(-seconds(window))) {
		first++
	}
	h.recommendations = append([]recommendation(nil), h.recommendations[first:]...)
	first = max(0, len(h.changes)-maxHistory)
	for first < len(h.changes) && h.changes[first].at.Before(now.Add(-seconds(period))) {
		first++
	}
	h.changes = append([]change(nil), h.changes[first:]...)
}

func seconds(n int32) time.Duration { return time.Duration(n) * time.Second }

// stabilize returns the replicas nearest to current that have been recommended within the
// windows, and remembers what is recommended now.
func (h *history) stabilize(current, desired int32, up, down *autoscalingv2.HPAScalingRules, now time.Time) int32 {
	if !h.begun { // what there is when a controller starts was once recommended
		h.begun = true
		h.recommendations = append(h.recommendations, recommendation{current, now})
	}
	lowest, highest := desired, desired
	for _, r := range h.recommendations {
		if r.at.After(now.Add(-seconds(*up.StabilizationWindowSeconds))) {
			lowest = min(lowest, r.replicas)
		}
		if r.at.After(now.Add(-seconds(*down.StabilizationWindowSeconds))) {
			highest = max(highest, r.replicas)
		}
	}
	h.recommendations = append(h.recommendations, recommendation{desired, now})
	return min(max(current, lowest), highest)
}

// startOf returns how many replicas there were a period ago.
func (h *history) startOf(current, period int32, now time.Time) int32 {
	for _, c := range h.changes {
		if c.at.After(now.Add(-seconds(period))) {
			current -= c.by
		}
	}
	return current
}

// upLimit returns how many replicas the policies allow when there are to be more.
func (h *history) upLimit(current int32, r *autoscalingv2.HPAScalingRules, now time.Time) int32 {
	return h.limit(current, r, now, true, func(start int32, p autoscalingv2.HPAScalingPolicy) int32 {
		if p.Type == autoscalingv2.PodsScalingPolicy {
			return int32(min(int64(start)+int64(p.Value), math.MaxInt32))
		}
		return ceil(float64(start) * (1 + float64(p.Value)/100))
	})
}

// downLimit returns how many replicas the policies leave when there are to be less.
func (h *history) downLimit(current int32, r *autoscalingv2.HPAScalingRules, now time.Time) int32 {
	return h.limit(current, r, now, false, func(start int32, p autoscalingv2.HPAScalingPolicy) int32 {
		if p.Type == autoscalingv2.PodsScalingPolicy {
			return start - p.Value
		}
		return int32(float64(start) * (1 - float64(p.Value)/100))
	})
}

func (h *history) limit(current int32, r *autoscalingv2.HPAScalingRules, now time.Time, up bool, proposed func(int32, autoscalingv2.HPAScalingPolicy) int32) int32 {
	if *r.SelectPolicy == autoscalingv2.DisabledPolicySelect {
		return current
	}
	highest := *r.SelectPolicy != autoscalingv2.MinChangePolicySelect == up
	limit := int32(math.MinInt32)
	if !highest {
		limit = math.MaxInt32
	}
	for _, p := range r.Policies {
		value := proposed(h.startOf(current, p.PeriodSeconds, now), p)
		if highest {
			limit = max(limit, value)
		} else {
			limit = min(limit, value)
		}
	}
	if up {
		return max(limit, current)
	}
	return min(limit, current)
}

// limited is why fewer or more replicas are set than are desired: the condition
// ScalingLimited.
type limited struct{ reason, message string }

var notLimited = limited{"DesiredWithinRange", "the desired count is within the acceptable range"}

// restrict returns the replicas that the policies and the bounds of the autoscaler allow.
func (h *history) restrict(current, desired int32, spec *autoscalingv2.HorizontalPodAutoscalerSpec, up, down *autoscalingv2.HPAScalingRules, now time.Time) (int32, limited) {
	switch {
	case desired > current:
		most, why := spec.MaxReplicas, limited{"TooManyReplicas", "the desired replica count is more than the maximum replica count"}
		if limit := h.upLimit(current, up, now); limit < most {
			most, why = limit, limited{"ScaleUpLimit", "the desired replica count is increasing faster than the maximum scale rate"}
		}
		if desired > most {
			return most, why
		}
	case desired < current:
		least, why := minReplicas(spec), limited{"TooFewReplicas", "the desired replica count is less than the minimum replica count"}
		if limit := h.downLimit(current, down, now); limit > least {
			least, why = limit, limited{"ScaleDownLimit", "the desired replica count is decreasing faster than the maximum scale rate"}
		}
		if desired < least {
			return least, why
		}
	}
	switch {
	case desired < minReplicas(spec):
		return minReplicas(spec), limited{"TooFewReplicas", "the desired replica count is less than the minimum replica count"}
	case desired > spec.MaxReplicas:
		return spec.MaxReplicas, limited{"TooManyReplicas", "the desired replica count is more than the maximum replica count"}
	}
	return desired, notLimited
}

func minReplicas(spec *autoscalingv2.HorizontalPodAutoscalerSpec) int32 {
	if spec.MinReplicas == nil {
		return 1
	}
	return *spec.MinReplicas
}
