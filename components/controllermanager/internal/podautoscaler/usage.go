package podautoscaler

import (
	"fmt"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
)

const (
	// tolerance is how far the usage may be from its target, as a part of it, without
	// that replicas change.
	tolerance = 0.1
	// cpuInitialization is how long after its start the cpu that a pod uses says nothing
	// while the pod is not ready.
	cpuInitialization = 5 * time.Minute
	// initialReadinessDelay is how long after its start a pod that is not ready counts as
	// never having been ready.
	initialReadinessDelay = 30 * time.Second
)

// sample is what one pod uses.
type sample struct {
	value     int64 // cpu and custom metrics in thousandths, other resources in units
	timestamp time.Time
	window    time.Duration
}

// samplesOf reads what pods, or one container of each, use of a resource. A pod of which
// not all containers are measured is left out.
func samplesOf(metrics []*metricsv1beta1.PodMetrics, resource corev1.ResourceName, container string) map[string]sample {
	samples := map[string]sample{}
	for _, m := range metrics {
		s := sample{timestamp: m.Timestamp.Time, window: m.Window.Duration}
		complete := len(m.Containers) > 0
		found := false
		for i := range m.Containers {
			c := &m.Containers[i]
			if container != "" && c.Name != container {
				continue
			}
			quantity, ok := c.Usage[resource]
			complete = complete && ok
			found = true
			s.value += valueOf(resource, quantity.MilliValue(), quantity.Value())
		}
		if complete && found {
			samples[m.Name] = s
		}
	}
	return samples
}

func valueOf(resource corev1.ResourceName, milli, whole int64) int64 {
	if resource == corev1.ResourceCPU {
		return milli
	}
	return whole
}

// requestsOf returns what pods, or one container of each, request of a resource.
func requestsOf(pods []*corev1.Pod, resource corev1.ResourceName, container string) (map[string]int64, error) {
	requests := make(map[string]int64, len(pods))
	for _, pod := range pods {
		var sum int64
		found := false
		count := func(c *corev1.Container) error {
			if container != "" && c.Name != container {
				return nil
			}
			found = true
			quantity, ok := c.Resources.Requests[resource]
			if !ok {
				return fmt.Errorf("missing request for %s in container %s of Pod %s", resource, c.Name, pod.Name)
			}
			sum += valueOf(resource, quantity.MilliValue(), quantity.Value())
			return nil
		}
		for i := range pod.Spec.Containers {
			if err := count(&pod.Spec.Containers[i]); err != nil {
				return nil, err
			}
		}
		for i := range pod.Spec.InitContainers {
			c := &pod.Spec.InitContainers[i]
			if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
				if err := count(c); err != nil {
					return nil, err
				}
			}
		}
		if container != "" && !found {
			return nil, fmt.Errorf("container %s not found in Pod %s", container, pod.Name)
		}
		requests[pod.Name] = sum
	}
	return requests, nil
}

// groups are pods by what their samples are good for.
type groups struct {
	ready            int32
	unready, missing []string
}

// group takes the samples that say nothing out of samples.
func group(pods []*corev1.Pod, samples map[string]sample, resource corev1.ResourceName, now time.Time) groups {
	var g groups
	for _, pod := range pods {
		s, measured := samples[pod.Name]
		switch {
		case pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodFailed:
			delete(samples, pod.Name)
		case pod.Status.Phase == corev1.PodPending, measured && resource == corev1.ResourceCPU && starting(pod, s, now):
			g.unready = append(g.unready, pod.Name)
			delete(samples, pod.Name)
		case !measured:
			g.missing = append(g.missing, pod.Name)
		default:
			g.ready++
		}
	}
	return g
}

// starting reports whether the cpu that a pod uses says nothing yet.
func starting(pod *corev1.Pod, s sample, now time.Time) bool {
	var ready *corev1.PodCondition
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady {
			ready = c
		}
	}
	if ready == nil || pod.Status.StartTime == nil {
		return true
	}
	if pod.Status.StartTime.Add(cpuInitialization).After(now) {
		return ready.Status == corev1.ConditionFalse || s.timestamp.Before(ready.LastTransitionTime.Add(s.window))
	}
	return ready.Status == corev1.ConditionFalse && pod.Status.StartTime.Add(initialReadinessDelay).After(ready.LastTransitionTime.Time)
}

// target is what pods should use.
type target struct {
	resource    corev1.ResourceName // "": a custom metric
	container   string              // "": all
	utilization int32               // percent of what they request; 0: average counts
	average     int64               // of each pod
}

// usage is what pods use on average.
type usage struct {
	average     int64
	utilization int32 // percent of requests, if the target is one
}

// replicasFor returns how many replicas make the pods use what they should. pods are those
// that the scale selects, and current is how many it wants.
func replicasFor(t target, current int32, pods []*corev1.Pod, samples map[string]sample, now time.Time) (replicas int32, used usage, err error) {
	if len(pods) == 0 {
		return 0, used, fmt.Errorf("no pods returned by selector while calculating replica count")
	}
	var requests map[string]int64
	if t.utilization > 0 {
		if requests, err = requestsOf(pods, t.resource, t.container); err != nil {
			return 0, used, err
		}
	}
	g := group(pods, samples, t.resource, now)
	if len(samples) == 0 {
		return 0, used, fmt.Errorf("did not receive metrics for targeted pods (pods might be unready)")
	}
	ratio, used, err := t.ratio(samples, requests)
	if err != nil {
		return 0, used, err
	}
	scaleUpWithUnready := len(g.unready) > 0 && ratio > 1
	if !scaleUpWithUnready && len(g.missing) == 0 {
		if within(ratio) {
			return current, used, nil
		}
		return ceil(ratio * float64(g.ready)), used, nil
	}
	// What is not known is taken for what would change the least.
	for _, name := range g.missing {
		switch {
		case ratio < 1 && t.utilization > 0:
			samples[name] = sample{value: requests[name] * int64(max(100, t.utilization)) / 100}
		case ratio < 1:
			samples[name] = sample{value: t.average}
		case ratio > 1:
			samples[name] = sample{}
		}
	}
	if scaleUpWithUnready {
		for _, name := range g.unready {
			samples[name] = sample{}
		}
	}
	guarded, _, err := t.ratio(samples, requests)
	if err != nil {
		return 0, used, err
	}
	if within(guarded) || (ratio < 1) != (guarded < 1) {
		return current, used, nil
	}
	replicas = ceil(guarded * float64(len(samples)))
	if guarded < 1 && replicas > current || guarded > 1 && replicas < current {
		return current, used, nil
	}
	return replicas, used, nil
}

func within(ratio float64) bool { return math.Abs(1-ratio) <= tolerance }

func ceil(replicas float64) int32 { return int32(min(math.Ceil(replicas), math.MaxInt32)) }

// ratio returns what pods use, and its ratio to the target.
func (t target) ratio(samples map[string]sample, requests map[string]int64) (float64, usage, error) {
	var used, requested int64
	n := int64(0)
	for name, s := range samples {
		request, known := requests[name]
		if t.utilization > 0 && !known {
			continue // a pod that is gone
		}
		used += s.value
		requested += request
		n++
	}
	if n == 0 {
		return 0, usage{}, fmt.Errorf("no metrics returned matched known pods")
	}
	u := usage{average: used / n}
	if t.utilization == 0 {
		return float64(u.average) / float64(max(t.average, 1)), u, nil
	}
	if requested == 0 {
		return 0, u, fmt.Errorf("the pods request no %s", t.resource)
	}
	u.utilization = int32(min(used*100/requested, math.MaxInt32))
	return float64(u.utilization) / float64(t.utilization), u, nil
}

// replicasForValue returns how many replicas bring one value of all pods to its target.
// current is how many the scale wants. Without any, what the target asks of one pod is
// what a pod will do.
func replicasForValue(value, target int64, current int32, pods []*corev1.Pod) (int32, error) {
	ratio := float64(value) / float64(max(target, 1))
	if current == 0 {
		return ceil(ratio), nil
	}
	if within(ratio) {
		return current, nil
	}
	if len(pods) == 0 {
		return 0, fmt.Errorf("no pods returned by selector while calculating replica count")
	}
	ready := 0
	for _, pod := range pods {
		if pod.Status.Phase == corev1.PodRunning && isReady(pod) {
			ready++
		}
	}
	return ceil(ratio * float64(ready)), nil
}

// replicasForAverage returns how many replicas bring the part of a value that falls to
// each of them to its target, and that part now. current is how many there are.
func replicasForAverage(value, target int64, current int32) (replicas int32, average int64) {
	target = max(target, 1)
	replicas = ceil(float64(value) / float64(target))
	if current == 0 {
		return replicas, 0
	}
	if within(float64(value) / (float64(target) * float64(current))) {
		replicas = current
	}
	return replicas, int64(math.Ceil(float64(value) / float64(current)))
}

func isReady(pod *corev1.Pod) bool {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
